"""What the harness needs to know of a kind of workload."""

from collections.abc import Iterable
from typing import Protocol

from pytest_cre.catalog.entry import WorkloadKind
from pytest_cre.cluster.objects import Object, ResourceKind
from pytest_cre.evidence.model import JobFacts


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

    def read_terminal(self, job: Object) -> JobFacts:
        """Return the facts of the top object; only a terminal condition makes it terminal."""

    def is_deciding(self, job: Object) -> bool:
        """Return whether the outcome is settled while pods are still ending."""

    def is_suspended(self, job: Object) -> bool:
        """Return whether a queue holds the workload back."""

    def pods_of(self, job: Object, pods: Iterable[Object]) -> tuple[Object, ...]:
        """Return the workload's own pods, sorted by completion index and creation."""
