"""What the harness needs to know of a kind of workload."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from pytest_cre.catalog.entry import WorkloadKind
from pytest_cre.cluster.objects import Object, ResourceKind
from pytest_cre.evidence.model import JobFacts, PodRole


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlace:
    """Which of a workload's pods one is; its replacement has the same place."""

    role: PodRole
    index: int | None  # None where the role has one pod only, and for a pod that tells none


class Workload(Protocol):
    """Reads objects of one kind. Pure: what it is given is what it knows."""

    @property
    def name(self) -> WorkloadKind:
        """Return the name that catalog entries use."""

    @property
    def kind(self) -> ResourceKind:
        """Return the kind of the top object."""

    @property
    def main_container(self) -> str:
        """Return the container whose log and exit code count."""

    def expected_pods(self, nodes: int) -> int:
        """Return how many pods run at the same time on this many nodes."""

    def read_terminal(self, job: Object, owned: Iterable[Object] = ()) -> JobFacts:
        """Return the facts of the top object; only a terminal condition makes it terminal.

        `owned` are objects between it and its pods: they may tell why in plainer words.
        """

    def is_deciding(self, job: Object) -> bool:
        """Return whether the outcome is settled while pods are still ending."""

    def is_suspended(self, job: Object) -> bool:
        """Return whether a queue holds the workload back."""

    def is_early(self, refusal: str) -> bool:
        """Return whether the workload was refused for what its controller will soon know."""

    def place_of(self, pod: Object) -> PodPlace:
        """Return which of the workload's pods this is."""
