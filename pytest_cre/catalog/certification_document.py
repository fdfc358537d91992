"""The form of upstream's Certification document. What we cannot do is refused by name."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from pytest_cre.catalog.documents import (
    Count,
    Devices,
    Document,
    Filled,
    Image,
    LabelName,
    LabelValue,
    Name,
    Natural,
    ObjectName,
    OptionalLabelName,
    RdmaAccess,
    Seconds,
    Text,
)
from pytest_cre.formats.yaml import Model, YamlDocument, YamlProblem, problems, validate

API_VERSIONS = ("nvcre.nvidia.com/v1alpha1", "cre.nvidia.com/v1alpha1")
ApiVersion = Literal["nvcre.nvidia.com/v1alpha1", "cre.nvidia.com/v1alpha1"]
KUEUE_LABEL = "kueue.x-k8s.io/queue-name"

_REFUSAL = "is not supported; take it out, or run this in another way"


def _refuse(value: object) -> object:
    if value is not None:
        raise ValueError(_REFUSAL)
    return value


def checked(document: YamlDocument, model: type[Model]) -> Model:
    """Return a document of upstream's as `model`; raises `YamlProblem` for its first mistake.

    All fields that we cannot do are told together.
    """
    found = [
        line.removesuffix(f" {_REFUSAL}").rpartition(": ")
        for line in problems(document, model)
        if line.endswith(_REFUSAL)
    ]
    if len(found) > 1:
        (place, _, first), *rest = found
        others = (
            f"{name} ({where.removeprefix(document.source + ':')})" for where, _, name in rest
        )
        raise YamlProblem(
            f"{place}: {first}, {', '.join(others)} are not supported; take them out, or run this in "
            "another way"
        )
    return validate(document, model)


Unsupported = Annotated[Any, BeforeValidator(_refuse)]


class MetadataDocument(BaseModel):
    """Kubernetes metadata; only the name is used."""

    model_config = ConfigDict(extra="allow", strict=True)

    name: Name


class ExpressionDocument(Document):
    """One expression on node labels."""

    key: LabelName
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[LabelValue] = Field(default_factory=list)

    @field_validator("values")
    @classmethod
    def _fits_operator(cls, values: list[str], info: Any) -> list[str]:
        if info.data.get("operator") in ("Exists", "DoesNotExist") and values:
            raise ValueError(f"must be empty for operator {info.data['operator']}")
        if info.data.get("operator") in ("In", "NotIn") and not values:
            raise ValueError(f"must not be empty for operator {info.data['operator']}")
        return values


class TargetDocument(Document):
    """Which nodes; all that is given must hold."""

    node_selector: dict[LabelName, LabelValue] = Field(default_factory=dict)
    match_expressions: list[ExpressionDocument] = Field(default_factory=list)
    node_names: list[ObjectName] = Field(default_factory=list)
    taint_selectors: Unsupported = None

    def selector(self) -> str:
        """Return the same as a label selector's text."""
        parts = [f"{key}={value}" for key, value in sorted(self.node_selector.items())]
        for each in self.match_expressions:
            listed = f"({','.join(each.values)})"
            match each.operator:
                case "In":
                    parts.append(f"{each.key} in {listed}")
                case "NotIn":
                    parts.append(f"{each.key} notin {listed}")
                case "Exists":
                    parts.append(each.key)
                case "DoesNotExist":
                    parts.append(f"!{each.key}")
        return ",".join(parts)


class GangSchedulerDocument(Document):
    """A scheduler that places all pods of a workload or none."""

    scheduler_name: Filled
    queue: LabelValue = ""
    queue_label_key: OptionalLabelName = ""

    @field_validator("queue_label_key")
    @classmethod
    def _not_ours(cls, key: str) -> str:
        if key == "app.kubernetes.io/managed-by" or key.startswith(
            ("nvcre.nvidia.com/", "cre.pytest.org/")
        ):
            raise ValueError(f"must not be {key!r}, which the harness owns")
        return key

    def labels(self) -> dict[str, str]:
        """Return the label that puts pods into the queue."""
        key = self.queue_label_key or "kai.scheduler/queue"
        return {key: self.queue or "default-queue"}


class SecretDocument(Document):
    """A reference to a Secret."""

    name: ObjectName


class WorkloadMetadataDocument(Document):
    """Labels of the workload object; a Kueue queue is what they are for."""

    labels: dict[LabelName, LabelValue] = Field(default_factory=dict)

    @field_validator("labels")
    @classmethod
    def _queue_only(cls, labels: dict[str, str]) -> dict[str, str]:
        for key in labels:
            if key != KUEUE_LABEL:
                raise ValueError(f"holds {key!r}, which is not supported; choices: {KUEUE_LABEL}")
        return labels


TestScale = Literal["full-scale", "intra-node", "intra-rack"]
CategoryScale = Literal["full-scale", "intra-node", "intra-rack", "diagnose"]


class CategoryOptionsDocument(Document):
    """Options of a category, or of all of them."""

    nodes_per_job: Count | None = None
    gpus_per_node: Count | None = None
    nic_resource_name: Devices | None = None
    enable_mnnvl: Annotated[bool | None, Field(alias="enableMNNVL")] = None
    image: Image | None = None
    image_pull_secrets: list[SecretDocument] = Field(default_factory=list)
    test_scale: CategoryScale | None = None
    min_group_size: Count | None = None
    max_bytes: Text | None = None
    num_iterations: Count | None = None
    num_cycles: Count | None = None
    max_steps: int | None = None
    exit_duration_mins: Count | None = None
    save_interval: Count | None = None
    enable_checkpoint: bool | None = None
    max_restarts: Natural | None = None
    storage_class_name: Filled | None = None
    storage_size: Filled | None = None
    thresholds: dict[Filled, str] = Field(default_factory=dict)
    repeat_count: Count | None = None
    max_concurrent: Natural | None = None
    timeout_per_job: Seconds | None = None
    measurement_timeout: Seconds | None = None
    workload_metadata: WorkloadMetadataDocument | None = None
    mlnx_per_node: Unsupported = None
    placement: Unsupported = None
    rdma_device_access: RdmaAccess | None = None
    resources: Unsupported = None
    save_retain_interval: Unsupported = None
    save_top_k: Annotated[Unsupported, Field(alias="saveTopK")] = None
    source_repo: Unsupported = None
    startup_stall_timeout_seconds: Unsupported = None


class CategoryDocument(Document):
    """A catalog entry to run, with its options."""

    domain: Name
    variant: Name
    options: CategoryOptionsDocument | None = None


class CertificationSpec(CategoryOptionsDocument):
    """What to certify, on which nodes; its options hold where a category sets none."""

    target: TargetDocument
    categories: Annotated[list[CategoryDocument], Field(min_length=1, max_length=64)]
    gang_scheduler: GangSchedulerDocument | None = None


class CertificationDocument(Document):
    """Upstream's Certification."""

    api_version: ApiVersion
    kind: Literal["Certification"]
    metadata: MetadataDocument
    spec: CertificationSpec
    status: Any = None
