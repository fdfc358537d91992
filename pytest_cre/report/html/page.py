"""The page of a run: result, cluster, table of figures, what was not tested, then each item."""

import json
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from pytest_cre.report.diagnosis import DiagnosisReport
from pytest_cre.report.html.elements import (
    bullets,
    element,
    facts,
    folded,
    number,
    table,
    verdict,
)
from pytest_cre.report.html.style import POLICY, STYLE
from pytest_cre.report.model import (
    SIMULATED_NOTE,
    CheckReport,
    GroupReport,
    ItemReport,
    PlatformReport,
    RunReport,
    plain,
)
from pytest_cre.report.table import item_reason, margin_words
from pytest_cre.report.terminal import result_line

FIGURES = (
    *("entry", "group", "metric", "measured", "limit", "margin", "verdict", "source of the limit"),
)

STAGES = ("stage", "tests", "passed", "failed", "without limit", "no result")


def render_html(report: RunReport) -> str:
    """Return the page; the same report gives the same bytes."""
    title = result_line(report)
    page = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", **{"http-equiv": "Content-Security-Policy"}, content=POLICY),
            element("meta", name="viewport", content="width=device-width"),
            element("title", title),
            _style(),
        ),
        element("body", *_sections(report, title)),
        lang="en",
    )
    return "<!DOCTYPE html>\n" + ET.tostring(page, encoding="unicode", method="html") + "\n"


def _style() -> ET.Element:
    made = ET.Element("style")
    made.text = STYLE  # written as it is
    return made


def _sections(report: RunReport, title: str) -> Iterator[ET.Element]:
    yield element("h1", verdict(report.result), f" {title}")
    if report.is_simulated:
        yield element("p", SIMULATED_NOTE, class_="note")
    yield _run_facts(report)
    warnings = bullets(f"warning: {word}" for word in report.warnings)
    if warnings is not None:
        yield warnings
    yield element("h2", "Figures")
    yield table(FIGURES, list(_figure_rows(report)), numeric=(3, 4, 5))
    yield from _untested(report)
    yield element("h2", "Items")
    for item in report.items:
        yield _item(item)
    settings = [
        (name, json.dumps(plain(value), sort_keys=True, ensure_ascii=False))
        for name, value in sorted(report.settings.items())
        if value is not None
    ]
    yield folded("Settings", facts(settings))


def _run_facts(report: RunReport) -> ET.Element:
    cluster = report.cluster
    return facts(
        [
            ("run", report.run_id),
            ("cluster", " ".join(filter(None, (cluster.kind, cluster.server_version)))),
            ("namespace", cluster.namespace),
            ("architecture", report.architecture or "unknown"),
            ("platform", _platform_words(report.platform) if report.platform else None),
            ("nodes", f"{len(report.nodes)}: {', '.join(report.nodes)}"),
            ("catalog", report.catalog_sha256),
            ("pytest-cre", report.plugin_version),
        ]
    )


def _figure_rows(report: RunReport) -> "Iterator[list[ET.Element | str | None]]":
    for item in report.items:
        checks = [(group, check) for group in item.groups for check in group.checks]
        for group, check in checks:
            yield [item.title, group.title, *_check_cells(check)]
        if not checks:
            yield [item.title, "-", "-", "-", "-", "-", verdict(item.code), "-"]
        for name, figure in item.recorded.items():
            yield [
                item.title,
                "-",
                name,
                number(figure.value, figure.unit),
                "-",
                "-",
                "recorded",
                "-",
            ]


def _check_cells(check: CheckReport) -> "list[ET.Element | str | None]":
    limit: ET.Element | str = "-"
    if check.limit is not None:
        limit = element("span", f"{check.operator} ", number(check.limit, check.unit))
    margin: ET.Element | str = "-"
    if check.margin is not None:
        margin = element("data", margin_words(check.margin), value=repr(check.margin))
    source = ", ".join(filter(None, (check.tier, check.source, check.date, check.place)))
    return [
        " ".join(filter(None, (check.metric, check.statistic))),
        number(check.measured, check.unit),
        limit,
        margin,
        verdict(check.code),
        source or "-",
    ]


def _untested(report: RunReport) -> Iterator[ET.Element]:
    if report.excluded:
        yield element("h2", "Excluded nodes")
        rows = [(each.node, each.reason, each.message) for each in report.excluded]
        yield table(("node", "reason", "message"), rows)
    suspects = sorted(
        {
            (each.node, each.reason, item.title, each.message)
            for item in report.items
            for each in item.failed_nodes
        }
    )
    if suspects:
        yield element("h2", "Nodes under suspicion")
        yield table(("node", "reason", "entry", "message"), suspects)
    for heading, names in (
        ("Left behind in the cluster", report.leftovers),
        ("Planned and never run", report.not_run),
    ):
        found = bullets(names)
        if found is not None:
            yield element("h2", heading)
            yield found


def _item(item: ItemReport) -> ET.Element:
    about = facts(
        [
            ("test", item.node_id),
            ("reason", item_reason(item) if item.code != "pass" else None),
            ("decided by", item.decided_by),
            ("kind", ", ".join(filter(None, (item.kind, item.kind_reason)))),
            ("architecture", item.architecture),
            ("GPUs", number(item.gpus)),
            ("duration", number(item.duration_s, "s")),
            ("evidence", item.evidence),
            *((f"option {name}", value) for name, value in item.options.items()),
        ]
    )
    shown = element("pre", item.text) if item.text else None
    return folded(
        f"{item.code}: {item.title}",
        about,
        bullets(item.reasons),
        _diagnosis(item.diagnosis) if item.diagnosis is not None else None,
        *(_group(group) for group in item.groups),
        folded("What pytest showed", shown) if shown is not None else None,
        is_open=item.code in ("fail", "inconclusive", "error"),
    )


def _platform_words(platform: PlatformReport) -> str:
    instead = f", with the settings of {platform.settings}" if platform.settings else ""
    return f"{platform.name}{instead} (told by {platform.told_by})"


def _diagnosis(report: DiagnosisReport) -> ET.Element:
    """Return what a diagnosis found: each node's state, and its tests by stage."""
    nodes = [(each.node, each.domain, each.state, each.reason or "-") for each in report.nodes]
    faults = [
        (each.cause, ", ".join(each.nodes), ", ".join(each.others) or "-")
        for each in report.infrastructure
    ]
    return element(
        "section",
        element("h3", f"Diagnosis: {len(report.tests)} tests in {report.rounds} rounds"),
        table(STAGES, report.stage_rows(), numeric=range(1, len(STAGES))),
        table(("node", "domain", "state", "cause"), nodes),
        table(("fault between", "nodes", "and nodes"), faults) if faults else None,
    )


def _group(group: GroupReport) -> ET.Element:
    figures = [
        (name, number(figure.value), figure.unit) for name, figure in sorted(group.figures.items())
    ]
    log = group.failure_log
    return element(
        "section",
        element("h3", verdict(group.code), f" {group.title}{', retried' * group.is_retried}"),
        facts(
            [
                ("nodes", f"{len(group.nodes)}: {', '.join(group.nodes)}"),
                ("queued", _seconds(group.queue_s)),
                ("started within", _seconds(group.start_s)),
                ("ran", _seconds(group.run_s)),
                ("restarts", number(group.restarts) if group.restarts else None),
            ]
        ),
        bullets([*group.reasons, *(f"warning: {word}" for word in group.warnings)]),
        folded("All figures", table(("figure", "value", "unit"), figures, numeric=(1,)))
        if figures
        else None,
        folded(log.title, element("pre", log.text or "nothing was captured")) if log else None,
    )


def _seconds(value: float | None) -> "ET.Element | str | None":
    return None if value is None else number(value, "s")
