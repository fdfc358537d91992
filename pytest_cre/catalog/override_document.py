"""The form of overrides: the same in entries, architectures and platforms."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from pytest_cre.catalog.documents import (
    Count,
    Document,
    EnvName,
    Filled,
    FilledImage,
    LabelName,
    LabelValue,
    Name,
    OptionalLabelName,
    ResourceName,
    Scale,
    Text,
)
from pytest_cre.catalog.entry import Measures
from pytest_cre.catalog.override import Condition, Override, When
from pytest_cre.formats.yaml import YamlDocument

Kind = Literal["indexedJob", "jobSet", "mpiJob", "trainJob"]
Listed = Annotated[list[Text], Field(min_length=1)]
_OURS = ("cre.pytest.org/", "app.kubernetes.io/managed-by")


def none_of_ours(labels: dict[str, str]) -> dict[str, str]:
    """Take labels that are for others to give; raises `ValueError` for one of ours."""
    for name in labels:
        if name.startswith(_OURS):
            raise ValueError(f"holds {name!r}, which every object carries already")
    return labels


class ConditionDocument(Document):
    """What a value must be: `equals`, `in` or `notIn`."""

    equals: Text | None = None
    is_in: Annotated[Listed | None, Field(alias="in")] = None
    not_in: Listed | None = None

    @model_validator(mode="after")
    def _one_of_three(self) -> "ConditionDocument":
        if sum(each is not None for each in (self.equals, self.is_in, self.not_in)) != 1:
            raise ValueError("must hold one of equals, in, notIn")
        return self


class KindConditionDocument(Document):
    """The same for kinds of workloads."""

    equals: Kind | None = None
    is_in: Annotated[list[Kind] | None, Field(alias="in", min_length=1)] = None
    not_in: Annotated[list[Kind] | None, Field(min_length=1)] = None

    @model_validator(mode="after")
    def _one_of_three(self) -> "KindConditionDocument":
        if sum(each is not None for each in (self.equals, self.is_in, self.not_in)) != 1:
            raise ValueError("must hold one of equals, in, notIn")
        return self


class ScaleConditionDocument(Document):
    """The same for scales."""

    equals: Scale | None = None
    is_in: Annotated[list[Scale] | None, Field(alias="in", min_length=1)] = None
    not_in: Annotated[list[Scale] | None, Field(min_length=1)] = None

    @model_validator(mode="after")
    def _one_of_three(self) -> "ScaleConditionDocument":
        if sum(each is not None for each in (self.equals, self.is_in, self.not_in)) != 1:
            raise ValueError("must hold one of equals, in, notIn")
        return self


class WhenDocument(Document):
    """When an override applies; empty: always."""

    platform: ConditionDocument | None = None
    gpu_architecture: ConditionDocument | None = None
    workload_kind: KindConditionDocument | None = None
    scale: ScaleConditionDocument | None = None
    entries: Annotated[list[Filled], Field(min_length=1)] | None = None
    measures: Annotated[list[Measures], Field(min_length=1)] | None = None
    min_nodes: Count | None = None
    options: dict[str, Text] = Field(default_factory=dict)


class TolerationDocument(Document):
    """A toleration as pods have it."""

    key: OptionalLabelName = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "TolerationDocument":
        if self.operator == "Exists" and self.value:
            raise ValueError("has a value, which operator Exists does not take")
        if not self.key and self.operator != "Exists":
            raise ValueError("needs a key, or operator Exists to tolerate everything")
        return self


class OperationDocument(Document):
    """One operation of a JSON patch."""

    op: Literal["add", "remove", "replace", "move", "copy", "test"]
    path: str
    from_: Annotated[str | None, Field(alias="from")] = None
    value: Any = None


class OverrideDocument(Document):
    """One change to the pods of an entry."""

    name: Name
    when: WhenDocument = WhenDocument()
    image: FilledImage | None = None
    env: dict[EnvName, Text | None] = Field(default_factory=dict)
    words: dict[str, Text] = Field(default_factory=dict)
    options: dict[str, Text] = Field(default_factory=dict)
    nic_resource: Filled | None = None
    nic_network: Filled | None = None
    claims: dict[Name, Text] = Field(default_factory=dict)
    resources: dict[ResourceName, Text | None] = Field(default_factory=dict)
    tolerations: list[TolerationDocument] = Field(default_factory=list)
    annotations: dict[LabelName, Text] = Field(default_factory=dict)
    labels: dict[LabelName, LabelValue] = Field(default_factory=dict)
    container: dict[str, Any] = Field(default_factory=dict)
    pod: dict[str, Any] = Field(default_factory=dict)
    patch: list[OperationDocument] = Field(default_factory=list)
    objects: list[dict[str, Any]] = Field(default_factory=list)
    note: str = ""

    @field_validator("labels")
    @classmethod
    def _of_others(cls, labels: dict[str, str]) -> dict[str, str]:
        return none_of_ours(labels)

    @model_validator(mode="after")
    def _does_something(self) -> "OverrideDocument":
        if not self.model_fields_set - {"name", "when", "note"}:
            raise ValueError("changes nothing; give env, resources, tolerations or another key")
        return self


def toleration_from(form: TolerationDocument) -> dict[str, str]:
    """Return a toleration without what is empty."""
    parts = {
        "key": form.key,
        "operator": form.operator,
        "value": form.value,
        "effect": form.effect or "",
    }
    return {name: text for name, text in parts.items() if text}


def overrides_from(forms: list[OverrideDocument], document: YamlDocument) -> tuple[Override, ...]:
    """Return the overrides of a checked document, in order."""
    return tuple(_override(form, document, index) for index, form in enumerate(forms))


def _override(form: OverrideDocument, document: YamlDocument, index: int) -> Override:
    given = form.model_fields_set
    patch = [
        operation.model_dump(by_alias=True, exclude_unset=True)
        for operation in (form.patch if "patch" in given else ())
    ]
    return Override(
        name=form.name,
        when=When(
            platform=_condition(form.when.platform),
            architecture=_condition(form.when.gpu_architecture),
            kind=_condition(form.when.workload_kind),
            scale=_condition(form.when.scale),
            entries=tuple(form.when.entries or ()),
            measures=tuple(form.when.measures or ()),
            min_nodes=form.when.min_nodes,
            options=dict(sorted(form.when.options.items())),
        ),
        image=form.image,
        env=dict(sorted(form.env.items())),
        words=dict(form.words),
        options=dict(sorted(form.options.items())),
        nic_resource=form.nic_resource,
        nic_network=form.nic_network,
        claims=dict(sorted(form.claims.items())),
        resources=dict(sorted(form.resources.items())),
        tolerations=tuple(toleration_from(each) for each in form.tolerations),
        annotations=dict(sorted(form.annotations.items())),
        labels=dict(sorted(form.labels.items())),
        container=form.container,
        pod=form.pod,
        patch=tuple(patch),
        objects=tuple(form.objects),
        note=form.note,
        place=document.place(("overrides", index)),
    )


def _condition(
    form: ConditionDocument | KindConditionDocument | ScaleConditionDocument | None,
) -> Condition | None:
    if form is None:
        return None
    return Condition(
        equals=form.equals, is_in=tuple(form.is_in or ()), not_in=tuple(form.not_in or ())
    )
