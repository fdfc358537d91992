"""What the renderers of every workload kind share."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_cre.catalog.checkpoint import CheckpointVolume
from pytest_cre.catalog.entry import CatalogEntry, WorkloadCommand
from pytest_cre.plan.model import NodeGroup

JOB_LABEL = "cre.pytest.org/job"
TTL_AFTER_FINISHED_S = 3600  # a safety net only: the run deletes its objects itself
DEADLINE_MARGIN_S = 300  # the run's own deadlines come first

Manifest = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """One attempt on one group. `metadata` is that of every object created for it."""

    entry: CatalogEntry
    command: WorkloadCommand
    group: NodeGroup
    name: str
    metadata: Manifest
    labels: Mapping[str, str]
    values: Mapping[str, str]  # what `${name}` stands for
    gpus_per_node: int
    tolerations: Sequence[Mapping[str, str]]
    checkpoint: CheckpointVolume | None = None

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return len(self.group.nodes)

    @property
    def pod_labels(self) -> dict[str, str]:
        """Return the labels of its pods, and of whatever stands between them and the workload."""
        return {**self.labels, JOB_LABEL: self.name}

    @property
    def deadline_s(self) -> int:
        """Return after how long the cluster itself ends the workload."""
        return math.ceil(self.entry.start_timeout_s + self.entry.timeout_s) + DEADLINE_MARGIN_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How one workload kind is written down.

    `pod_suffix` is the longest that a cluster appends to the workload's name for a pod;
    `first_host` makes the host name of the first pod that runs ranks from that name.
    """

    pod_suffix: str
    first_host: str
    objects: Callable[[Rendering], tuple[Manifest, ...]]  # in the order to create them
