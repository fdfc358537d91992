"""The text of an item that did not pass: it must stand alone, for some readers show nothing else."""

from collections.abc import Sequence

from pytest_cre.evidence.model import WorkflowEvidence
from pytest_cre.judge.verdict import Code, GroupVerdict, ItemVerdict
from pytest_cre.judge.words import nodes_words, place_words
from pytest_cre.report.diagnosis import diagnosis_report
from pytest_cre.report.model import SIMULATED_NOTE, GroupReport, group_report, title_of
from pytest_cre.report.table import (
    check_cells,
    deciding_reason,
    diagnosis_lines,
    severity,
    tabulated,
    worst_group,
)
from pytest_cre.report.text import brief

GROUPS_SHOWN = 20
REASONS_SHOWN = 20
ROWS_SHOWN = 30  # of the log of a group that missed a limit
_PREFIXES: dict[Code, str] = {"inconclusive": "INCONCLUSIVE: ", "error": "ERROR: "}


def failure_text(
    item: ItemVerdict,
    *,
    evidence: WorkflowEvidence | None = None,
    logs_place: str | None = None,
) -> str:
    """Return the report of an item that failed, is inconclusive or is an error.

    The first line names metric, measured, limit, margin and entry; of a diagnosis, what is broken,
    with its tests by stage after it. Then the checks of each group,
    every reason, where the limits come from, where the logs are (`logs_place`, a path), and the
    failure log of the worst group.
    """
    seen = {each.key: each for each in evidence.groups} if evidence else {}
    groups = [group_report(each, seen.get((each.group, each.attempt))) for each in item.groups]
    worst = worst_group(groups)
    blocks = [
        [first_line(item)],
        _diagnosis_lines(item),
        _check_lines(groups),
        _reason_lines(item, groups),
        _warning_lines(groups),
        _source_lines(item.groups),
        [f"logs: {brief(logs_place)}"] if logs_place else [],
        [SIMULATED_NOTE] if evidence and any(each.is_simulated for each in evidence.groups) else [],
        _log_lines(worst),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def skip_text(item: ItemVerdict) -> str:
    """Return one line for an item that is skipped: no limit, unmet need, not applicable."""
    return first_line(item)


def first_line(item: ItemVerdict) -> str:
    """Return the one line that tells an item's verdict."""
    groups = [group_report(each, None) for each in item.groups]
    worst = worst_group(groups)
    where = [title_of(item.entry, item.scale)]
    if item.diagnosis is not None and item.reasons:
        where.append(nodes_words(len(item.diagnosis.findings)))
        return f"{_PREFIXES.get(item.code, '')}{brief(item.reasons[0])} ({', '.join(where)})"
    reason = brief(deciding_reason(item.code, item.reasons, groups))
    if worst is not None:
        if len(groups) > 1:
            count = len({each.group for each in groups})
            where.append(f"{worst.title} of {count} groups" if count > 1 else worst.title)
        where.append(brief(place_words(worst.nodes)))
    return f"{_PREFIXES.get(item.code, '')}{reason} ({', '.join(where)})"


def _diagnosis_lines(item: ItemVerdict) -> list[str]:
    if item.diagnosis is None:
        return []
    report = diagnosis_report(item.diagnosis, {each.group for each in item.groups})
    return diagnosis_lines(title_of(item.entry, item.scale), report)


def _check_lines(groups: Sequence[GroupReport]) -> list[str]:
    """Return the checks as a table, the worst groups first."""
    shown = sorted(groups, key=severity)[:GROUPS_SHOWN]
    rows = [
        [group.title, str(len(group.nodes)), *check_cells(check)]
        for group in shown
        for check in group.checks
    ]
    if not rows:
        return []
    headers = ("group", "nodes", "metric", "measured", "limit", "margin", "verdict")
    lines = tabulated(headers, rows, left=(0, 2, 6))
    if len(groups) > len(shown):
        lines.append(f"{len(groups) - len(shown)} more groups are not shown, none of them worse")
    return lines


def _reason_lines(item: ItemVerdict, groups: Sequence[GroupReport]) -> list[str]:
    """Return every reason with its group; none when the first line has told the only one."""
    lines = [brief(reason) for reason in item.reasons]
    for group in sorted(groups, key=severity):
        lines += [f"{group.title}: {brief(reason)}" for reason in group.reasons]
    if len(lines) <= 1:
        return []
    more = len(lines) - REASONS_SHOWN
    return lines[:REASONS_SHOWN] + ([f"{more} more reasons"] if more > 0 else [])


def _warning_lines(groups: Sequence[GroupReport]) -> list[str]:
    found = dict.fromkeys(brief(word) for group in groups for word in group.warnings)
    return [f"warning: {word}" for word in found][:REASONS_SHOWN]


def _source_lines(groups: Sequence[GroupVerdict]) -> list[str]:
    """Return where each limit comes from, each origin once."""
    lines = []
    for check in (check for group in groups for check in group.checks):
        limit = check.limit
        if limit is not None:
            place = f", {limit.place}" if limit.place else ""
            date = f" ({limit.known_date})" if limit.known_date else ""
            origin = f"{limit.tier}, {limit.source}{date}{place}"
            lines.append(f"limit of {limit.metric}: {brief(origin)}")
    return list(dict.fromkeys(lines))


def _log_lines(worst: GroupReport | None) -> list[str]:
    log = worst.failure_log if worst else None
    if log is None:
        return []
    if not log.text:
        return [f"{log.title}: nothing was captured"]
    rows = log.text.splitlines()
    # What a limit missed is in the table above; whatever failed otherwise needs its whole end.
    if worst is not None and _missed_a_limit(worst) and not log.exit_code:
        left_out = len(rows) - ROWS_SHOWN
        if left_out > 0:
            note = f"[... {left_out} lines left out ...]"
            return [f"{log.title}:", note, *rows[-ROWS_SHOWN:]]
    return [f"{log.title}:", log.text]


def _missed_a_limit(group: GroupReport) -> bool:
    return group.code == "fail" and any(
        check.code == "fail" and check.margin is not None and check.margin < 0
        for check in group.checks
    )
