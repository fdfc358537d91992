"""The YAML form of scenarios, as pydantic models."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from pytest_cre.simulator.apifaultfile import ApiFaultDocument
from pytest_cre.simulator.faults import CONDITIONS, EVENTS, NEEDED, Action, Link
from pytest_cre.simulator.forms import (
    Bytes,
    Count,
    Document,
    Positive,
    Seconds,
    Text,
    check_parameters,
    given_keys,
)

_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
_UNITS = {
    "busbw": "GB/s",
    "goodput": "ratio",
    "step_time": "s",
    "tflops_per_gpu": "TFLOP/s",
    "gemm_tflops": "TFLOP/s",
    "gemm_spread": "ratio",
    "dcgm_failed_tests": "count",
}


def _node_pattern(value: object) -> str:
    text = str(value)
    if not _NODE_NAME.fullmatch(text.replace("{index}", "0")):
        raise ValueError(
            f"must be a node name of a-z, 0-9, '-' and '.' that may hold {{index}}, got {text[:70]!r}"
        )
    return text


NodePattern = Annotated[str, BeforeValidator(_node_pattern)]


class TaintDocument(Document):
    """A taint of nodes."""

    key: Text
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class NodesDocument(Document):
    """Nodes of one kind."""

    name: NodePattern
    count: Annotated[int, Field(ge=1, le=20_000)] = 1
    gpu: Text
    gpus_per_node: Annotated[int, Field(ge=0, le=64)] | None = None
    rack: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$")] | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    taints: list[TaintDocument] = Field(default_factory=list)
    unschedulable: bool = False

    @model_validator(mode="after")
    def _names_differ(self) -> "NodesDocument":
        if self.count > 1 and "{index}" not in self.name:
            raise ValueError(f"name {self.name!r} must hold {{index}} where count is above 1")
        return self


class HardwareDocument(Document):
    """Changes to a GPU model, or a new one."""

    product: Text | None = None
    device: Text | None = None
    gpus_per_node: Count | None = None
    memory_gib: Count | None = Field(default=None, alias="memoryGiB")
    nvlink_busbw_gbs: Positive | None = None
    nvlink_latency_us: Positive | None = None
    network_gbs: Positive | None = None
    network_latency_us: Positive | None = None
    network: Text | None = None
    tflops_per_gpu: Positive | None = None
    step_time_s: Annotated[Positive, Field(le=3600)] | None = None
    noise_ratio: Annotated[float, Field(ge=0, le=0.2)] | None = None
    gemm_tflops: Positive | None = None
    nics: Annotated[int, Field(ge=0, le=64)] | None = None


class MatchDocument(Document):
    """Shell patterns; all of those given must hold."""

    node: str | None = None
    pod: str | None = None
    namespace: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    entry: str | None = None
    container: str | None = None
    command: str | None = None
    index: Annotated[int, Field(ge=0)] | None = None


class LinkDocument(Document):
    """Links that are slower than the model from the start; with `to`, the network between nodes."""

    match: MatchDocument
    factor: Annotated[Positive, Field(le=1)]
    link: Link = "both"
    to: MatchDocument | None = None

    @model_validator(mode="after")
    def _is_network(self) -> "LinkDocument":
        if self.to is not None and "link" in self.model_fields_set:
            raise ValueError("link has no meaning beside to, which is the network between nodes")
        return self


class AfterDocument(Document):
    """When a fault begins."""

    step: Annotated[int, Field(ge=1)] | None = None
    size: Bytes | None = None
    seconds: Seconds | None = None

    @model_validator(mode="after")
    def _one(self) -> "AfterDocument":
        if sum(each is not None for each in (self.step, self.size, self.seconds)) != 1:
            raise ValueError("exactly one of step, size, seconds must be given")
        return self


class FaultDocument(Document):
    """One fault; which of the last keys it takes depends on its action."""

    match: MatchDocument = MatchDocument()
    after: AfterDocument | None = None
    action: Action
    times: Count | None = None
    factor: Positive | None = None
    link: Link | None = None
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None
    reason: Text | None = None
    message: Text | None = None
    count: Count | None = None
    seconds: Seconds | None = None
    gpu: Annotated[int, Field(ge=0, le=1023)] | None = None
    test: Text | None = None
    condition: Annotated[str, Field(pattern=r"^[A-Za-z][-A-Za-z0-9_./]{0,62}$")] | None = None
    lines: Count | None = None
    bytes: Annotated[Bytes, Field(le=64 << 20)] | None = None
    reads: Count | None = None
    code: Annotated[int, Field(ge=400, le=599)] | None = None

    @model_validator(mode="after")
    def _fitting(self) -> "FaultDocument":
        taken = {**EVENTS, **CONDITIONS}[self.action]
        parameters = (
            *("factor", "link", "exit_code", "reason", "message", "count", "seconds"),
            *("gpu", "test", "condition", "lines", "bytes", "reads", "code"),
        )
        check_parameters(
            self.action,
            given_keys(self, parameters),
            taken=taken,
            needed=NEEDED.get(self.action, frozenset()),
        )
        is_slow = self.action in ("slow-link", "slow-gpu")
        if is_slow and self.factor is not None and self.factor > 1:
            raise ValueError(f"factor of {self.action} must be at most 1: 0.6 is 60 % of the speed")
        if self.action == "straggler" and self.factor is not None and self.factor < 1:
            raise ValueError("factor of straggler must be at least 1: 2 takes twice as long")
        if self.action in CONDITIONS and self.after is not None:
            is_sized = self.after.size is not None
            if self.after.step is not None or (is_sized and self.action != "wrong-values"):
                raise ValueError(f"{self.action} can only begin after seconds")
        return self


class LimitDocument(Document):
    """A limit for the scenario's own hardware."""

    metric: Literal[
        "busbw",
        "goodput",
        "step_time",
        "tflops_per_gpu",
        "gemm_tflops",
        "gemm_spread",
        "dcgm_failed_tests",
    ]
    operator: Literal[">=", "<=", ">", "<"]
    value: Positive
    unit: str
    entry: Text
    statistic: Literal["max", "at-size", "value"]
    size: Bytes | None = None
    scale: Literal["full-scale", "intra-node", "intra-rack", "diagnose"] | None = None
    min_nodes: Count | None = None
    max_nodes: Count | None = None
    fabric: Text | None = None
    date: Text

    @model_validator(mode="after")
    def _consistent(self) -> "LimitDocument":
        if self.unit != _UNITS[self.metric]:
            raise ValueError(
                f"unit of {self.metric} must be {_UNITS[self.metric]}, got {self.unit!r}"
            )
        if (self.statistic == "value") == (self.metric == "busbw"):
            choices = "max, at-size" if self.metric == "busbw" else "value"
            raise ValueError(f"statistic of {self.metric} must be one of: {choices}")
        if (self.statistic == "at-size") != (self.size is not None):
            raise ValueError("size is needed with statistic at-size, and only there")
        return self


class DerivedLimitsDocument(Document):
    """Limits that follow from the hardware, each by `margin` easier than what it reaches."""

    margin: Annotated[float, Field(gt=0, lt=1)]


class RecordingDocument(Document):
    """A recorded log in place of a container's program."""

    match: MatchDocument
    file: Text
    speed: Positive = 1.0
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None


class ProcessDocument(Document):
    """Containers that run as real processes on this machine."""

    match: MatchDocument
    python: Text


class ScenarioDocument(Document):
    """A scenario file; everything but the nodes has a default or comes from its base."""

    description: str | None = None
    extends: Text | None = None
    seed: Annotated[int, Field(ge=0)] | None = None
    table_time: Seconds | None = None
    init_time: Seconds | None = None
    pod_start_time: Seconds | None = None
    rendezvous_timeout: Seconds | None = None
    nodes: Annotated[list[NodesDocument], Field(min_length=1)] | None = None
    hardware: dict[str, HardwareDocument] = Field(default_factory=dict)
    links: list[LinkDocument] = Field(default_factory=list)
    faults: list[FaultDocument] = Field(default_factory=list)
    api_faults: list[ApiFaultDocument] = Field(default_factory=list)
    limits: list[LimitDocument] | None = None
    derived_limits: DerivedLimitsDocument | None = None
    recordings: list[RecordingDocument] = Field(default_factory=list)
    only_recordings: bool | None = None
    processes: list[ProcessDocument] = Field(default_factory=list)

    @property
    def has_limits(self) -> bool:
        """Return whether the file says anything of limits, so that its base's do not hold."""
        return self.limits is not None or self.derived_limits is not None

    @model_validator(mode="before")
    @classmethod
    def _mapping(cls, data: Any) -> Any:
        if data is not None and not isinstance(data, dict):
            raise ValueError("a scenario must be a mapping")
        return {} if data is None else data
