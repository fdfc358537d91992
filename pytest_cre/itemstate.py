"""What is known of one item while it runs."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cre.judge.verdict import Code, ItemVerdict
    from pytest_cre.results import WorkflowRun

BAD: tuple["Code", ...] = ("fail", "inconclusive", "error")


@dataclass(slots=True, kw_only=True)
class ItemState:
    """One item's run and verdict so far."""

    run: "WorkflowRun | None" = None
    evidence_verdict: "ItemVerdict | None" = None  # by the evidence alone
    was_read: bool = False  # whether the test looked at a figure
    verdict: "ItemVerdict | None" = None  # by the limits, once the test has asked for it
    figures: list[tuple[str, float, str]] = field(default_factory=list)
    code: "Code" = "pass"
    text: str = ""  # what pytest shows of it
    started_s: float = 0.0


_KEY = pytest.StashKey[ItemState]()


def state_of(item: pytest.Item) -> ItemState:
    """Return the item's state, a fresh one at first."""
    return item.stash.setdefault(_KEY, ItemState())
