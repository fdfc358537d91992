"""The YAML form of catalog entries."""

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from pytest_cre.catalog.documents import (
    Count,
    Document,
    EnvName,
    Filled,
    Image,
    Name,
    Scale,
    Seconds,
    Text,
)
from pytest_cre.catalog.entry import NODE_HEALTH, Measures, Provision
from pytest_cre.catalog.limit_document import LimitDocument
from pytest_cre.catalog.override_document import OverrideDocument
from pytest_cre.formats.cel import compile_predicate


class OptionDocument(Document):
    """An option: its default, the RE2 pattern of its values, what it means."""

    default: Text
    pattern: Filled | None = None
    description: str = ""


class WorkloadDocument(Document):
    """What the container runs."""

    command: Annotated[list[Text], Field(min_length=1)]
    args: list[Text] = Field(default_factory=list)


class WorkloadsDocument(Document):
    """Commands by workload kind; the order in the file is the order of preference."""

    indexed_job: WorkloadDocument | None = None
    job_set: WorkloadDocument | None = None
    mpi_job: WorkloadDocument | None = None
    train_job: WorkloadDocument | None = None


class NeedsDocument(Document):
    """What a group of nodes must have; names of options where these decide."""

    nodes: Count = 1
    gpus: Count = 1
    model_parallel: list[Filled] = Field(default_factory=list)
    expert_parallel: Filled | None = None
    nvlink: bool = False
    cluster: list[Provision] = Field(default_factory=list)


class RepeatDocument(Document):
    """How often the entry runs on each group until the interval of its figures tells a verdict."""

    least: Annotated[int, Field(ge=2, le=100)] = 3
    most: Annotated[int, Field(ge=2, le=100)] = 7
    error: Annotated[float, Field(gt=0, lt=0.5)] = 0.05

    @model_validator(mode="after")
    def _in_order(self) -> "RepeatDocument":
        if self.least > self.most:
            raise ValueError(f"has least {self.least} above most {self.most}")
        return self


class CheckpointDocument(Document):
    """A volume for checkpoints, and how often the workload is restarted from them; all take names."""

    enabled: bool | Text = True
    path: Text
    storage_size: Text = "10Ti"
    storage_class_name: Text = ""
    max_restarts: Text = "0"


class EntryLimitDocument(LimitDocument):
    """A limit of the entry that it stands in."""

    entry: str = ""

    @field_validator("entry")
    @classmethod
    def _is_the_own(cls, entry: str) -> str:
        raise ValueError(f"is the entry that the limit stands in; take it out, got {entry[:40]!r}")


class EntryDocument(Document):
    """A catalog entry; its name is its path, `<domain>/<variant>.yaml`."""

    extends: Filled | None = None
    description: Filled
    measures: Measures
    test: Filled | None = None
    image: Image
    gpus_per_node: Count | None = None
    scales: list[Scale] = Field(default_factory=lambda: ["full-scale"], min_length=1)
    scales_on_request: list[Scale] = Field(default_factory=list)
    architectures: list[Name] = Field(default_factory=list)
    log_profile: Name
    timeout: Seconds
    start_timeout: Seconds = 600.0
    options: dict[str, OptionDocument] = Field(default_factory=dict)
    env: dict[EnvName, Text] = Field(default_factory=dict)
    scripts: list[Filled] = Field(default_factory=list)
    overrides: list[OverrideDocument] = Field(default_factory=list)
    needs: NeedsDocument = NeedsDocument()
    cost: Seconds | None = None
    node_health: Filled = NODE_HEALTH
    stall_multiplier: Annotated[float, Field(ge=1, le=1000)] | None = None
    repeat: RepeatDocument | None = None
    retries: Annotated[int, Field(ge=0, le=10)] = 0
    checkpoint: CheckpointDocument | None = None
    limits: list[EntryLimitDocument] = Field(default_factory=list)
    workloads: WorkloadsDocument

    @field_validator("node_health")
    @classmethod
    def _is_a_rule(cls, rule: str) -> str:
        compile_predicate(rule, ("node",))  # its problem ends a message, as pydantic wants it
        return rule
