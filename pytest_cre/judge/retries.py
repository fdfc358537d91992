"""Attempts that told nothing and were made again: which they are, and what is told of them.

An attempt is lost when its evidence cannot carry a verdict because of what befell it. One that was
judged is never made again, whatever it came to: that would be fishing for green.
"""

from collections.abc import Sequence
from dataclasses import replace

from pytest_cre.evidence.model import GroupEvidence
from pytest_cre.judge.measured import has_wrong_values
from pytest_cre.judge.problems import evidence_finding
from pytest_cre.judge.verdict import Code, GroupVerdict
from pytest_cre.measure.model import Measurement

ENDS: dict[Code, str] = {
    "pass": "passed",
    "fail": "failed",
    "inconclusive": "inconclusive",
    "no-limit": "measured",
    "unmet": "unmet",
    "error": "in error",
    "not-applicable": "not applicable",
}


def is_lost(evidence: GroupEvidence, measurement: Measurement) -> bool:
    """Return whether an attempt tells nothing, so that another one may.

    So are lost logs, pods and nodes, API trouble, and a workload that never started. Not an
    interrupt; nor what failed, missed a limit or showed wrong values, even if it was lost besides.
    """
    if any(each.code == "interrupted" for each in evidence.problems):
        return False
    code = evidence_finding(evidence).code
    return code in ("inconclusive", "unmet", "error") and not has_wrong_values(measurement)


def retried(lost: Sequence[bool], retries: int) -> tuple[bool, ...]:
    """Return which attempts of a group were made again, of those that are `lost`, in their order.

    The last one was not: nothing came after it.
    """
    found: list[bool] = []
    for index, each in enumerate(lost):
        was_made_again = each and sum(found) < retries and index < len(lost) - 1
        found.append(was_made_again)
    return tuple(found)


def told(verdicts: Sequence[GroupVerdict], made_again: Sequence[bool]) -> list[GroupVerdict]:
    """Return a group's verdicts in the order of attempts, with what is to be said of retries.

    `passed at attempt 2 of 2 after: node n3: it was rebooted while it ran`
    """
    after: list[str] = []
    found = []
    for verdict, is_retried in zip(verdicts, made_again, strict=True):
        warnings = verdict.warnings
        if after:
            words = f"{ENDS[verdict.code]} at attempt {verdict.attempt + 1} of {len(verdicts)}"
            warnings = (f"{words} after: {'; '.join(after)}", *warnings)
        found.append(replace(verdict, is_retried=is_retried, warnings=warnings))
        after = [*after, *(verdict.reasons[:1] or (verdict.code,))] if is_retried else []
    return found
