"""The types that every YAML form is made of, and the form of log profiles."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from pytest_cre.catalog.entry import SCALES
from pytest_cre.catalog.logprofile import TimeUnit
from pytest_cre.formats import objectnames
from pytest_cre.formats.duration import parse_duration
from pytest_cre.formats.quantity import parse_message_bytes
from pytest_cre.formats.scalars import written_text

NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
COLLECTIVES = (
    *("all_gather", "all_reduce", "alltoall", "broadcast", "gather", "hypercube"),
    *("reduce", "reduce_scatter", "scatter", "sendrecv"),
)
NAME_WORDS = "must be a name of a-z, 0-9 and inner '-'"
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NODES = re.compile(r"[1-9][0-9]{0,5}")
_REFERENCE = re.compile(r"\$\{[^{}]*\}")


def _read_by(check: Callable[[Any], Any], written: Any = str) -> BeforeValidator:
    """Take values through a reader whose `ValueError` is the end of a message.

    `written` is what may stand in the file, for the JSON Schema.
    """
    return BeforeValidator(check, json_schema_input_type=written)


def _text(value: object) -> str:
    if isinstance(value, bool):
        raise ValueError(f'must be a text or a number; write "{str(value).lower()}" for the text')
    if not isinstance(value, str | int | float):
        got = ", got nothing" if value is None else ""
        raise ValueError(f"must be a text or a number{got}")
    return written_text(value)


def _plain(check: Callable[[str], str]) -> BeforeValidator:
    """Take texts through a check of names."""

    def taken(value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(f"must be a text, got {str(value)[:40]}")
        return check(value)

    return _read_by(taken)


def _filled_in(check: Callable[[str], str]) -> BeforeValidator:
    """Take texts through a check of names; what `${name}` stands for is told by a run alone."""

    def taken(value: object) -> str:
        text = _text(value)
        check(_REFERENCE.sub("x", text))
        return text

    return _read_by(taken, str | float)


def _name(value: object) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ValueError(f"{NAME_WORDS}, got {str(value)[:40]!r}")
    return value


def _env_name(value: object) -> str:
    if not isinstance(value, str) or not _ENV_NAME.fullmatch(value):
        raise ValueError("must be a variable's name such as NCCL_DEBUG")
    return value


def _scale(value: object) -> str:
    text = _text(value)
    if text not in SCALES and not _NODES.fullmatch(text):
        choices = ", ".join(SCALES)
        raise ValueError(f"is unknown: {text[:40]!r}; choices: {choices}, or a number of nodes")
    return text


def _bytes(value: object) -> int:
    return parse_message_bytes(_text(value))


def _timeout(value: object) -> float:
    seconds = parse_duration(value)
    if seconds <= 0:
        raise ValueError("must be longer than nothing")
    return seconds


Seconds = Annotated[float, _read_by(_timeout, str | float)]
Bytes = Annotated[int, _read_by(_bytes, str | int), Field(ge=1)]
Text = Annotated[str, _read_by(_text, str | float)]
Name = Annotated[str, _read_by(_name)]
EnvName = Annotated[str, _read_by(_env_name)]
Scale = Annotated[str, _read_by(_scale, str | int)]
Filled = Annotated[str, Field(min_length=1)]
LabelName = Annotated[str, _plain(objectnames.label_name)]
OptionalLabelName = Annotated[str, _plain(lambda text: text and objectnames.label_name(text))]
LabelValue = Annotated[str, _filled_in(objectnames.label_value)]
ObjectName = Annotated[str, _plain(objectnames.object_name)]
ResourceName = Annotated[str, _plain(objectnames.resource_name)]
Devices = Annotated[str, _plain(objectnames.extended_resource)]
Image = Annotated[str, _plain(objectnames.image_name)]
ImageStart = Annotated[str, _plain(objectnames.image_start)]
FilledImage = Annotated[str, _filled_in(objectnames.image_name)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Natural = Annotated[int, Field(ge=0, le=1_000_000)]
RdmaAccess = Literal["devicePlugin", "hostPath"]  # as upstream has it


class Document(BaseModel):
    """Base of every form: camelCase keys, nothing unknown, no guessing of types."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


def keys_of(form: type[Document]) -> set[str]:
    """Return the keys that a document of this form may have."""
    return {field.alias or name for name, field in form.model_fields.items()}


class PatternDocument(Document):
    """One pattern of a log profile."""

    regex: Filled
    example: str | None = None
    units: dict[str, TimeUnit] = {}


class PatternsDocument(Document):
    """The patterns that a log profile may have."""

    training_step: PatternDocument | None = None
    checkpoint_save: PatternDocument | None = None
    checkpoint_done: PatternDocument | None = None
    checkpoint_restore: PatternDocument | None = None
    checkpoint_loaded: PatternDocument | None = None
    application_start: PatternDocument | None = None
    warmup_step: PatternDocument | None = None
    bandwidth_result: PatternDocument | None = None
    network_transport: PatternDocument | None = None
    gemm_result: PatternDocument | None = None
    diagnostic_report: PatternDocument | None = None


class TimestampDocument(Document):
    """The layout of captured timestamps, as Go writes it."""

    layout: Filled


class StrategyDocument(Document):
    """Which pods' logs are read."""

    type: Literal["Single", "Multi"] = "Single"
    lifecycle_pod: Literal["first", "last"] = "first"
    training_step_pod: Literal["first", "last"] = "first"
    replicated_job_name: str = ""


class ProfileSpec(Document):
    """The spec of upstream's LogProfile."""

    timestamp: TimestampDocument
    patterns: PatternsDocument
    worker_strategy: StrategyDocument = StrategyDocument()
    container_name: str = ""
    warmup_steps: Natural = 0
    log_interval: Natural = 0


class ProfileMetadata(BaseModel):
    """Kubernetes metadata; only the name is used."""

    model_config = ConfigDict(extra="allow", strict=True)

    name: Name


class ProfileDocument(Document):
    """Upstream's LogProfile document as it is."""

    api_version: Literal["nvcre.nvidia.com/v1alpha1"]
    kind: Literal["LogProfile"]
    metadata: ProfileMetadata
    spec: ProfileSpec
