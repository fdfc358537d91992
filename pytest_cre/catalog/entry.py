"""Catalog entries: what is run, how, and what it measures."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pytest_cre.catalog.limit import Limit
from pytest_cre.catalog.override import Override

WorkloadKind = Literal["indexedJob", "jobSet", "mpiJob", "trainJob"]
Measures = Literal["bandwidth", "training", "gemm", "diagnostics"]
Provision = Literal["nics", "dcgm", "computeDomain"]
NODE_HEALTH = "node.spec.unschedulable == true"  # a cordon while a workload runs
SCALES = ("full-scale", "intra-node", "intra-rack", "diagnose")
DIAGNOSE = SCALES[3]
MIN_GROUP_SIZE = 2  # down to which a diagnosis halves groups, unless it is told otherwise
DIAGNOSE_TIMEOUT_S = 900.0
DIAGNOSE_COST_S = 240.0  # of one test of a group, as upstream reckons


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSpec:
    """A catalog option that a user may set with `--cre-option NAME=VALUE`.

    `default` and values are text, put as they are into arguments. `pattern` (RE2) must match the
    whole value.
    """

    name: str
    default: str
    pattern: str | None = None
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadCommand:
    """What a container runs when the entry runs as one kind of workload.

    `command` and `args` may hold `${name}`: an option, or one of `nodes`, `gpusPerNode`, `gpus`,
    `masterAddress`, `architecture`, `test`.
    """

    command: tuple[str, ...]
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a group of nodes must have for an entry to run on it.

    `model_parallel` are options whose product must divide the group's GPUs; what comes out, the
    data-parallel size, must be a multiple of the option `expert_parallel`. `has_nvlink`: the GPUs of
    a node must be joined by NVLink. `cluster` is what the cluster must provide besides.
    """

    nodes: int = 1
    gpus: int = 1
    model_parallel: tuple[str, ...] = ()
    expert_parallel: str | None = None
    has_nvlink: bool = False
    cluster: tuple[Provision, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """How often an entry runs on a group until the interval of its figures tells a verdict.

    `error` is the probability allowed for a wrong pass, and for a wrong fail.
    """

    least: int = 3
    most: int = 7
    error: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A volume of its own for an entry's checkpoints, and restarts from them.

    All are texts that may hold `${name}`: `enabled` comes to true or false, `path` is where the
    volume is mounted, `storage_class_name` is empty for the cluster's default, `max_restarts` is how
    often the workload is created again after it ended early.
    """

    path: str
    enabled: str = "true"
    storage_size: str = "10Ti"
    storage_class_name: str = ""
    max_restarts: str = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One entry of the catalog, named `<domain>/<variant>` after its file."""

    name: str
    description: str
    measures: Measures
    image: str
    workloads: Mapping[WorkloadKind, WorkloadCommand]  # in order of preference
    log_profile: str
    timeout_s: float  # run deadline: from the start of every pod to the Job's end
    start_timeout_s: float  # from creation until every pod runs
    scales: tuple[str, ...] = ("full-scale",)
    scales_on_request: tuple[str, ...] = ()  # run only where they are asked for by name
    test: str | None = None  # collective expected in the table, for example all_reduce
    gpus_per_node: int | None = None  # None: what the architecture has
    options: Mapping[str, OptionSpec] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()  # files of pytest_cre/workloads, mounted at /cre
    architectures: tuple[str, ...] = ()  # empty: any
    overrides: tuple[Override, ...] = ()  # after those of the architecture and the platform
    needs: Needs = field(default_factory=Needs)
    cost_s: float | None = None  # how long healthy nodes are busy with it, with default options
    node_health: str = NODE_HEALTH  # CEL over `node`, true for one that has failed
    stall_multiplier: float | None = None  # of the usual time between two printed steps
    repeat: Repeat | None = None  # None: once
    retries: int = 0  # of a group whose attempt was lost, so that it tells nothing
    checkpoint: Checkpoint | None = None
    limits: tuple[Limit, ...] = ()  # of this entry on any architecture
    extends: str | None = None  # the entry that this one was made from
    place: str = ""  # file:line:column
    places: Mapping[str, str] = field(default_factory=dict, compare=False)  # of names that it takes

    @property
    def all_scales(self) -> tuple[str, ...]:
        """Return every scale that the entry can run at."""
        return (*self.scales, *self.scales_on_request)

    def at(self, scale: str) -> "CatalogEntry":
        """Return the entry as it runs at a scale.

        Tests of a diagnosis are many and short; one that was lost is made again, and none repeated.
        """
        if scale != DIAGNOSE:
            return self
        timeout_s = min(self.timeout_s, DIAGNOSE_TIMEOUT_S)
        return replace(
            self,
            timeout_s=timeout_s,
            cost_s=min(timeout_s, DIAGNOSE_COST_S),
            repeat=None,
            retries=max(1, self.retries),
        )

    @property
    def domain(self) -> str:
        """Return the part of the name before the slash."""
        return self.name.partition("/")[0]

    @property
    def variant(self) -> str:
        """Return the part of the name after the slash."""
        return self.name.partition("/")[2]

    @property
    def label_value(self) -> str:
        """Return the name as a label value, which may hold no slash."""
        return self.name.replace("/", ".")
