"""Facts of a run, as they are written to disk. Times are UTC nanoseconds since 1970."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SIMULATED_LABEL = "cre.pytest.org/simulated"
SIMULATED_LIMITS_ANNOTATION = "cre.pytest.org/simulated-limits"

Terminal = Literal["succeeded", "failed", "none"]


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
    simulated_limits: str = ""  # JSON text of the scenario's limits, on simulated nodes only

    @property
    def is_simulated(self) -> bool:
        """Return whether the node is played by the simulator."""
        return self.labels.get(SIMULATED_LABEL) == "true"

    @property
    def gpu_product(self) -> str | None:
        """Return the product label, or None where the node carries none."""
        return self.labels.get("nvidia.com/gpu.product")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that makes evidence incomplete or names a failure.

    Codes: log-gap, log-unavailable, log-incomplete, pod-evicted, pod-deleted, node-unreachable,
    unschedulable, image-pull, config-error, start-timeout, run-timeout, interrupted, vanished,
    job-failed, pod-failed, api-error.
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
    """

    pod: str
    data: bytes
    container: str = ""
    node: str | None = None
    completion_index: int | None = None
    attempt: int = 0
    restart_count: int = 0
    is_complete: bool = False
    has_gap: bool = False


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
class GroupEvidence:
    """Everything seen of one group of nodes in one attempt."""

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
    queue_s: float | None = None  # creation until scheduled
    start_s: float | None = None  # scheduled until every pod ran
    run_s: float | None = None  # every pod ran until the Job's terminal condition

    @property
    def key(self) -> tuple[str, int]:
        """Return what tells this attempt from the others of its item."""
        return self.group, self.attempt


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
class WorkflowEvidence:
    """Everything seen of one item: an entry at one scale."""

    entry: str
    scale: str
    groups: tuple[GroupEvidence, ...]
    excluded: tuple[Exclusion, ...] = ()
    problems: tuple[Problem, ...] = ()
    leftovers: tuple[str, ...] = ()  # objects that clean-up could not delete
