"""The certification's part of pytest's header and terminal summary, as lines with markup."""

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence, Sized
from typing import Protocol

from pytest_cre.judge.verdict import WORST_FIRST, Code, RunResult
from pytest_cre.judge.words import nodes_words, number_words, place_words
from pytest_cre.report.model import (
    SIMULATED_NOTE,
    GroupReport,
    ItemReport,
    PlatformReport,
    RunReport,
)
from pytest_cre.report.table import (
    WIDTH,
    check_cells,
    diagnosis_lines,
    item_reason,
    severity,
    tabulated,
    worst_group,
)
from pytest_cre.report.text import brief, fit, one_line

Line = tuple[str, dict[str, bool]]

GROUPS_SHOWN = 5  # of one item; the files hold them all
NAMES_SHOWN = 20
CODE_WORDS: Mapping[Code, str] = {
    "pass": "passed",
    "fail": "failed",
    "inconclusive": "inconclusive",
    "no-limit": "without limit",
    "unmet": "unmet",
    "not-applicable": "not applicable",
    "error": "in error",
}
_COLOURS: Mapping[RunResult, str] = {
    "PASSED": "green",
    "FAILED": "red",
    "ERROR": "red",
    "INCOMPLETE": "yellow",
}


class HeaderSettings(Protocol):
    """The settings that the header tells."""

    @property
    def cluster(self) -> str:
        """Return the kind of cluster."""

    @property
    def scenario(self) -> str:
        """Return the scenario of simulated hardware."""

    @property
    def architecture(self) -> str | None:
        """Return the architecture asked for."""


class HeaderCatalog(Protocol):
    """What the header tells of the catalog."""

    @property
    def entries(self) -> Sized:
        """Return the entries."""


def header_lines(settings: HeaderSettings, catalog: HeaderCatalog) -> list[str]:
    """Return the lines of pytest's header; nothing is asked of a cluster."""
    is_local = settings.cluster != "kubernetes"
    where = f"{settings.cluster} ({one_line(settings.scenario)})" if is_local else settings.cluster
    count = len(catalog.entries)
    parts = [
        f"cluster {where}",
        f"{count} catalog {'entry' if count == 1 else 'entries'}",
        f"architecture {one_line(settings.architecture)}" if settings.architecture else "",
        SIMULATED_NOTE if is_local else "",
    ]
    return [f"cre: {', '.join(part for part in parts if part)}"]


def summary_lines(report: RunReport) -> list[Line]:
    """Return the summary: a table of checks, what did not pass and why, exclusions, the result."""
    lines: list[Line] = []
    if report.is_simulated:
        lines.append((SIMULATED_NOTE, {"yellow": True, "bold": True}))
    lines += [(line, {}) for line in (*_where_lines(report), *_kind_lines(report.items))]
    warnings = _wrapped([f"warning: {brief(word)}" for word in report.warnings[:NAMES_SHOWN]])
    lines += [(line, {"yellow": True}) for line in warnings]
    lines.append(("", {}))
    lines += [(line, {}) for line in _table_lines(report.items)]
    for item in report.items:
        if item.diagnosis is not None:
            lines += [
                ("", {}),
                *((line, {}) for line in diagnosis_lines(item.title, item.diagnosis)),
            ]
            lines.append(("", {}))
        lines += [(line, {}) for line in _item_lines(item)]
    lines += [(line, {"yellow": True}) for line in _untested_lines(report)]
    lines.append((result_line(report), {_COLOURS[report.result]: True, "bold": True}))
    return lines


def result_line(report: RunReport) -> str:
    """Return the run's result with its counts: `certification PASSED: 3 passed`."""
    counts = Counter(item.code for item in report.items)
    parts = [f"{counts[code]} {CODE_WORDS[code]}" for code in WORST_FIRST if counts[code]]
    if report.not_run:
        parts.append(f"{len(report.not_run)} not run")
    if report.excluded:
        parts.append(f"{nodes_words(len(report.excluded))} excluded")
    return f"certification {report.result}: {', '.join(parts) or 'nothing was run'}"


def _where_lines(report: RunReport) -> list[str]:
    cluster = report.cluster
    version = f" {cluster.server_version}" if cluster.server_version else ""
    parts = [
        f"cluster {cluster.kind}{version}",
        f"architecture {report.architecture or 'unknown'}",
        nodes_words(len(report.nodes)),
        f"run {report.run_id}",
    ]
    lines = [", ".join(parts)]
    if report.platform is not None:
        lines.append(_platform_words(report.platform))
    return [fit(one_line(line), WIDTH) for line in lines]


def _platform_words(platform: PlatformReport) -> str:
    """Return the platform, by what it was told, and whose settings stand in for its own."""
    taken = platform.settings
    instead = f", with the settings of {taken}" if taken not in (None, platform.name) else ""
    return f"platform {platform.name}{instead} (told by {platform.told_by})"


def _kind_lines(items: Sequence[ItemReport]) -> list[str]:
    """Return which workload kinds were taken, and why: one line for each reason."""
    titles: dict[tuple[str, str], list[str]] = {}
    for item in items:
        if item.kind:
            titles.setdefault((item.kind, item.kind_reason), []).append(_short_title(item))
    return [
        fit(one_line(f"as {kind}, {reason}: {', '.join(named)}"), WIDTH)
        for (kind, reason), named in titles.items()
    ]


def _table_lines(items: Sequence[ItemReport]) -> list[str]:
    rows = [
        [name, *cells]
        for item, name in zip(items, _names(items), strict=True)
        for cells in _item_cells(item)
    ]
    if not rows:
        return []
    headers = ["entry", "group", "metric", "measured", "limit", "margin", "verdict"]
    left = [0, 1, 2, 6]
    if all(not row[1] for row in rows):
        del headers[1]
        rows = [[row[0], *row[2:]] for row in rows]
        left = [0, 1, 5]
    return tabulated(headers, rows, left=left)


def _names(items: Sequence[ItemReport]) -> list[str]:
    """Return the shortest name of each item that no other one has: several tests may run an entry."""
    found = [_short_title(item) for item in items]
    longer = (
        lambda item: item.title,
        lambda item: f"{item.title} {item.node_id.rpartition('::')[2].partition('[')[0]}",
        lambda item: item.node_id,
    )
    for name_of in longer:
        counts = Counter(found)
        found = [
            name_of(item) if counts[name] > 1 else name
            for item, name in zip(items, found, strict=True)
        ]
    return found


def _short_title(item: ItemReport) -> str:
    return item.title.partition("/")[2] or item.title


def _item_cells(item: ItemReport) -> list[list[str]]:
    """Return the rows of an item, without its name."""
    rows = [
        [_group_words(item, group), *check_cells(check)]
        for group in _shown_groups(item)
        for check in group.checks
    ]
    if not rows:
        rows.append(["", "-", "-", "-", "-", item.code])
    for name, figure in item.recorded.items():
        unit = f" ({figure.unit})" if figure.unit else ""
        rows.append(["", f"{name}{unit}", number_words(figure.value), "-", "-", "recorded"])
    return rows


def _shown_groups(item: ItemReport) -> list[GroupReport]:
    """Return the groups that did not pass, the worst first; of an item that passed, the tightest.

    Attempts that were made again come after them.
    """
    groups = sorted(item.groups, key=severity)
    bad = [group for group in groups if group.code != "pass" and not group.is_retried]
    retried = [group for group in groups if group.is_retried]
    worst = worst_group(item.groups)
    shown = bad[:GROUPS_SHOWN] or ([worst] if worst is not None else [])
    return [*shown, *retried[:GROUPS_SHOWN]]


def _group_words(item: ItemReport, group: GroupReport) -> str:
    if len(item.groups) == 1:
        return ""
    if group.is_retried:
        return f"{group.title}, retried"
    count = sum(not each.is_retried for each in item.groups)
    return group.title if group.code != "pass" or count == 1 else f"worst of {count}"


def _item_lines(item: ItemReport) -> list[str]:
    """Return why an item did not pass, and the warnings of one that did."""
    lines = []
    if item.code != "pass":
        reasons = list(item.reasons)
        for group in () if item.diagnosis and reasons else _shown_groups(item):
            where = place_words(group.nodes)
            if len(item.groups) > 1:
                reasons += [f"{group.title} ({where}): {reason}" for reason in group.reasons]
            else:
                reasons += [f"{reason} ({where})" for reason in group.reasons]
        reasons = reasons or [item_reason(item)]
        lines += [f"{item.title}: {item.code}: {brief(reason)}" for reason in reasons]
    warnings = dict.fromkeys(word for group in item.groups for word in group.warnings)
    lines += [f"{item.title}: warning: {brief(word)}" for word in warnings]
    return _wrapped(lines[:NAMES_SHOWN])


def _untested_lines(report: RunReport) -> list[str]:
    lines = [
        f"excluded node {brief(each.node)}: {each.reason}: {brief(each.message)}"
        for each in report.excluded[:NAMES_SHOWN]
    ]
    if len(report.excluded) > NAMES_SHOWN:
        reasons = Counter(each.reason for each in report.excluded)
        counts = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        lines.append(f"{len(report.excluded)} nodes are excluded: {counts}")
    lines += _failed_node_lines(report)
    lines += [f"left behind in the cluster: {brief(name)}" for name in report.leftovers]
    lines += [
        f"planned and never run: {brief(node_id)}" for node_id in report.not_run[:NAMES_SHOWN]
    ]
    return _wrapped(lines)


def _failed_node_lines(report: RunReport) -> list[str]:
    """Return each node under suspicion with its reasons and the items that saw it."""
    seen: dict[str, dict[str, list[str]]] = {}
    for item in report.items:
        for failure in item.failed_nodes:
            if failure.reason != "ThresholdViolation":  # speaks against all nodes of a group alike
                reasons = seen.setdefault(failure.node, {})
                reasons.setdefault(failure.reason, []).append(_short_title(item))
    lines = [
        f"node {brief(node)}: "
        + "; ".join(f"{reason} ({', '.join(titles)})" for reason, titles in sorted(reasons.items()))
        for node, reasons in sorted(seen.items())
    ]
    more = len(lines) - NAMES_SHOWN
    return lines[:NAMES_SHOWN] + ([f"{more} more nodes under suspicion"] if more > 0 else [])


def _wrapped(lines: Sequence[str]) -> list[str]:
    return [
        part
        for line in lines
        for part in textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    ]
