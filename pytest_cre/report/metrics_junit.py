"""The metric-level JUnit file: one suite per entry, one case per metric and group.

For readers that know only cases and their text: every number is in the case's text, in the form
`name=value`. Written with junit-xml, whose `disabled` count and missing times are put right.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from pytest_cre.judge.diagnose import finding_words
from pytest_cre.judge.verdict import Code
from pytest_cre.report.diagnosis import STATE_CODES
from pytest_cre.report.failurelog import FailureLog
from pytest_cre.report.junit import check_values, suite_properties, value_text
from pytest_cre.report.model import (
    SIMULATED_NOTE,
    CheckReport,
    Figure,
    GroupReport,
    ItemReport,
    RunReport,
)
from pytest_cre.report.table import item_reason
from pytest_cre.report.text import brief, clipped, name_from, one_line

if TYPE_CHECKING:
    from junit_xml import TestCase

RUN_SUITE = "certification"
COUNTS = ("tests", "failures", "errors", "skipped")
_RETRIED: Code = "unmet"  # skipped, for a reader of the file: another attempt counts
TEXT_BYTES = 64 * 1024  # of one case; libxml2 refuses text above 10,000,000 bytes


def render_metrics_junit(report: RunReport) -> str:
    """Return the metric-level JUnit file of a run.

    Cases are named by entry, scale, metric and group, so that names are the same in every run.
    Nodes that were not used are skipped cases of a suite of their own, planned items that never
    ran are errors there, and so is a run that is INCOMPLETE: no reader may take it for a pass.
    """
    items = sorted(report.items, key=lambda item: (item.entry, item.scale, item.node_id))
    shared = Counter((item.entry, item.scale) for item in items)
    cases: dict[str, list[TestCase]] = {}
    for item in items:
        is_shared = shared[item.entry, item.scale] > 1
        cases.setdefault(item.entry, []).extend(_item_cases(item, is_shared=is_shared))
    run_cases = _run_cases(report)
    if run_cases or not cases:
        cases[RUN_SUITE] = run_cases
    return _document(report, cases)


def _item_cases(item: ItemReport, *, is_shared: bool) -> "list[TestCase]":
    classname = item.title.replace("/", ".").replace("@", ".")
    # Two tests of one entry would have cases of one name, of which readers keep the first only.
    suffix = f" ({item.node_id})" if is_shared else ""
    found = []
    for group in item.groups:
        for index, check in enumerate(group.checks):
            name = f"{check.key} {group.title}{suffix}"
            text = _case_text(item, group, check_values(check), group.figures)
            message = _message(check, group)
            # Readers sum the times of cases, so a group's time stands at its first one only.
            elapsed_s = group.run_s if index == 0 else None
            log = group.failure_log if index == 0 else None  # once is enough of 32 KiB
            code = _RETRIED if group.is_retried else check.code
            found.append(_case(name, classname, elapsed_s, text, code, message, log))
        if not group.checks:
            text = _case_text(item, group, [], group.figures)
            message = _message(None, group)
            name = f"verdict {group.title}{suffix}"
            log = group.failure_log
            code = _RETRIED if group.is_retried else group.code
            found.append(_case(name, classname, group.run_s, text, code, message, log))
    found += _node_cases(item, classname, suffix)
    told = [group.code for group in item.groups if not group.is_retried]
    if item.code not in told:
        message = brief(item_reason(item))
        text = _case_text(item, None, [], {})
        found.append(
            _case(f"verdict{suffix}", classname, item.duration_s, text, item.code, message)
        )
    if item.recorded:
        text = _case_text(item, None, [], item.recorded)
        found.append(_case(f"recorded{suffix}", classname, None, text, "pass", ""))
    return found


def _node_cases(item: ItemReport, classname: str, suffix: str) -> "list[TestCase]":
    """Return one case for each node of a diagnosis."""
    found = []
    for each in item.diagnosis.nodes if item.diagnosis else ():
        code = STATE_CODES[each.state]
        if code == "pass" and item.code == "no-limit":
            code = item.code  # it passed tests that nothing judged
        words = finding_words(each) if each.state != "healthy" else each.state
        found.append(_case(f"node {each.node}{suffix}", classname, None, words, code, words))
    return found


def _message(check: CheckReport | None, group: GroupReport) -> str:
    """Return why a check is not a pass: the reason of its metric, else the group's first one."""
    metric = check.metric if check is not None else ""
    of_metric = [each for each in group.reasons if metric and each.startswith(f"{metric} ")]
    code = check.code if check is not None else group.code
    was_retried = "lost and made again: " if group.is_retried else ""
    return brief(was_retried + (*of_metric, *group.reasons, code)[0])


def _case_text(
    item: ItemReport,
    group: GroupReport | None,
    values: Iterable[tuple[str, object]],
    figures: Mapping[str, Figure],
) -> str:
    """Return every number of a case, one `name=value` a line, then reasons in words."""
    facts: list[tuple[str, object]] = [*values]
    for name, figure in figures.items():
        facts.append((f"figure.{name_from(name)}", figure.value))
        facts.append((f"figure.{name_from(name)}.unit", figure.unit))
    facts += [
        ("entry", item.entry),
        ("scale", item.scale),
        ("architecture", item.architecture),
        ("simulated", item.is_simulated),
        ("test", item.node_id),
    ]
    lines = [*item.reasons, *item.text.splitlines()]
    if group is not None:
        facts += [("group", group.group), ("attempt", group.attempt), ("nodes", len(group.nodes))]
        facts += [("node", node) for node in group.nodes]
        facts += [("restarts", group.restarts), ("retried", group.is_retried)]
        facts += [("queue_s", group.queue_s), ("start_s", group.start_s), ("run_s", group.run_s)]
        lines = [*group.reasons, *(f"warning: {warning}" for warning in group.warnings)]
    numbers = [f"{name}={value_text(value)}" for name, value in facts if value is not None]
    note = [SIMULATED_NOTE] if item.is_simulated else []
    return "\n".join([*numbers, *(brief(line) for line in lines), *note])


def _run_cases(report: RunReport) -> "list[TestCase]":
    found = [
        _case(
            f"excluded {each.node}",
            RUN_SUITE,
            None,
            f"node={brief(each.node)}\nreason={each.reason}",
            "unmet",
            brief(f"{each.reason}: {each.message}"),
        )
        for each in report.excluded
    ]
    found += [
        _case(f"not run: {node_id}", RUN_SUITE, None, "", "error", "planned and never run")
        for node_id in report.not_run
    ]
    if report.leftovers:
        text = "\n".join(brief(name) for name in report.leftovers)
        message = f"{len(report.leftovers)} objects were left behind in the cluster"
        found.append(_case("clean-up", RUN_SUITE, None, text, "error", message))
    if report.result == "INCOMPLETE" or not report.items:
        message = f"certification {report.result}: not everything was tested"
        found.append(_case("result", RUN_SUITE, None, f"result={report.result}", "error", message))
    return found


def _case(
    name: str,
    classname: str,
    elapsed_s: float | None,
    text: str,
    code: Code,
    message: str,
    log: FailureLog | None = None,
) -> "TestCase":
    from junit_xml import TestCase

    text = clipped(text, head_bytes=TEXT_BYTES // 2, tail_bytes=TEXT_BYTES // 2)
    case = TestCase(
        brief(name),
        classname=brief(classname),
        elapsed_sec=elapsed_s,
        stdout=text,
        stderr=f"{log.title}:\n{log.text}" if log else None,
    )
    output = f"{message}\n{text}"
    if code in ("fail", "inconclusive"):
        prefix = "INCONCLUSIVE: " if code == "inconclusive" else ""
        case.add_failure_info(prefix + message, prefix + output, code)
    elif code == "error":
        case.add_error_info(message, output, code)
    elif code != "pass":
        case.add_skipped_info(message, output)
    return case


def _document(report: RunReport, cases: "Mapping[str, list[TestCase]]") -> str:
    from junit_xml import TestSuite

    properties = dict(suite_properties(report))
    root = ET.Element("testsuites", name="cre")
    for name, suite_cases in cases.items():
        suite = TestSuite(one_line(name), suite_cases, properties=properties)
        root.append(suite.build_xml_doc())
    totals: Counter[str] = Counter()
    for suite_element in root:
        suite_element.attrib.pop("disabled", None)  # no JUnit schema knows it there
        for case_element in suite_element.iter("testcase"):
            case_element.attrib.setdefault("time", "0.000000")  # left out where it is 0
        totals.update(
            {
                key: int(suite_element.get(key, 0))
                for key in ("tests", "failures", "errors", "skipped")
            }
        )
    seconds = sum(float(each.get("time", 0)) for each in root)
    for key, count in totals.items():
        root.set(key, str(count))
    root.set("time", f"{seconds:.6f}")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="utf-8"?>\n', "\n")
    )
