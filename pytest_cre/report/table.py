"""Small tables of checks: right-aligned numbers, units beside the metric, at most 100 columns."""

from collections.abc import Sequence

from pytest_cre.judge.verdict import WORST_FIRST, Code
from pytest_cre.judge.words import nodes_words, number_words
from pytest_cre.report.diagnosis import STATE_CODES, DiagnosisReport
from pytest_cre.report.model import CheckReport, GroupReport, ItemReport
from pytest_cre.report.text import brief, fit

WIDTH = 100
GAP = "  "
MIN_TEXT_WIDTH = 12
CODE_ORDER = {code: index for index, code in enumerate(WORST_FIRST)}


def tabulated(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int]
) -> list[str]:
    """Return the lines of a table; `left` are the columns of text, all others hold numbers.

    Text columns are cut, the widest first, until the table fits.
    """
    from tabulate import tabulate

    cells = [[brief(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    while sum(widths) + len(GAP) * (len(widths) - 1) > WIDTH:
        widest = max(left, key=lambda column: widths[column])
        if widths[widest] <= MIN_TEXT_WIDTH:
            break
        widths[widest] -= 1
    cut = [[fit(cell, width) for cell, width in zip(row, widths, strict=True)] for row in cells]
    aligned = ["left" if column in left else "right" for column in range(len(headers))]
    # Headers as a row of their own: tabulate makes columns wider than its headers.
    text = tabulate(cut, tablefmt="plain", disable_numparse=True, colalign=aligned)
    lines = [line.rstrip() for line in text.splitlines()]
    return [lines[0], GAP.join("-" * width for width in widths), *lines[1:]]


def check_cells(check: CheckReport) -> list[str]:
    """Return metric with unit, measured, limit with operator, margin, verdict."""
    unit = "" if check.unit in ("ratio", "count") else f" ({check.unit})"
    at = f" {check.statistic}" if check.size_bytes is not None else ""
    limit = "-" if check.limit is None else f"{check.operator} {number_words(check.limit)}"
    return [
        f"{check.metric}{at}{unit}",
        "-" if check.measured is None else number_words(check.measured),
        limit,
        "-" if check.margin is None else margin_words(check.margin),
        check.code,
    ]


def diagnosis_lines(title: str, report: DiagnosisReport) -> list[str]:
    """Return how many nodes of a diagnosis are in which state, and its tests by stage."""
    headers = ("stage", "tests", "passed", "failed", "without limit", "no result")
    states = ", ".join(f"{report.count(state)} {state}" for state in STATE_CODES)
    count = len(report.tests)
    return [
        f"{title}: {nodes_words(len(report.nodes))}: {states}",
        f"{count} tests in {report.rounds} rounds",
        *tabulated(headers, report.stage_rows(), left=(0,)),
    ]


def margin_words(margin: float) -> str:
    """Return a margin as signed percent, with more decimals only where one would show as zero."""
    percent = margin * 100
    decimals = 1
    while percent and round(percent, decimals) == 0 and decimals < 6:
        decimals += 1
    return f"{percent:+.{decimals}f} %"


def severity(group: GroupReport) -> tuple[int, float]:
    """Return what sorts groups by how bad they are: verdict, then smallest margin.

    An attempt that was made again comes last.
    """
    margins = [check.margin for check in group.checks if check.margin is not None]
    code = len(CODE_ORDER) if group.is_retried else CODE_ORDER[group.code]
    return code, min(margins, default=0.0)


def worst_group(groups: Sequence[GroupReport]) -> GroupReport | None:
    """Return the group that decides an item's verdict; the first of equals."""
    return min(groups, key=severity, default=None)


def deciding_reason(code: Code, reasons: Sequence[str], groups: Sequence[GroupReport]) -> str:
    """Return the one reason that tells an item's verdict: its worst group's, or the item's own."""
    worst = worst_group(groups)
    if worst is not None and worst.code == code and worst.reasons:
        return worst.reasons[0]
    return reasons[0] if reasons else code


def item_reason(item: ItemReport) -> str:
    """Return the one reason that tells an item's verdict; else the begin of what pytest showed."""
    if item.diagnosis is not None and item.reasons:
        return item.reasons[0]
    reason = deciding_reason(item.code, item.reasons, item.groups)
    first = next((line for line in item.text.splitlines() if line.strip()), "")
    return first if reason == item.code and first else reason
