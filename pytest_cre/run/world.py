"""What the groups of a workflow share."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_cre.evidence.model import GroupEvidence
from pytest_cre.plan.model import GroupPlan
from pytest_cre.run.clocks import RunTiming
from pytest_cre.run.ledger import Ledger
from pytest_cre.run.progress import GroupProgress

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client
    from pytest_cre.evidence.journal import GrowingLog
    from pytest_cre.formats.cel import Predicate
    from pytest_cre.run.view import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the groups of a workflow share."""

    client: "Client"
    view: "ClusterView"
    ledger: Ledger
    stop: threading.Event
    on_progress: Callable[[GroupProgress], None]
    is_stalled: Callable[[GroupEvidence], bool] | None
    resume_step: Callable[[GroupEvidence, GroupPlan], int] | None
    keep: Callable[[GroupEvidence], bool]
    until_s: float | None  # when the whole run's deadline passes, by the clock of `timing`
    health_rule: "Predicate"  # true for a node that has failed
    record: "Callable[[GroupEvidence, Sequence[GrowingLog]], None] | None"
    timing: RunTiming

    @property
    def is_over(self) -> bool:
        """Return whether everything is to end now: an interrupt, or the run's deadline."""
        is_late = self.until_s is not None and self.timing.clock() >= self.until_s
        return is_late or self.stop.is_set()

    @property
    def over_words(self) -> str:
        """Return why everything is to end."""
        if self.stop.is_set():
            return "the run was interrupted"
        return "the run's deadline has passed (--cre-deadline)"
