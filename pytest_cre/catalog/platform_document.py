"""The form of a platform."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from pytest_cre.catalog.documents import (
    Count,
    Devices,
    Document,
    Filled,
    LabelName,
    LabelValue,
    Name,
    Natural,
)
from pytest_cre.catalog.limit import Fabric
from pytest_cre.catalog.override_document import OverrideDocument, overrides_from
from pytest_cre.catalog.platform import DetectRule, Platform, PlatformHardware
from pytest_cre.formats.yaml import YamlDocument, validate


class DetectDocument(Document):
    """One way to tell the platform's nodes; all that is given must hold."""

    provider_id: Filled | None = None
    no_provider_id: bool = False
    labels: dict[LabelName, LabelValue | None] = Field(default_factory=dict)
    label_parts: dict[LabelName, Filled] = Field(default_factory=dict)
    resource: Devices | None = None

    @model_validator(mode="after")
    def _asks_for_something(self) -> "DetectDocument":
        if self.provider_id is not None and self.no_provider_id:
            raise ValueError("asks for a providerId and for none")
        if not (self.provider_id or self.no_provider_id or self.labels or self.label_parts):
            raise ValueError("fits any node; give providerId, noProviderId, labels or labelParts")
        return self


class PlatformHardwareDocument(Document):
    """What an architecture is on the platform."""

    gpus_per_node: Count | None = None
    nics_per_node: Natural | None = None
    fabric: Fabric | None = None
    rack_label: LabelName | None = None


class PlatformDocument(Document):
    """A platform; its name is its file's."""

    description: str = ""
    warning: str = ""
    detect: list[DetectDocument] = Field(default_factory=list)
    hardware: Annotated[dict[Name, PlatformHardwareDocument], Field(min_length=1)]
    overrides: list[OverrideDocument] = Field(default_factory=list)


def platform_from(document: YamlDocument, path: Path) -> Platform:
    """Return the platform of a file `<name>.yaml`; raises `YamlProblem`."""
    form, name = validate(document, PlatformDocument), path.stem
    return Platform(
        name=name,
        description=form.description,
        detect=tuple(
            DetectRule(
                provider_prefix=each.provider_id,
                has_no_provider=each.no_provider_id,
                labels=dict(sorted(each.labels.items())),
                label_parts=dict(sorted(each.label_parts.items())),
                resource=each.resource,
            )
            for each in form.detect
        ),
        hardware={
            architecture: PlatformHardware(
                gpus_per_node=each.gpus_per_node,
                nics_per_node=each.nics_per_node,
                fabric=each.fabric,
                rack_label=each.rack_label,
            )
            for architecture, each in sorted(form.hardware.items())
        },
        overrides=overrides_from(form.overrides, document),
        warning=form.warning,
        place=document.place(),
        places={name: document.place(("hardware", name), of_key=True) for name in form.hardware},
    )
