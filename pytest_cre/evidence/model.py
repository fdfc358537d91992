"""Facts of a run, as they are written to disk. Times are UTC nanoseconds since 1970."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

PRODUCT_LABEL = "nvidia.com/gpu.product"
SIMULATED_LABEL = "cre.pytest.org/simulated"
SIMULATED_LIMITS_ANNOTATION = "cre.pytest.org/simulated-limits"

Terminal = Literal["succeeded", "failed", "none"]
PodRole = Literal["rank", "launcher", "worker"]
"""What a pod is for: it runs ranks itself; it starts ranks on workers, and their output is in its
log; it lends its GPUs to ranks that a launcher starts, and runs until it is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """The few fields of a Node that planning and verdicts use."""

    name: str
    uid: str
    labels: Mapping[str, str]
    gpus_allocatable: int
    is_ready: bool
    is_cordoned: bool
    taints: tuple[Mapping[str, str], ...] = ()
    provider_id: str = ""
    boot_id: str = ""
    resources: Mapping[str, int] = field(default_factory=dict)  # extended ones, without GPUs
    slice_product: str = ""  # name of its GPUs as a DRA driver tells it
    simulated_limits: str = ""  # JSON text of the scenario's limits, on simulated nodes only

    @property
    def is_simulated(self) -> bool:
        """Return whether the node is played by the simulator."""
        return self.labels.get(SIMULATED_LABEL) == "true"

    @property
    def gpu_product(self) -> str | None:
        """Return the product as GPU feature discovery labels it, or None where nothing tells it.

        A DRA driver tells the GPU's own name: `NVIDIA H100 80GB HBM3`.
        """
        label = self.labels.get(PRODUCT_LABEL)
        return label or "-".join(self.slice_product.split()) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSnapshot:
    """What may not change on a node while it is tested."""

    name: str
    uid: str
    boot_id: str
    gpus_allocatable: int
    is_cordoned: bool
    taints: tuple[str, ...] = ()  # key=value:effect
    conditions: Mapping[str, str] = field(default_factory=dict)  # status by type


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that makes evidence incomplete or names a failure.

    Codes: log-gap, log-unavailable, log-incomplete, pod-evicted, pod-deleted, node-unreachable,
    unschedulable, image-pull, config-error, start-timeout, run-timeout, interrupted, vanished,
    stalled, job-failed, pod-failed, api-error, hardware-failed, node-changed, health-unknown,
    not-restarted, not-retried, not-applicable.
    """

    code: str
    message: str
    node: str | None = None
    pod: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """A pod as last seen, kept also after it is gone."""

    name: str
    uid: str
    node: str | None
    completion_index: int | None
    attempt: int
    phase: str
    role: PodRole = "rank"
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    restart_count: int = 0
    created_ns: int | None = None
    started_ns: int | None = None  # of the main container
    finished_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStream:
    """The log of one container instance, with the kubelet's timestamp before each line.

    `is_complete` is True only when the container had terminated and a final read was merged.
    `is_cut`: the run ended the container itself, and had read everything up to that moment.
    """

    pod: str
    data: bytes
    container: str = ""
    node: str | None = None
    completion_index: int | None = None
    attempt: int = 0
    restart_count: int = 0
    role: PodRole = "rank"
    is_complete: bool = False
    is_cut: bool = False
    has_gap: bool = False

    @property
    def is_whole(self) -> bool:
        """Return whether nothing is missing that the container wrote while it was to run."""
        return (self.is_complete or self.is_cut) and not self.has_gap

    @property
    def is_context(self) -> bool:
        """Return whether the log is of a worker: ranks write nothing there, and it has no end."""
        return self.role == "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """The top object of a group's workload and its terminal condition."""

    kind: str
    name: str
    uid: str
    terminal: Terminal
    reason: str = ""
    message: str = ""
    created_ns: int | None = None
    started_ns: int | None = None
    terminal_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A life of a workload that ended early, after which it was created again.

    `step` is the newest checkpoint that its logs prove. Pods and logs up to the attempt number
    `last_attempt` are of this life or of those before it.
    """

    job: JobFacts
    problems: tuple[Problem, ...]  # why it ended
    step: int
    last_attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedOverride:
    """An override whose conditions held. `changes` names what it changed, values left out."""

    name: str
    place: str
    changes: tuple[str, ...] = ()

    @property
    def is_no_op(self) -> bool:
        """Return whether everything was already as the override wants it."""
        return not self.changes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEvidence:
    """Everything seen of one group of nodes in one attempt.

    `job` and `problems` are those of the workload's last life, `restarts` tell of those before it;
    pods, logs and events are of all lives.
    """

    entry: str
    scale: str
    group: str
    attempt: int
    nodes: tuple[str, ...]
    gpus_per_node: int
    ranks_planned: int
    architecture: str | None
    is_simulated: bool
    job: JobFacts | None
    kind: str = "indexedJob"
    pods: tuple[PodFacts, ...] = ()
    logs: tuple[LogStream, ...] = ()
    problems: tuple[Problem, ...] = ()
    events: tuple[Mapping[str, str], ...] = ()  # type, reason, message, object, count
    manifests: tuple[Mapping[str, object], ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    platform: str | None = None
    fabrics: tuple[str, ...] = ()  # of which the group's traffic must take one; empty: not known
    overrides: tuple[AppliedOverride, ...] = ()
    queue_s: float | None = None  # creation until scheduled
    start_s: float | None = None  # scheduled until every pod ran
    run_s: float | None = None  # every pod ran until the Job's terminal condition
    nodes_before: tuple[NodeSnapshot, ...] = ()  # as first seen
    nodes_after: tuple[NodeSnapshot, ...] = ()  # as last seen
    restarts: tuple[Restart, ...] = ()

    @property
    def last_pods(self) -> tuple[PodFacts, ...]:
        """Return the pods of the workload's last life."""
        before = self.restarts[-1].last_attempt if self.restarts else -1
        return tuple(pod for pod in self.pods if pod.attempt > before)

    @property
    def key(self) -> tuple[str, int]:
        """Return what tells this attempt from the others of its item."""
        return self.group, self.attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHolder:
    """A pod that holds GPUs of a node, whoever made it."""

    pod: str  # namespace/name
    gpus: int
    run_id: str | None = None  # of the run of ours that made it, this one or another


EXCLUSION_REASONS = (
    "busy",
    "cordoned",
    "few-gpus",
    "minority-architecture",
    "no-gpu",
    "not-ready",
    "over-max-nodes",
    "tainted",
    "unselected",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A node that was not used, and why.

    `reason` is one of `EXCLUSION_REASONS`.
    """

    node: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisSetup:
    """What a diagnosis began with; with the groups' outcomes it can be gone through again.

    `domains` is the domain of each node. Of `nvlink_domains` NVLink joins the nodes;
    `can_switch_nvlink`: they are tested without it as well. `may_run_alone`: the entry runs on one
    node too. A group that failed is halved down to `min_group_size` nodes.
    """

    domains: Mapping[str, str]
    nvlink_domains: tuple[str, ...] = ()
    can_switch_nvlink: bool = False
    may_run_alone: bool = True
    min_group_size: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowEvidence:
    """Everything seen of one item: an entry at one scale."""

    entry: str
    scale: str
    groups: tuple[GroupEvidence, ...]
    excluded: tuple[Exclusion, ...] = ()
    problems: tuple[Problem, ...] = ()
    leftovers: tuple[str, ...] = ()  # objects that clean-up could not delete
    kind: str = ""  # workload kind that the groups ran as
    kind_reason: str = ""  # why that one of the kinds that the entry names
    diagnosis: DiagnosisSetup | None = None  # of an item at scale `diagnose`
