"""Platforms: how they are recognised and what they ask of pods."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pytest_cre.catalog.limit import Fabric
from pytest_cre.catalog.override import Override

FALLBACK = "onprem"
RACK_LABEL = "nvidia.com/gpu.clique"


class NodeLike(Protocol):
    """What is looked at of a node."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the node's labels."""

    @property
    def provider_id(self) -> str:
        """Return `spec.providerID`, empty where there is none."""

    @property
    def resources(self) -> Mapping[str, int]:
        """Return the allocatable extended resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectRule:
    """What tells a platform's nodes; every part that is given must hold."""

    provider_prefix: str | None = None
    has_no_provider: bool = False
    labels: Mapping[str, str | None] = field(default_factory=dict)  # None: any value
    label_parts: Mapping[str, str] = field(default_factory=dict)  # the value holds this text
    resource: str | None = None

    @property
    def parts(self) -> int:
        """Return how much the rule asks for; the rule that asks for more is tried first."""
        return (
            (self.provider_prefix is not None)
            + self.has_no_provider
            + len(self.labels)
            + len(self.label_parts)
            + (self.resource is not None)
        )

    @property
    def words(self) -> str:
        """Return what the rule asks for, in words: `providerID aws://`."""
        parts = [f"providerID {self.provider_prefix}"] if self.provider_prefix is not None else []
        parts += ["no providerID"] if self.has_no_provider else []
        parts += [
            f"label {name}" if value is None else f"label {name}={value}"
            for name, value in self.labels.items()
        ]
        parts += [f"label {name} with {part}" for name, part in self.label_parts.items()]
        parts += [f"allocatable {self.resource}"] if self.resource is not None else []
        return ", ".join(parts)

    def matches(self, node: NodeLike) -> bool:
        """Return whether the node is one of the platform's."""
        labels = node.labels
        return (
            (self.provider_prefix is None or node.provider_id.startswith(self.provider_prefix))
            and not (self.has_no_provider and node.provider_id)
            and all(
                name in labels and value in (None, labels[name])
                for name, value in self.labels.items()
            )
            and all(part in labels.get(name, "") for name, part in self.label_parts.items())
            and (self.resource is None or node.resources.get(self.resource, 0) > 0)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformHardware:
    """What an architecture is on a platform; None: as the architecture has it."""

    gpus_per_node: int | None = None
    nics_per_node: int | None = None
    fabric: Fabric | None = None
    rack_label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A platform; `hardware` names the architectures that its settings are known for."""

    name: str
    description: str = ""
    detect: tuple[DetectRule, ...] = ()
    hardware: Mapping[str, PlatformHardware] = field(default_factory=dict)
    overrides: tuple[Override, ...] = ()
    warning: str = ""  # shown whenever the platform was recognised and not named
    place: str = ""
    places: Mapping[str, str] = field(default_factory=dict, compare=False)  # of hardware

    def on(self, architecture: str | None) -> PlatformHardware:
        """Return what an architecture is here."""
        return self.hardware.get(architecture or "", PlatformHardware())


def platform_of(node: NodeLike, platforms: Mapping[str, Platform]) -> str:
    """Return the platform of a node by the rule that asks for most; `onprem` where none fits."""
    found = _rule_of(node, platforms)
    return found[0] if found is not None else FALLBACK


def told_by(node: NodeLike, platforms: Mapping[str, Platform]) -> str:
    """Return by what the platform of a node was told, in words."""
    found = _rule_of(node, platforms)
    return found[1].words if found is not None else "no rule of another platform"


def _rule_of(node: NodeLike, platforms: Mapping[str, Platform]) -> tuple[str, DetectRule] | None:
    found = [
        (-rule.parts, name, index, rule)
        for name, platform in platforms.items()
        for index, rule in enumerate(platform.detect)
        if rule.matches(node)
    ]
    if not found:
        return None
    _, name, _, rule = min(found, key=lambda each: each[:3])
    return name, rule


def platforms_of(nodes: Sequence[NodeLike], platforms: Mapping[str, Platform]) -> dict[str, int]:
    """Return how many nodes each platform has, the commonest first."""
    return dict(Counter(platform_of(node, platforms) for node in nodes).most_common())
