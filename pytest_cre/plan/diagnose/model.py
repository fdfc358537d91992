"""What a diagnosis runs, and what it comes to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["passed", "unjudged", "slow", "failed", "undetermined"]
"""What a test of a group came to: it met its limits; it ran well, and no limit is known for it; it
missed a limit; its workload failed; it tells nothing."""

Stage = Literal[
    "intra-screening",
    "intra-screening-no-nvl",
    "inter-screening",
    "bisection",
    "cross-boundary",
    "confirmation",
]
State = Literal["healthy", "faulty", "infrastructure", "undetermined"]
Cause = Literal["workload", "fabric", "nvlink"]
Doubt = Literal["no-result", "no-limit", "intermittent", "untested"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One test: nodes that run the workload together. The name tells stage, round and number."""

    name: str
    stage: Stage
    round: int
    nodes: tuple[str, ...]
    without_nvlink: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InfrastructureFault:
    """A fault that is no single node's: between two sides, or of a group as a whole (no `others`).

    With `is_of_domains` other nodes of the same domains have shown it too.
    """

    cause: Cause
    domains: tuple[str, ...]
    nodes: tuple[str, ...]
    others: tuple[str, ...] = ()
    is_of_domains: bool = False
    trials: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFinding:
    """What a node turned out to be, why, and the tests that showed it."""

    node: str
    domain: str
    state: State
    reason: Cause | Doubt | None = None  # None: healthy
    trials: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The end of a diagnosis: every node once, by name."""

    findings: tuple[NodeFinding, ...]
    infrastructure: tuple[InfrastructureFault, ...]
    trials: tuple[Trial, ...]
    outcomes: Mapping[str, Outcome]  # by trial

    @property
    def rounds(self) -> int:
        """Return in how many rounds the tests were run."""
        return max((trial.round for trial in self.trials), default=0)

    def of(self, state: State) -> tuple[NodeFinding, ...]:
        """Return the nodes of one state."""
        return tuple(each for each in self.findings if each.state == state)
