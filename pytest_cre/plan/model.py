"""What will run where."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_cre.catalog.entry import CatalogEntry, WorkloadKind
from pytest_cre.evidence.model import (
    AppliedOverride,
    DiagnosisSetup,
    Exclusion,
    NodeFacts,
    Problem,
)

RUN_LABEL = "cre.pytest.org/run"
ENTRY_LABEL = "cre.pytest.org/entry"
GROUP_LABEL = "cre.pytest.org/group"
ATTEMPT_LABEL = "cre.pytest.org/attempt"
MANAGED_BY = ("app.kubernetes.io/managed-by", "pytest-cre")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The nodes of one campaign: used, sorted by name, and excluded with reasons."""

    nodes: tuple[NodeFacts, ...]
    excluded: tuple[Exclusion, ...]
    architecture: str | None  # by majority; None when no node names a known product
    is_simulated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Nodes that one Job uses together."""

    name: str  # group-0, group-1, ...
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """One Job: its nodes and the objects to create for it, in order, the workload last."""

    group: NodeGroup
    attempt: int
    job_name: str
    gpus_per_node: int
    manifests: tuple[Mapping[str, object], ...]
    platform: str | None = None
    fabrics: tuple[str, ...] = ()  # of which traffic between its nodes must take one; empty: any
    overrides: tuple[AppliedOverride, ...] = ()
    max_restarts: int = 0  # of the workload from a checkpoint, where it ends early

    @property
    def ranks_planned(self) -> int:
        """Return the number of ranks the job should report: one per GPU."""
        return len(self.group.nodes) * self.gpus_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowPlan:
    """One item: an entry at one scale, as groups."""

    entry: CatalogEntry
    scale: str
    kind: WorkloadKind
    kind_reason: str  # why this one of those that the entry names
    architecture: str | None
    is_simulated: bool
    groups: tuple[GroupPlan, ...]
    excluded: tuple[Exclusion, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()  # why there is no group to run
    diagnosis: DiagnosisSetup | None = None  # at scale `diagnose`
