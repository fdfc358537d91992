"""What one pytest run knows: settings, catalog, items, verdicts. Lives under one StashKey."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

import pytest

from pytest_cre import items as item_rules
from pytest_cre.errors import CreError, EvidenceProblem, UsageProblem
from pytest_cre.interrupt import interrupts_ignored, turn_signals_into_interrupts
from pytest_cre.items import MARKER, EntryCase
from pytest_cre.options import Settings, read_settings

if TYPE_CHECKING:
    from pytest_cre.campaign import Campaign
    from pytest_cre.catalog.loader import Catalog
    from pytest_cre.evidence.manifest import PlannedItem
    from pytest_cre.judge.verdict import Code, ItemVerdict
    from pytest_cre.report.model import DecidedBy, ItemReport, RunReport
    from pytest_cre.results import WorkflowRun

MARKER_HELP = (
    f"{MARKER}(*patterns, unless=()): run the catalog entries that match on a GPU cluster; "
    "opt-in: selected by -m certification or by the path of the suites"
)
BAD: tuple["Code", ...] = ("fail", "inconclusive", "error")
NOT_BAD: tuple["Code", ...] = ("pass", "no-limit")
REPORT_ATTRIBUTE = "cre"  # a plain dict on the teardown report, so that it crosses xdist


@dataclass(slots=True, kw_only=True)
class ItemState:
    """What is known of one item while it runs."""

    run: "WorkflowRun | None" = None
    evidence_verdict: "ItemVerdict | None" = None  # by the evidence alone
    was_read: bool = False  # whether the test looked at a figure
    verdict: "ItemVerdict | None" = None  # by the limits, once the test has asked for it
    figures: list[tuple[str, float, str]] = field(default_factory=list)
    code: "Code" = "pass"
    text: str = ""  # what pytest shows of it
    started_s: float = 0.0


SESSION_KEY = pytest.StashKey["CertificationSession"]()
STATE_KEY = pytest.StashKey[ItemState]()


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
        self.campaign: Campaign
        self.problems: list[UsageProblem] = []
        self.planned: list[str] = []  # node ids
        self.evidence_of: dict[str, PlannedItem] = {}  # by node id
        self.reports: dict[str, ItemReport] = {}  # by node id, in the order they ended
        self.report: RunReport | None = None
        self._restore_signals: Callable[[], None] = lambda: None

    def load(self) -> None:
        """Read settings and catalog; raises `UsageProblem` in one line."""
        from pytest_cre.campaign import Campaign
        from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
        from pytest_cre.catalog.options import check_options
        from pytest_cre.formats.selector import parse_selector
        from pytest_cre.plan.scales import nodes_per_group_of

        if self.config.getoption("numprocesses", None) or self.config.getoption("tx", None):
            raise UsageProblem(
                "-n: entries take the whole fabric one after another, so a certification runs in "
                "one process; leave out -n, or add -n 0"
            )
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
        try:
            parse_selector(self.settings.node_selector)
        except ValueError as problem:
            raise UsageProblem(f"--cre-node-selector: {problem}") from None
        self.catalog.check_architecture(self.settings.architecture)
        check_options(self.catalog, self.settings.options)
        if self.settings.scale is not None:
            nodes_per_group_of(self.settings.scale)
        self.campaign = Campaign(self.settings, self.catalog, self._tell)
        self._restore_signals = turn_signals_into_interrupts()

    def _tell(self, line: str) -> None:
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
                ids = item_rules.case_ids(cases)
            except UsageProblem as problem:
                # Raised here it would become a traceback; `select` ends the run in one line.
                self.problems.append(problem)
        if cases:
            metafunc.parametrize("cre_entry", cases, indirect=True, ids=ids)
        else:
            metafunc.parametrize("cre_entry", [None], indirect=True, ids=[item_rules.NO_ENTRY_ID])

    def select(self, items: list[pytest.Item]) -> None:
        """Take out the items that were not asked for or have no entry."""
        for problem in self.problems:
            raise pytest.UsageError(str(problem))
        kept: list[pytest.Item] = []
        unasked: list[pytest.Item] = []
        for item in items:
            if item.get_closest_marker(MARKER) is None:
                kept.append(item)
            elif not self.is_asked_for:
                unasked.append(item)
            elif _case_of(item) is not None or "cre_entry" not in _fixtures_of(item):
                kept.append(item)
        if len(kept) < len(items):
            items[:] = kept
        if unasked:
            self.config.hook.pytest_deselected(items=unasked)

    def plan(self, items: list[pytest.Item]) -> None:
        """Remember which items this run promises to certify."""
        from pytest_cre.evidence.manifest import plan_folders

        marked = [item for item in items if item.get_closest_marker(MARKER)]
        self.planned = [item.nodeid for item in marked]
        cases = {item.nodeid: _case_of(item) for item in marked}
        self.evidence_of = plan_folders(
            (node_id, case.entry.name, case.scale) for node_id, case in cases.items() if case
        )

    # Running

    @property
    def _is_dry_run(self) -> bool:
        """Return whether pytest only shows what it would do."""
        return bool(self.config.option.collectonly or self.config.option.setupplan)

    def open(self) -> None:
        """Start the local cluster that the settings name, if anything is to be run."""
        if self.planned and not self._is_dry_run:
            with usage_errors():
                self.campaign.open()
            self._note_progress()

    def case_of(self, request: pytest.FixtureRequest) -> EntryCase:
        """Return what the requesting item runs."""
        case = _case_of(request.node)
        if case is None:
            raise UsageProblem(
                f"{request.node.nodeid}: cre_ fixtures of an entry need a test function with "
                f"@pytest.mark.{MARKER}('domain/variant')"
            )
        return case

    def run(self, item: pytest.Item, case: EntryCase) -> "WorkflowRun":
        """Run the item's entry; what kept it from running ends the item here, in set-up."""
        from pytest_cre.results import WorkflowRun

        state = self._state(item)

        def modify(manifests: list[dict[str, object]]) -> None:
            self.config.hook.pytest_cre_modify_manifests(
                config=self.config, entry=case.entry, manifests=manifests
            )

        planned = self.evidence_of.get(item.nodeid)
        refused: CreError | None = None
        try:
            evidence = self.campaign.run(case, modify, self.campaign.evidence_folder(planned))
        except CreError as problem:
            refused = problem  # ended below: raised in here, pytest would show both
        if refused is not None:
            self._end(state, "error", str(refused))
        assessor = self.campaign.assessor
        measurements = assessor.measure(evidence)
        state.run = WorkflowRun(
            case=case,
            evidence=evidence,
            measurements=measurements,
            limits=assessor.limits(evidence, measurements),
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
        state = self._state(item)
        state.verdict = self.campaign.assessor.judge(run.evidence, run.measurements, run.limits)
        if state.verdict.code != "pass":
            self._end_with(state, state.verdict)

    def record(self, item: pytest.Item, name: str, value: float, unit: str) -> None:
        """Add a figure of the user's own to the item's report."""
        if not str(name).strip() or not math.isfinite(value):
            raise ValueError(
                f"cre_record: needs a name and a finite number, got {name!r} and {value!r}"
            )
        self._state(item).figures.append((str(name), float(value), str(unit)))

    @contextmanager
    def interrupts_named(self, item: pytest.Item) -> Iterator[None]:
        """Give an interrupted item a report of its own; pytest would write one without a name."""
        self._state(item).started_s = time.monotonic()
        try:
            yield
        except KeyboardInterrupt:
            if item.get_closest_marker(MARKER) and item.nodeid not in self.reports:
                self._report_interrupt(item)
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
        self._end(state, verdict.code, self._text_of(state, verdict))

    def _text_of(self, state: ItemState, verdict: "ItemVerdict") -> str:
        return self.campaign.assessor.text_of(verdict, state.run.evidence if state.run else None)

    def _end(self, state: ItemState, code: "Code", text: str) -> NoReturn:
        """End the item with a verdict that is not a pass; the text is the whole report of it."""
        __tracebackhide__ = True
        state.code, state.text = code, text
        if code in ("unmet", "no-limit", "not-applicable"):
            pytest.skip(text)
        pytest.fail(text, pytrace=False)

    def _state(self, item: pytest.Item) -> ItemState:
        return item.stash.setdefault(STATE_KEY, ItemState())

    # Reports

    def add_properties(self, item: pytest.Item, when: str) -> None:
        """Put the verdict's figures on the item, for pytest's own JUnit file."""
        if when == "teardown" and item.get_closest_marker(MARKER):
            item.user_properties.extend(self._properties(item))

    def _properties(self, item: pytest.Item) -> list[tuple[str, object]]:
        from pytest_cre.report.junit import case_properties

        return list(case_properties(self._item_report(item)))

    def complete_report(self, item: pytest.Item, report: pytest.TestReport) -> pytest.TestReport:
        """Note the outcome of a phase; a pass without complete evidence becomes a failure."""
        if item.get_closest_marker(MARKER) is None:
            return report
        state = self._state(item)
        verdict = state.verdict or state.evidence_verdict
        is_bad = verdict is not None and verdict.code in BAD
        has_escaped = report.passed or (report.skipped and state.code == "pass")
        if report.when == "call" and has_escaped and verdict is not None and is_bad:
            # Neither a skip nor an expected failure may hide what the hardware did.
            report.outcome = "failed"
            report.__dict__.pop("wasxfail", None)
            state.code, state.text = verdict.code, self._text_of(state, verdict)
            report.longrepr = state.text
        if report.when == "call" and report.passed and state.run is None:
            state.code, state.text = "unmet", "the test passed without running an entry"
        elif report.when == "call" and report.passed and not (state.was_read or state.verdict):
            state.code = "no-limit"
            state.text = "the test looked at no figure and did not call cre_check"
        if report.failed and state.code in NOT_BAD:
            state.code = "fail" if report.when == "call" else "error"
            state.text = _words_of(report)
        elif report.skipped and state.code == "pass":
            state.code = "unmet" if state.run is None else "no-limit"
            state.text = _words_of(report)
        if report.when == "teardown":
            setattr(report, REPORT_ATTRIBUTE, self._item_report(item).to_dict())
        return report

    def collect(self, report: pytest.TestReport) -> None:
        """Take what a finished item reported, from this process or a worker's."""
        plain = getattr(report, REPORT_ATTRIBUTE, None)
        if plain is not None:
            from pytest_cre.report.model import ItemReport

            self.reports[report.nodeid] = ItemReport.from_dict(plain)
            self._note_progress()

    def _note_progress(self) -> None:
        """Put what is known of the run beside its evidence; a full disk is told once, at the end."""
        with suppress(EvidenceProblem):
            report = self.campaign.report(tuple(self.reports.values()), self.planned)
            self.campaign.write_manifest(report, self.evidence_of, is_finished=False)

    def header_lines(self) -> list[str]:
        """Return the lines of pytest's header."""
        from pytest_cre.report.terminal import header_lines

        return header_lines(self.settings, self.catalog)

    def _item_report(self, item: pytest.Item) -> "ItemReport":
        """Return the report of an item as far as it has come."""
        from dataclasses import replace

        from pytest_cre.judge.verdict import ItemVerdict
        from pytest_cre.report.model import item_report

        state, case = self._state(item), _case_of(item)
        planned = self.evidence_of.get(item.nodeid)
        verdict = state.verdict or state.evidence_verdict
        decided_by: DecidedBy = "limits" if state.verdict else "evidence"
        if verdict is None or verdict.code != state.code:
            decided_by = "test"
            reason = state.text.strip().splitlines()[:1]
            verdict = ItemVerdict(
                entry=case.entry.name if case else item.name,
                scale=case.scale if case else item_rules.FULL_SCALE,
                code=state.code,
                groups=verdict.groups if verdict else (),
                reasons=tuple(reason),
            )
        if state.code == "pass" and state.verdict is None:
            decided_by = "test"
            # The test's own assertions were the limits.
            groups = tuple(
                replace(
                    group,
                    code="pass",
                    reasons=(),
                    checks=tuple(replace(check, code="pass") for check in group.checks),
                )
                for group in verdict.groups
            )
            verdict = replace(verdict, groups=groups, reasons=())
        return item_report(
            verdict,
            state.run.evidence if state.run else None,
            node_id=item.nodeid,
            duration_s=round(time.monotonic() - state.started_s, 3),
            recorded=state.figures,
            text=state.text,
            decided_by=decided_by,
            folder=planned.folder if planned and state.run and self.settings.evidence_dir else None,
        )

    def _report_interrupt(self, item: pytest.Item) -> None:
        """Log a failed report for the item in flight, so that JUnit names it."""
        state = self._state(item)
        state.code = "inconclusive"
        elapsed_s = time.monotonic() - state.started_s
        state.text = f"INCONCLUSIVE: interrupted after {elapsed_s:.0f} s"
        for when in ("call", "teardown"):
            outcome: Literal["passed", "failed"] = "failed" if when == "call" else "passed"
            report = pytest.TestReport(
                nodeid=item.nodeid,
                location=item.location,
                keywords={},
                outcome=outcome,
                longrepr=state.text if when == "call" else None,
                when=when,
                duration=elapsed_s if when == "call" else 0.0,
                user_properties=self._properties(item),
            )
            if when == "teardown":
                setattr(report, REPORT_ATTRIBUTE, self._item_report(item).to_dict())
            item.ihook.pytest_runtest_logreport(report=report)

    def finish(self, session: pytest.Session) -> None:
        """Clean up, come to the run's result, write the files, set the exit code."""
        never_began = session.exitstatus == pytest.ExitCode.USAGE_ERROR
        if never_began or not self.planned or self._is_dry_run:
            return
        with interrupts_ignored():  # bounded: another Ctrl-C must not cost the reports
            self._conclude(session)

    def _conclude(self, session: pytest.Session) -> None:
        self.report = self.campaign.conclude(tuple(self.reports.values()), self.planned)
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = self.report.exit_code
        try:
            self.campaign.write_manifest(self.report, self.evidence_of, is_finished=True)
        except EvidenceProblem as problem:
            self._tell(str(problem))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._write_files(session, self.report)

    def write_summary(self, terminal: pytest.TerminalReporter) -> None:
        """Write the certification's own section of the terminal summary."""
        if self.report is None or terminal.no_summary:
            return
        from pytest_cre.report.terminal import summary_lines

        terminal.section("certification")
        for line, markup in summary_lines(self.report):
            terminal.write_line(line, **markup)

    def close(self) -> None:
        """End what was started; safe to call twice and after any failure."""
        if self.is_asked_for and hasattr(self, "campaign"):
            self.campaign.close()
        self._restore_signals()

    def _write_files(self, session: pytest.Session, report: "RunReport") -> None:
        """Write the files that the settings name; what cannot be written fails the run."""
        from pytest_cre.report.json import render_json
        from pytest_cre.report.metrics_junit import render_metrics_junit

        files = (
            (self.settings.json_file, render_json),
            (self.settings.junit_file, render_metrics_junit),
        )
        for path, render in files:
            if path is None:
                continue
            try:
                write_whole(path, render(report))
            except OSError as problem:
                self._tell(f"{path} cannot be written: {problem.strerror}")
                session.exitstatus = pytest.ExitCode.TESTS_FAILED


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees either the old one or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # a device or a pipe is not to be replaced
        path.write_text(text, encoding="utf-8")
        return
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _words_of(report: pytest.TestReport) -> str:
    """Return what an assertion or an exception says, without the code around it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.message)
    if isinstance(report.longrepr, tuple):  # a skip: file, line, reason
        return str(report.longrepr[2])
    return report.longreprtext


def _case_of(item: pytest.Item) -> EntryCase | None:
    """Return what an item runs, or None for one without an entry."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("cre_entry") if callspec is not None else None


def _fixtures_of(item: pytest.Item) -> tuple[str, ...]:
    return tuple(getattr(item, "fixturenames", ()))
