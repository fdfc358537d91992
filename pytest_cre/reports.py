"""What the items of a run came to, and the lines and files that tell it."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from pytest_cre.errors import EvidenceProblem
from pytest_cre.items import FULL_SCALE, MARKER, case_of
from pytest_cre.itemstate import BAD, ItemState, state_of

if TYPE_CHECKING:
    from pytest_cre.campaign import Campaign
    from pytest_cre.evidence.manifest import PlannedItem
    from pytest_cre.judge.verdict import ItemVerdict
    from pytest_cre.news import News
    from pytest_cre.report.model import DecidedBy, ItemReport, RunReport
    from pytest_cre.suiteproperties import SuiteProperties

REPORT_ATTRIBUTE = "cre"  # a plain dict on the teardown report, so that it crosses xdist

Promise = tuple[str, str | None, str | None]  # node id, entry, scale; None: a test without an entry


class Reports:
    """The reports of a run's items, from whichever process ran them, and of the run itself."""

    def __init__(self, campaign: "Campaign", news: "News") -> None:
        self._campaign = campaign
        self._settings = campaign.settings
        self._news = news
        self.planned: list[str] = []  # node ids
        self.evidence_of: dict[str, PlannedItem] = {}  # by node id
        self.items: dict[str, ItemReport] = {}  # by node id
        self.run: RunReport | None = None
        self._suite: SuiteProperties | None = None

    def plan(self, promised: Iterable[Promise]) -> None:
        """Remember which items this run promises to certify."""
        from pytest_cre.evidence.manifest import plan_folders

        promised = list(promised)
        self.planned = [node_id for node_id, _, _ in promised]
        self.evidence_of = plan_folders(
            (node_id, entry, scale) for node_id, entry, scale in promised if entry and scale
        )

    # Items

    def text_of(self, state: ItemState, verdict: "ItemVerdict") -> str:
        """Return what pytest shows of an item with this verdict."""
        return self._campaign.assessor.text_of(verdict, state.run.evidence if state.run else None)

    def complete(self, item: pytest.Item, report: pytest.TestReport) -> pytest.TestReport:
        """Note the outcome of a phase; a pass without complete evidence becomes a failure."""
        if item.get_closest_marker(MARKER) is None:
            return report
        state = state_of(item)
        verdict = state.verdict or state.evidence_verdict
        is_bad = verdict is not None and verdict.code in BAD
        has_escaped = report.passed or (report.skipped and state.code == "pass")
        if report.when == "call" and has_escaped and verdict is not None and is_bad:
            # Neither a skip nor an expected failure may hide what the hardware did.
            report.outcome = "failed"
            report.__dict__.pop("wasxfail", None)
            state.code, state.text = verdict.code, self.text_of(state, verdict)
            report.longrepr = state.text
        if report.when == "call" and report.passed and state.run is None:
            state.code, state.text = "unmet", "the test passed without running an entry"
        elif report.when == "call" and report.passed and not (state.was_read or state.verdict):
            state.code = "unmet"  # no lack of a limit, which a user may accept
            state.text = "the test looked at no figure and did not call cre_check"
        if report.failed and state.code not in BAD:
            state.code = "fail" if report.when == "call" else "error"
            state.text = _words_of(report)
        elif report.skipped and state.code == "pass":
            state.code = "unmet"
            state.text = _skip_words(report, has_run=state.run is not None)
        if report.when == "teardown":
            self.attach(report, self._item_report(item))
        return report

    def attach(self, report: pytest.TestReport, item: "ItemReport") -> None:
        """Put an item's report on pytest's, whole for us and as properties for its JUnit file."""
        from pytest_cre.report.junit import case_properties

        report.user_properties.extend(case_properties(item))
        setattr(report, REPORT_ATTRIBUTE, item.to_dict())

    def collect(self, report: pytest.TestReport) -> None:
        """Take what a finished item reported, from this process or a worker's."""
        plain = getattr(report, REPORT_ATTRIBUTE, None)
        if plain is not None:
            from pytest_cre.report.model import ItemReport

            self.items[report.nodeid] = ItemReport.from_dict(plain)
            self.note_progress()

    def report_interrupt(self, item: pytest.Item) -> None:
        """Log a failed report for the item in flight, so that JUnit names it."""
        state = state_of(item)
        state.code = "inconclusive"
        elapsed_s = time.monotonic() - state.started_s
        state.text = f"INCONCLUSIVE: interrupted after {elapsed_s:.0f} s"
        call = _phase_report(item.nodeid, item.location, "call", state.text, elapsed_s)
        teardown = _phase_report(item.nodeid, item.location, "teardown", None)
        self.attach(teardown, self._item_report(item))
        for report in (call, teardown):
            item.ihook.pytest_runtest_logreport(report=report)

    def crashed(self, node_id: str, text: str) -> tuple[pytest.TestReport, pytest.TestReport]:
        """Return the reports, of set-up and teardown, of an item whose process died under it."""
        from pytest_cre.report.model import ItemReport

        planned = self.evidence_of.get(node_id)
        location = (node_id.partition("::")[0], None, node_id)
        teardown = _phase_report(node_id, location, "teardown", None)
        item = ItemReport(
            node_id=node_id,
            entry=planned.entry if planned else node_id.rpartition("::")[2],
            scale=planned.scale if planned else FULL_SCALE,
            code="error",
            reasons=(text,),
            text=text,
        )
        self.attach(teardown, item)
        return _phase_report(node_id, location, "setup", text), teardown

    def _item_report(self, item: pytest.Item) -> "ItemReport":
        """Return the report of an item as far as it has come."""
        from pytest_cre.judge.verdict import ItemVerdict
        from pytest_cre.report.model import item_report

        state, case = state_of(item), case_of(item)
        planned = self.evidence_of.get(item.nodeid)
        verdict = state.verdict or state.evidence_verdict
        decided_by: DecidedBy = "limits" if state.verdict else "evidence"
        if verdict is None or verdict.code != state.code:
            decided_by = "test"
            reason = state.text.strip().splitlines()[:1]
            verdict = ItemVerdict(
                entry=case.entry.name if case else item.name,
                scale=case.scale if case else FULL_SCALE,
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
        elif state.verdict is None:
            from pytest_cre.judge.group import unjudged

            verdict = replace(verdict, groups=tuple(unjudged(each) for each in verdict.groups))
        return item_report(
            verdict,
            state.run.evidence if state.run else None,
            node_id=item.nodeid,
            duration_s=round(time.monotonic() - state.started_s, 3),
            recorded=state.figures,
            text=state.text,
            decided_by=decided_by,
            folder=(
                planned.folder if planned and state.run and self._settings.evidence_dir else None
            ),
        )

    # The run

    @property
    def in_order(self) -> "tuple[ItemReport, ...]":
        """Return the reports in the order of the plan, whichever worker was first."""
        return tuple(self.items[node_id] for node_id in self.planned if node_id in self.items)

    def note_progress(self) -> None:
        """Put what is known of the run beside its evidence; a full disk is told once, at the end."""
        if self._settings.evidence_dir is None or self._campaign.seat.is_worker:
            return
        with suppress(EvidenceProblem):
            report = self._campaign.report(self.in_order, self.planned)
            self._campaign.write_manifest(report, self.evidence_of, is_finished=False)

    def begin(self) -> None:
        """Replace the files of an earlier run: if this one is killed, they must not speak for it."""
        if not self._campaign.seat.is_worker:
            self._write_files(self._campaign.report((), self.planned), is_first=True)

    def conclude(self, session: pytest.Session) -> None:
        """Clean up, come to the run's result, write the files, set the exit code."""
        self.run = self._campaign.conclude(self.in_order, self.planned)
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = self.run.exit_code
        for problem in (*self._write(self.run), *self._correct_suite(self.run)):
            self._news.tell(problem)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def tell_suite(self, config: pytest.Config) -> None:
        """Give pytest's JUnit file the properties of the run, before it is written."""
        from pytest_cre.report.junit import suite_properties
        from pytest_cre.suiteproperties import SuiteProperties

        self._suite = SuiteProperties(config)
        if self._suite.are_wanted:
            self._suite.tell(suite_properties(self._campaign.report(self.in_order, self.planned)))

    def _correct_suite(self, report: "RunReport") -> list[str]:
        from pytest_cre.report.junit import suite_properties

        try:
            if self._suite is not None:
                self._suite.correct(suite_properties(report))
        except OSError as problem:
            return [f"--junitxml: {problem.filename} cannot be written: {problem.strerror}"]
        return []

    def _write(self, report: "RunReport") -> list[str]:
        """Write the files that the settings name; return why some could not be written."""
        problems = []
        try:
            self._campaign.write_manifest(report, self.evidence_of, is_finished=True)
            for note in self._campaign.save_recording(self.evidence_of):
                self._news.tell(note)
        except EvidenceProblem as problem:
            problems.append(str(problem))
        return [*problems, *self._write_files(report)]

    def _write_files(self, report: "RunReport", *, is_first: bool = False) -> list[str]:
        """Write the report files; return why some could not be written. A pipe takes only the last."""
        from pytest_cre.report.html.page import render_html
        from pytest_cre.report.json import render_json
        from pytest_cre.report.metrics_junit import render_metrics_junit

        problems = []
        files = (
            (self._settings.json_file, render_json),
            (self._settings.junit_file, render_metrics_junit),
            (self._settings.html_file, render_html),
        )
        for path, render in files:
            if path is None or (is_first and not is_replaceable(path)):
                continue
            try:
                write_whole(path, render(report))
            except OSError as problem:
                problems.append(f"{path} cannot be written: {problem.strerror}")
        return problems

    def write_summary(self, terminal: pytest.TerminalReporter) -> None:
        """Write the certification's own section of the terminal summary."""
        if self.run is None or terminal.no_summary:
            return
        from pytest_cre.report.terminal import summary_lines

        terminal.section("certification")
        for line, markup in summary_lines(self.run):
            terminal.write_line(line, **markup)


def is_replaceable(path: Path) -> bool:
    """Return whether a file may take the path's place: not that of a device, a pipe or a link to one."""
    return not path.is_symlink() and (path.is_file() or not path.exists())


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees either the old one or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not is_replaceable(path):
        path.write_text(text, encoding="utf-8")
        return
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _phase_report(
    node_id: str,
    location: tuple[str, int | None, str],
    when: Literal["setup", "call", "teardown"],
    failure: str | None,
    duration_s: float = 0.0,
) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=node_id,
        location=location,
        keywords={},
        outcome="passed" if failure is None else "failed",
        longrepr=failure,
        when=when,
        duration=duration_s,
    )


def _skip_words(report: pytest.TestReport, *, has_run: bool) -> str:
    """Return why a skipped test, or one that failed as it expects to, has judged nothing."""
    words = _words_of(report)
    if not has_run:
        return words
    if hasattr(report, "wasxfail"):
        return f"the test failed, as it expects to: {words}"
    return f"the test was skipped after its entry had run: {words}"


def _words_of(report: pytest.TestReport) -> str:
    """Return what an assertion or an exception says, without the code around it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.message)
    if isinstance(report.longrepr, tuple):  # a skip: file, line, reason
        return str(report.longrepr[2])
    return report.longreprtext
