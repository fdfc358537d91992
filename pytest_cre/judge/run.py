"""The verdict of an item from its groups, and of a run from its items."""

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from pytest_cre.evidence.model import Exclusion, Problem, WorkflowEvidence
from pytest_cre.judge.missing import MissingLimit
from pytest_cre.judge.verdict import WORST_FIRST, Code, GroupVerdict, ItemVerdict, RunResult

_CODES_OF_PROBLEMS: dict[str, Code] = {
    "api-error": "error",
    "unschedulable": "unmet",
    "image-pull": "unmet",
    "config-error": "unmet",
    "start-timeout": "unmet",
    "run-timeout": "fail",
    "job-failed": "fail",
    "pod-failed": "fail",
    "not-retried": "unmet",
    "not-applicable": "not-applicable",
}


class Judged(Protocol):
    """Whatever carries a verdict's code: an `ItemVerdict`, or the report of one."""

    @property
    def code(self) -> Code:
        """Return the verdict."""


def worst(codes: Iterable[Code]) -> Code:
    """Return the worst code; of none, `pass`, so a caller must rule out emptiness itself."""
    return min(codes, key=WORST_FIRST.index, default="pass")


def judge_item(evidence: WorkflowEvidence, groups: Sequence[GroupVerdict]) -> ItemVerdict:
    """Return the item's verdict: the worst of its groups and of its own problems.

    Objects that clean-up could not delete make it an error. No group at all means that nothing
    was run: unmet. Groups without a verdict are an error, for every planned group must have one. An
    attempt that was made again does not count.
    """
    codes, reasons = own_findings(evidence, groups)
    codes += [group.code for group in groups if not group.is_retried]
    if not codes:
        codes.append("unmet")
        reasons.append("no group of nodes was run")
    return ItemVerdict(
        entry=evidence.entry,
        scale=evidence.scale,
        code=worst(codes),
        groups=tuple(groups),
        reasons=tuple(dict.fromkeys(reasons)),
    )


def own_findings(
    evidence: WorkflowEvidence, groups: Sequence[GroupVerdict]
) -> tuple[list[Code], list[str]]:
    """Return what speaks against an item besides the verdicts of its groups, with the reasons."""
    codes: list[Code] = []
    reasons = []
    if evidence.leftovers:
        codes.append("error")
        reasons.append(f"objects were left behind: {', '.join(evidence.leftovers)}")
    for problem in evidence.problems:
        codes.append(_CODES_OF_PROBLEMS.get(problem.code, "inconclusive"))
        reasons.append(_problem_words(problem))
    unjudged = sorted({each.group for each in evidence.groups} - {each.group for each in groups})
    if unjudged:
        codes.append("error")
        reasons.append(f"groups without a verdict: {', '.join(unjudged)}")
    return codes, reasons


def _problem_words(problem: Problem) -> str:
    where = f"node {problem.node}: " if problem.node and problem.node not in problem.message else ""
    return where + (problem.message or problem.code.replace("-", " "))


def run_result(
    items: Sequence[Judged],
    *,
    planned: int,
    excluded: Sequence[Exclusion],
    accepted_exclusions: Collection[str],
    missing: MissingLimit,
) -> RunResult:
    """Return what the run came to.

    ERROR with any error; else FAILED with any fail or inconclusive; else INCOMPLETE when anything
    stayed untested - an unmet item, one without a limit (unless `missing` is `record`), a planned
    item that never ran, a node excluded for a reason that is not accepted - or nothing passed;
    else PASSED. `planned` is the number of items that the run promised.
    """
    codes = [item.code for item in items]
    if "error" in codes:
        return "ERROR"
    if "fail" in codes or "inconclusive" in codes:
        return "FAILED"
    untested = {"unmet"} if missing == "record" else {"unmet", "no-limit"}
    is_incomplete = (
        not untested.isdisjoint(codes)
        or len(items) < planned
        or any(each.reason not in accepted_exclusions for each in excluded)
        or "pass" not in codes
    )
    return "INCOMPLETE" if is_incomplete else "PASSED"
