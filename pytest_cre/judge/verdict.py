"""Verdicts: what an item, a group and a run came to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pytest_cre.catalog.limit import Limit
from pytest_cre.plan.diagnose.model import Conclusion

Code = Literal["pass", "fail", "inconclusive", "no-limit", "unmet", "not-applicable", "error"]
RunResult = Literal["PASSED", "FAILED", "INCOMPLETE", "ERROR"]

WORST_FIRST: tuple[Code, ...] = (
    "error",
    "fail",
    "inconclusive",
    "unmet",
    "no-limit",
    "not-applicable",
    "pass",
)
EXIT_CODES: Mapping[RunResult, int] = {"PASSED": 0, "FAILED": 1, "ERROR": 1, "INCOMPLETE": 10}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One metric of one group against one limit.

    `margin` is the signed relative distance to the limit, positive when the limit is met:
    `measured / limit - 1` for `>=`, `1 - measured / limit` for `<=`. `limit` None: none applies.
    `statistic` names the judged number for a reader, for example `max` or `at 16 GiB`.
    """

    metric: str
    measured: float | None
    unit: str
    limit: Limit | None
    margin: float | None
    code: Code
    statistic: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVerdict:
    """A group's verdict. `reasons` tell in words why it is not a pass; empty for a pass.

    `is_retried`: the attempt told nothing and was made again; the item does not depend on it.
    """

    group: str
    nodes: tuple[str, ...]
    code: Code
    checks: tuple[Check, ...] = ()
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)  # every measured metric
    attempt: int = 0
    is_retried: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemVerdict:
    """An item's verdict: the worst of its groups."""

    entry: str
    scale: str
    code: Code
    groups: tuple[GroupVerdict, ...] = ()
    reasons: tuple[str, ...] = ()
    diagnosis: Conclusion | None = None  # decides the verdict, where there is one
