"""Properties for pytest's own JUnit file: one scalar each, value and unit apart, all text."""

import math
from collections.abc import Iterable

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
            found.append((f"cre.group.{name_from(group.title)}.verdict", group.code))
            for check in group.checks:
                found += _check_properties(check, f".{name_from(group.title)}")
    for name, figure in item.recorded.items():
        found += _figure_properties(f"cre.recorded.{name_from(name)}", figure)
    found += [(f"cre.option.{name_from(name)}", value) for name, value in item.options.items()]
    return _texts(found)


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
    return _texts(found)


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
        ("cre.queue_s", group.queue_s),
        ("cre.start_s", group.start_s),
        ("cre.run_s", group.run_s),
    ]
    for check in group.checks:
        found += _check_properties(check, "")
    for each in group.failed_nodes:
        name = f"cre.failed_node.{name_from(each.node)}.{name_from(each.reason)}"
        found.append((name, each.message))
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
