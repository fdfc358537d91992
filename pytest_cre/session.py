"""What one pytest run knows: settings, catalog, items, verdicts. Lives under one StashKey."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import pytest

from pytest_cre import items as item_rules
from pytest_cre.errors import CreError, UnmetNeed, UsageProblem
from pytest_cre.interrupt import INTERRUPTS, turn_signals_into_interrupts
from pytest_cre.items import MARKER, EntryCase, case_of, fixtures_of
from pytest_cre.itemstate import BAD, ItemState, state_of
from pytest_cre.news import TerminalNews
from pytest_cre.screen import TerminalScreen
from pytest_cre.settings import Settings, read_settings

if TYPE_CHECKING:
    from pytest_cre.campaign import Campaign
    from pytest_cre.catalog.certification import Certification
    from pytest_cre.catalog.loader import Catalog
    from pytest_cre.distribution import Controller
    from pytest_cre.judge.verdict import Code, ItemVerdict
    from pytest_cre.reports import Promise, Reports
    from pytest_cre.results import WorkflowRun

MARKER_HELP = (
    f"{MARKER}(*patterns, unless=()): run the catalog entries that match on a GPU cluster; "
    "opt-in: selected by -m certification or by the path of the suites"
)

SESSION_KEY = pytest.StashKey["CertificationSession"]()


def session_of(config: pytest.Config) -> "CertificationSession":
    """Return the session of this pytest run."""
    return config.stash[SESSION_KEY]


def configure(config: pytest.Config) -> "CertificationSession":
    """Decide whether this run certifies and load what it needs; a mistake ends it here."""
    session = config.stash[SESSION_KEY] = CertificationSession(config)
    if session.is_asked_for:
        with usage_errors():
            session.load()
    return session


def unconfigure(config: pytest.Config) -> None:
    """Close whatever is still open; the last chance to clean up."""
    session = config.stash.get(SESSION_KEY, None)
    if session is not None:
        session.close()


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn a user's mistake into pytest's usage error: one line, exit code 4."""
    try:
        yield
    except UsageProblem as problem:
        raise pytest.UsageError(str(problem)) from None


class CertificationSession:
    """One pytest run. Cheap to make; what it needs is loaded only where certification was asked."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.is_asked_for = item_rules.is_asked_for(config)
        self.settings: Settings
        self.catalog: Catalog
        self.certification: Certification | None = None  # what a document of upstream's asks for
        self.campaign: Campaign
        self.problems: list[UsageProblem] = []
        self.reports: Reports
        self.controller: Controller | None = None  # where xdist's workers run the items
        self.has_tests = False  # any with our marker, selected or not
        self._restore_signals: Callable[[], None] = lambda: None

    def load(self) -> None:
        """Read settings and catalog; raises `UsageProblem` in one line."""
        from pytest_cre.campaign import Campaign
        from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
        from pytest_cre.catalog.options import check_options
        from pytest_cre.distribution import (
            Controller,
            WorkerNews,
            check_distribution,
            is_controller,
            seat_of,
        )
        from pytest_cre.formats.selector import parse_selector
        from pytest_cre.plan.scales import nodes_per_group_of
        from pytest_cre.reports import Reports

        check_distribution(self.config)
        if self.config.option.setuponly and not self.config.option.setupplan:
            raise UsageProblem(
                "--setup-only would run workloads and judge none of them; use --setup-plan to look, "
                "or leave it out"
            )
        self.settings = read_settings(self.config)
        catalog = load_catalog(
            suites=(shipped_suites(), *self.settings.catalogs),
            profiles=(shipped_profiles(), *self.settings.profiles),
        )
        entries = list(catalog.entries.values())
        self.config.hook.pytest_cre_modify_entries(config=self.config, entries=entries)
        self.catalog = catalog.with_entries(entries)
        self._take_certification()
        try:
            parse_selector(self.settings.node_selector)
        except ValueError as problem:
            raise UsageProblem(f"--cre-node-selector: {problem}") from None
        self.catalog.check_architecture(self.settings.architecture)
        self.catalog.check_platform(self.settings.platform)
        check_options(self.catalog, self.settings.options)
        if self.settings.scale is not None:
            nodes_per_group_of(self.settings.scale)
        if self.settings.context is not None:
            from pytest_cre.cluster.kubeconfig import check_context

            check_context(self.settings.kubeconfig, self.settings.context)
        seat = seat_of(self.config)
        news = WorkerNews(seat) if seat.is_worker else TerminalNews(self._write_line)
        self.campaign = Campaign(
            self.settings, self.catalog, news, seat, certification=self.certification
        )
        self.reports = Reports(self.campaign, news)
        if is_controller(self.config):
            self.controller = Controller(self.campaign, self.reports, news)
        self._restore_signals = turn_signals_into_interrupts(is_worker=seat.is_worker)

    def _take_certification(self) -> None:
        """Fit catalog and settings to the document of upstream's that was given."""
        from pytest_cre.catalog.certification_file import read_certification

        settings = self.settings
        if settings.certification_file is not None:
            read = read_certification(settings.certification_file, self.catalog, "Certification")
        elif settings.workload_file is not None:
            read = read_certification(settings.workload_file, self.catalog, "WorkloadRun")
        else:
            return
        self.certification, self.catalog = read, read.applied(self.catalog)
        names = settings.nodes or read.node_names
        if read.node_names:
            names = tuple(name for name in names if name in read.node_names)
            if not names:
                raise UsageProblem(f"--cre-nodes: none of them is in the target of {read.source}")
        selectors = filter(None, (read.selector, settings.node_selector))
        self.settings = replace(settings, nodes=names, node_selector=",".join(selectors))

    def _write_line(self, line: str) -> None:
        """Write a line between pytest's own, whatever is being captured."""
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        capture = self.config.pluginmanager.get_plugin("capturemanager")
        if terminal is not None and capture is not None:
            with capture.global_and_fixture_disabled():
                terminal.ensure_newline()
                terminal.write_line(f"cre: {line}")

    # Collection

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Give a test function marked `certification` its entries, one item each."""
        marker = metafunc.definition.get_closest_marker(MARKER)
        if marker is None or "cre_entry" not in metafunc.fixturenames:
            return
        cases: list[EntryCase] = []
        if self.is_asked_for:
            try:
                cases = item_rules.cases_of(self.catalog, marker, scale=self.settings.scale)
                cases = self._asked_of(cases)
                ids = item_rules.case_ids(cases)
            except UsageProblem as problem:
                # Raised here it would become a traceback; `select` ends the run in one line.
                self.problems.append(problem)
        if cases:
            metafunc.parametrize("cre_entry", cases, indirect=True, ids=ids)
        else:
            metafunc.parametrize("cre_entry", [None], indirect=True, ids=[item_rules.NO_ENTRY_ID])

    def _asked_of(self, cases: list[EntryCase]) -> list[EntryCase]:
        """Return the cases that a certification asks for, as it asks for them; without one, all."""
        if self.certification is None:
            return cases
        asked = ((case, self.certification.category(case.entry.name, case.scale)) for case in cases)
        return [
            replace(case, entry=each.on(case.entry)) for case, each in asked if each is not None
        ]

    def select(self, items: list[pytest.Item]) -> None:
        """Take out the items that were not asked for or have no entry."""
        if self.problems:
            if self.is_asked_for and self.campaign.seat.is_worker:
                items.clear()  # the controller tells it: raised in here it would be a traceback
                return
            raise pytest.UsageError(str(self.problems[0]))
        kept: list[pytest.Item] = []
        rest: list[pytest.Item] = []
        for item in items:
            is_ours = item.get_closest_marker(MARKER) is not None
            self.has_tests = self.has_tests or is_ours
            needs_entry = "cre_entry" in fixtures_of(item)
            has_entry = case_of(item) is not None or not needs_entry
            is_kept = (self.is_asked_for and has_entry) or not is_ours
            (kept if is_kept else rest).append(item)
        if rest:
            items[:] = kept
            self.config.hook.pytest_deselected(items=rest)

    def plan(self, items: list[pytest.Item]) -> None:
        """Remember which items this run promises to certify."""
        promised: list[Promise] = []
        for item in items:
            case = case_of(item)
            if item.get_closest_marker(MARKER):
                entry, scale = (case.entry.name, case.scale) if case else (None, None)
                promised.append((item.nodeid, entry, scale))
        self.reports.plan(promised)
        if self.campaign.seat.is_worker:
            from pytest_cre.distribution import tell_plan

            tell_plan(self.campaign.seat, promised, self.problems)

    # Running

    @property
    def _is_dry_run(self) -> bool:
        """Return whether pytest only shows what it would do."""
        return bool(self.config.option.collectonly or self.config.option.setupplan)

    def open(self) -> None:
        """Start the cluster, if anything is to be run; a wrong node name ends the run here."""
        if not self._is_dry_run and (self.reports.planned or self.controller is not None):
            self.reports.begin()
            with usage_errors():
                self.campaign.open()
            self.reports.note_progress()
            screen = TerminalScreen.of(self.config)
            if screen is not None:
                self.campaign.watch_on(screen)

    def case_of(self, request: pytest.FixtureRequest) -> EntryCase:
        """Return what the requesting item runs."""
        case = case_of(request.node)
        if case is None:
            raise UsageProblem(
                f"{request.node.nodeid}: cre_ fixtures of an entry need a test function with "
                f"@pytest.mark.{MARKER}('domain/variant')"
            )
        return case

    def run(self, item: pytest.Item, case: EntryCase) -> "WorkflowRun":
        """Run the item's entry; what kept it from running ends the item here, in set-up."""
        from pytest_cre.itemrun import run_item
        from pytest_cre.results import WorkflowRun

        state = state_of(item)

        def modify(manifests: list[dict[str, object]]) -> None:
            self.config.hook.pytest_cre_modify_manifests(
                config=self.config, entry=case.entry, manifests=manifests
            )

        planned = self.reports.evidence_of.get(item.nodeid)
        refused: CreError | None = None
        try:
            evidence = run_item(self.campaign, case, modify, self.campaign.evidence_folder(planned))
        except CreError as problem:
            refused = problem  # ended below: raised in here, pytest would show both
        if refused is not None:
            code: Code = "unmet" if isinstance(refused, UnmetNeed) else "error"
            self._end(state, code, str(refused))
        assessor = self.campaign.assessor
        measurements = assessor.measure(evidence)
        state.run = WorkflowRun(
            case=case,
            evidence=evidence,
            measurements=measurements,
            limits=assessor.limits(evidence, measurements),
            retried=assessor.retried(evidence.groups),
            demand_complete=lambda: self._demand_complete(state),
            note_read=lambda: setattr(state, "was_read", True),
        )
        state.evidence_verdict = assessor.judge(evidence, measurements, None)
        if state.evidence_verdict.code in ("error", "unmet", "not-applicable"):
            self._end_with(state, state.evidence_verdict)
        return state.run

    def check(self, item: pytest.Item, run: "WorkflowRun") -> None:
        """End the item with its verdict by the limits, unless that is a pass."""
        __tracebackhide__ = True
        state = state_of(item)
        state.verdict = self.campaign.assessor.judge(run.evidence, run.measurements, run.limits)
        if state.verdict.code != "pass":
            self._end_with(state, state.verdict)

    def record(self, item: pytest.Item, name: str, value: float, unit: str) -> None:
        """Add a figure of the user's own to the item's report."""
        if not str(name).strip() or not math.isfinite(value):
            raise ValueError(
                f"cre_record: needs a name and a finite number, got {name!r} and {value!r}"
            )
        state_of(item).figures.append((str(name), float(value), str(unit)))

    @contextmanager
    def interrupts_named(self, item: pytest.Item) -> Iterator[None]:
        """Give an interrupted item a report of its own; pytest would write one without a name."""
        state_of(item).started_s = time.monotonic()
        INTERRUPTS.reset()  # where a test has swallowed one, the next is the first again
        try:
            yield
        except KeyboardInterrupt:
            if item.get_closest_marker(MARKER) and item.nodeid not in self.reports.items:
                self.reports.report_interrupt(item)
            raise

    def _demand_complete(self, state: ItemState) -> None:
        """End the item when its evidence is incomplete or the workload failed."""
        __tracebackhide__ = True
        state.was_read = True
        verdict = state.evidence_verdict
        if verdict is not None and verdict.code in BAD:
            self._end_with(state, verdict)

    def _end_with(self, state: ItemState, verdict: "ItemVerdict") -> NoReturn:
        __tracebackhide__ = True
        self._end(state, verdict.code, self.reports.text_of(state, verdict))

    def _end(self, state: ItemState, code: "Code", text: str) -> NoReturn:
        """End the item with a verdict that is not a pass; the text is the whole report of it."""
        __tracebackhide__ = True
        state.code, state.text = code, text
        if code in ("unmet", "no-limit", "not-applicable"):
            pytest.skip(text)
        pytest.fail(text, pytrace=False)

    # The end

    def header_lines(self) -> list[str]:
        """Return the lines of pytest's header."""
        from pytest_cre.report.terminal import header_lines

        return header_lines(self.settings, self.catalog)

    def empty_hint(self, exit_status: int) -> str | None:
        """Return what to do where a run was to certify and pytest found no test that could."""
        given = self.config.invocation_params.args
        was_meant = self.is_asked_for or any(text.startswith("--cre-") for text in given)
        is_empty = exit_status == pytest.ExitCode.NO_TESTS_COLLECTED and not self.has_tests
        if not was_meant or not is_empty or self.controller is not None:
            return None
        return (
            f"no certification tests here; name suites/ or --pyargs {item_rules.SUITES_PACKAGE}, or "
            "write one (README, Your own test)"
        )

    def _has_begun(self, session: pytest.Session) -> bool:
        """Return whether the run came so far that there is something to report."""
        never_began = session.exitstatus == pytest.ExitCode.USAGE_ERROR
        return not never_began and bool(self.reports.planned) and not self._is_dry_run

    def foretell(self, session: pytest.Session) -> None:
        """Tell pytest's JUnit file, which is about to be written, of the run as a whole."""
        if self._has_begun(session):
            self.reports.tell_suite(self.config)

    def finish(self, session: pytest.Session) -> None:
        """Conclude the run, in the process that writes its reports."""
        if self.controller is not None:
            self.controller.finish()
        if not self._has_begun(session):
            return
        INTERRUPTS.be_quiet()  # to the end of the process: Ctrl-C must not cost the reports
        if self.campaign.seat.is_orphan:
            self.campaign.close()  # nobody else is left to do it
        elif not self.campaign.seat.is_worker:
            self.reports.conclude(session)

    def close(self) -> None:
        """End what was started; safe to call twice and after any failure."""
        if self.is_asked_for and hasattr(self, "campaign"):
            self.campaign.close()
        self._restore_signals()
