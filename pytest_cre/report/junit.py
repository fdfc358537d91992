"""Properties for pytest's own JUnit file: one scalar each, value and unit apart, all text."""

import math
from collections.abc import Iterable

from pytest_cre.judge.diagnose import finding_words
from pytest_cre.report.diagnosis import STATE_CODES
from pytest_cre.report.model import (
    SIMULATED_NOTE,
    CheckReport,
    Figure,
    GroupReport,
    ItemReport,
    RunReport,
)
from pytest_cre.report.table import item_reason, worst_group
from pytest_cre.report.text import brief, name_from

Properties = list[tuple[str, str]]


def case_properties(item: ItemReport) -> Properties:
    """Return the properties of an item's case; each name once, what is absent left out.

    `cre.metric.<metric>.*` speak of the worst group. With several groups its name is in
    `cre.group`, and each group has its own `cre.metric.<metric>.<group>.*` as well.
    """
    found: list[tuple[str, object]] = [
        ("cre.entry", item.entry),
        ("cre.scale", item.scale),
        ("cre.kind", item.kind or None),
        ("cre.kind.reason", item.kind_reason or None),
        ("cre.verdict", item.code),
        ("cre.architecture", item.architecture),
        ("cre.nodes", len(item.nodes)),
        ("cre.gpus", item.gpus),
        ("cre.simulated", item.is_simulated),
        ("cre.groups", len({group.group for group in item.groups})),
        ("cre.duration_s", item.duration_s),
    ]
    worst = worst_group(item.groups)
    if item.code != "pass":
        found.append(("cre.reason", item_reason(item)))
    if worst is not None:
        found += _group_properties(worst)
    if worst is not None and len(item.groups) > 1:
        found.append(("cre.group", worst.group))
        for group in item.groups:
            name = f"cre.group.{name_from(group.title)}"
            found.append((f"{name}.verdict", group.code))
            found.append((f"{name}.retried", group.is_retried or None))
            if group.is_retried:
                found.append((f"{name}.reason", (*group.reasons, group.code)[0]))
            for check in group.checks:
                found += _check_properties(check, f".{name_from(group.title)}")
    found += _diagnosis_properties(item)
    for name, figure in item.recorded.items():
        found += _figure_properties(f"cre.recorded.{name_from(name)}", figure)
    found += [(f"cre.option.{name_from(name)}", value) for name, value in item.options.items()]
    return _texts(found)


def _diagnosis_properties(item: ItemReport) -> list[tuple[str, object]]:
    if item.diagnosis is None:
        return []
    report = item.diagnosis
    found: list[tuple[str, object]] = [
        ("cre.diagnosis.rounds", report.rounds),
        ("cre.diagnosis.tests", len(report.tests)),
        *((f"cre.diagnosis.{state}", report.count(state)) for state in STATE_CODES),
    ]
    found += [
        (f"cre.diagnosis.node.{name_from(each.node)}", finding_words(each))
        for each in report.nodes
        if each.state != "healthy"
    ]
    for failure in report.failed_nodes:
        name = f"cre.failed_node.{name_from(failure.node)}.{name_from(failure.reason)}"
        found.append((name, failure.message))
    return found


def suite_properties(report: RunReport) -> Properties:
    """Return the properties of the whole run."""
    found: list[tuple[str, object]] = [
        ("cre.schema", report.schema),
        ("cre.run_id", report.run_id),
        ("cre.result", report.result),
        ("cre.simulated", report.is_simulated),
        ("cre.note", SIMULATED_NOTE if report.is_simulated else None),
        ("cre.cluster", report.cluster.kind),
        ("cre.server.version", report.cluster.server_version),
        ("cre.namespace", report.cluster.namespace),
        ("cre.architecture", report.architecture),
        *_platform_properties(report),
        ("cre.nodes", len(report.nodes)),
        ("cre.planned", len(report.planned)),
        ("cre.not_run", len(report.not_run)),
        ("cre.excluded", len(report.excluded)),
        ("cre.leftovers", len(report.leftovers)),
        ("cre.catalog.sha256", report.catalog_sha256 or None),
        ("cre.plugin.version", report.plugin_version or None),
    ]
    found += [
        (f"cre.excluded.{name_from(each.node)}", f"{each.reason}: {each.message}")
        for each in report.excluded
    ]
    found += [(f"cre.warning.{index}", word) for index, word in enumerate(report.warnings)]
    return _texts(found)


def _platform_properties(report: RunReport) -> list[tuple[str, object]]:
    if report.platform is None:
        return []
    return [
        ("cre.platform", report.platform.name),
        ("cre.platform.told_by", report.platform.told_by),
        ("cre.platform.settings", report.platform.settings),
    ]


def check_values(check: CheckReport) -> list[tuple[str, object]]:
    """Return what a check holds, by the last part of its property's name; absent is None."""
    return [
        ("value", check.measured),
        ("unit", check.unit),
        ("op", check.operator),
        ("limit", check.limit),
        ("margin", check.margin),
        ("verdict", check.code),
        ("statistic", check.statistic or None),
        ("tier", check.tier),
        ("source", check.source),
        ("date", check.date),
    ]


def _group_properties(group: GroupReport) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = [
        ("cre.attempt", group.attempt),
        ("cre.restarts", group.restarts),
        ("cre.queue_s", group.queue_s),
        ("cre.start_s", group.start_s),
        ("cre.run_s", group.run_s),
    ]
    for check in group.checks:
        found += _check_properties(check, "")
    for each in group.failed_nodes:
        name = f"cre.failed_node.{name_from(each.node)}.{name_from(each.reason)}"
        found.append((name, each.message))
    if group.failure_log is not None:
        log = group.failure_log
        values = (("pod", log.pod), ("node", log.node), ("exit_code", log.exit_code))
        found += [(f"cre.failure_log.{name}", value) for name, value in values]
        found.append(("cre.failure_log.reason", log.reason or None))
    for name, figure in group.figures.items():
        found += _figure_properties(f"cre.figure.{name_from(name)}", figure)
    return found


def _check_properties(check: CheckReport, suffix: str) -> list[tuple[str, object]]:
    stem = f"cre.metric.{name_from(check.key)}{suffix}"
    return [(f"{stem}.{name}", value) for name, value in check_values(check)]


def _figure_properties(stem: str, figure: Figure) -> list[tuple[str, object]]:
    return [(f"{stem}.value", figure.value), (f"{stem}.unit", figure.unit)]


def value_text(value: object) -> str:
    """Return a property's value: numbers with every digit, true or false, clean text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return brief(str(value))


def _texts(found: Iterable[tuple[str, object]]) -> Properties:
    """Return text values without what is absent; of equal names the first one counts."""
    texts: dict[str, str] = {}
    for name, value in found:
        if value is not None and not (isinstance(value, float) and not math.isfinite(value)):
            texts.setdefault(name, value_text(value))
    return list(texts.items())
