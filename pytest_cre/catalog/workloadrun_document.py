"""The form of upstream's WorkloadRun document. What we cannot do is refused by name."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from pytest_cre.catalog.certification_document import (
    ApiVersion,
    GangSchedulerDocument,
    MetadataDocument,
    SecretDocument,
    TargetDocument,
    TestScale,
    Unsupported,
    WorkloadMetadataDocument,
)
from pytest_cre.catalog.documents import (
    Count,
    Devices,
    Document,
    EnvName,
    Filled,
    Image,
    Name,
    Natural,
    ResourceName,
    Seconds,
    Text,
)
from pytest_cre.formats.quantity import parse_amount

# File names of a ConfigMap.
FileName = Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)]


class TorchDocument(Document):
    """A program under torchrun: a script or a module."""

    script: Filled | None = None
    module: Filled | None = None
    args: list[Text] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_of_two(self) -> "TorchDocument":
        if (self.script is None) == (self.module is None):
            raise ValueError("must hold one of script, module")
        return self


class MpiDocument(Document):
    """A program under mpirun."""

    binary: Filled
    args: list[Text] = Field(default_factory=list)
    mpi_args: list[Text] = Field(default_factory=list)
    mpi_implementation: Literal["OpenMPI"] = "OpenMPI"
    mpirun_path: Filled = "mpirun"


class ExecDocument(Document):
    """A command, once on every node."""

    command: Annotated[list[Text], Field(min_length=1)]
    args: list[Text] = Field(default_factory=list)


class FrameworkDocument(Document):
    """How the program is started."""

    torch: TorchDocument | None = None
    mpi: MpiDocument | None = None
    exec: ExecDocument | None = None

    @model_validator(mode="after")
    def _one_of_three(self) -> "FrameworkDocument":
        if sum(each is not None for each in (self.torch, self.mpi, self.exec)) != 1:
            raise ValueError("must hold one of torch, mpi, exec")
        return self


class ConfigDocument(Document):
    """Files at /config: given here, or those of a ConfigMap."""

    inline: dict[FileName, str] | None = None
    config_map_ref: SecretDocument | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> "ConfigDocument":
        if (self.inline is None) == (self.config_map_ref is None):
            raise ValueError("must hold one of inline, configMapRef")
        return self


class VariableDocument(Document):
    """An environment variable."""

    name: EnvName
    value: Text = ""
    value_from: Unsupported = None


class ResourcesDocument(Document):
    """Resources of the container, besides its GPUs."""

    limits: dict[ResourceName, Text] = Field(default_factory=dict)
    requests: dict[ResourceName, Text] = Field(default_factory=dict)
    claims: Unsupported = None

    @field_validator("limits", "requests")
    @classmethod
    def _without_gpus(cls, given: dict[str, str]) -> dict[str, str]:
        if "nvidia.com/gpu" in given:
            raise ValueError("holds nvidia.com/gpu, which gpusPerNode sets")
        for name, amount in given.items():
            try:
                parse_amount(name, amount)
            except ValueError as problem:
                raise ValueError(f"holds {name}, which {problem}") from None
        return given


class OrchestrationDocument(Document):
    """How nodes are grouped."""

    test_scale: TestScale = "full-scale"
    repeat_count: Count = 1
    max_concurrent: Natural = 0
    timeout_per_job: Seconds = 3600.0


class MeasurementDocument(Document):
    """How the log is read."""

    log_profile_ref: Name
    sample_interval: Seconds | None = None
    test_type: Filled | None = None


class WorkloadRunSpec(Document):
    """One workload, and on which nodes."""

    target: TargetDocument = TargetDocument()
    image: Image
    framework: FrameworkDocument
    num_nodes: Count
    config: ConfigDocument | None = None
    gpus_per_node: Count | None = None
    nic_resource_name: Devices | None = None
    image_pull_secrets: list[SecretDocument] = Field(default_factory=list)
    env: list[VariableDocument] = Field(default_factory=list)
    volumes: list[dict[str, Any]] = Field(default_factory=list)
    volume_mounts: list[dict[str, Any]] = Field(default_factory=list)
    enable_mnnvl: Annotated[bool | None, Field(alias="enableMNNVL")] = None
    resources: ResourcesDocument | None = None
    init_containers: list[dict[str, Any]] = Field(default_factory=list)
    orchestration: OrchestrationDocument = OrchestrationDocument()
    thresholds: dict[Filled, str] = Field(default_factory=dict)
    goodput_measurement: MeasurementDocument | None = None
    bandwidth_measurement: MeasurementDocument | None = None
    gang_scheduler: GangSchedulerDocument | None = None
    workload_metadata: WorkloadMetadataDocument = WorkloadMetadataDocument()
    checkpoint: Unsupported = None
    mlnx_per_node: Unsupported = None
    overrides: Unsupported = None

    @field_validator("env")
    @classmethod
    def _each_once(cls, env: list[VariableDocument]) -> list[VariableDocument]:
        names = [each.name for each in env]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"holds {name} twice")
        return env

    @model_validator(mode="after")
    def _measures_one(self) -> "WorkloadRunSpec":
        if (self.goodput_measurement is None) == (self.bandwidth_measurement is None):
            raise ValueError(
                "must hold one of goodputMeasurement, bandwidthMeasurement: what is not measured "
                "cannot be judged"
            )
        return self


class WorkloadRunDocument(Document):
    """Upstream's WorkloadRun."""

    api_version: ApiVersion
    kind: Literal["WorkloadRun"]
    metadata: MetadataDocument
    spec: WorkloadRunSpec
    status: Any = None
