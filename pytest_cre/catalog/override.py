"""Overrides: how an entry's pods are fitted to a platform and an architecture, as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

Json = object


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a value must be: exactly one of the three is given."""

    equals: str | None = None
    is_in: tuple[str, ...] = ()
    not_in: tuple[str, ...] = ()

    def allows(self, value: str | None) -> bool:
        """Return whether the value is right; an unknown one (None) is in no list."""
        if self.equals is not None:
            return value == self.equals
        return value in self.is_in if self.is_in else value not in self.not_in

    @property
    def names(self) -> tuple[str, ...]:
        """Return every value that the condition names."""
        return (*((self.equals,) if self.equals is not None else ()), *self.is_in, *self.not_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """When an override applies: every condition that is given must hold."""

    platform: Condition | None = None
    architecture: Condition | None = None
    kind: Condition | None = None
    scale: Condition | None = None
    entries: tuple[str, ...] = ()  # shell patterns; empty: any
    measures: tuple[str, ...] = ()  # empty: whatever the entry measures
    min_nodes: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)  # value that the run must have

    def allows(
        self,
        *,
        platform: str | None,
        architecture: str | None,
        kind: str,
        scale: str,
        entry: str,
        measures: str,
        nodes: int,
        options: Mapping[str, str],
    ) -> bool:
        """Return whether every condition holds."""
        return (
            _allows(self.platform, platform)
            and _allows(self.architecture, architecture)
            and _allows(self.kind, kind)
            and _allows(self.scale, scale)
            and (not self.entries or any(fnmatchcase(entry, each) for each in self.entries))
            and (not self.measures or measures in self.measures)
            and (self.min_nodes is None or nodes >= self.min_nodes)
            and all(options.get(name) == value for name, value in self.options.items())
        )


def _allows(condition: Condition | None, value: str | None) -> bool:
    return condition is None or condition.allows(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """One change to the pods of an entry; texts may hold `${name}`.

    What is added is never lost to a later override: variables, resources, claims, tolerations,
    annotations and objects add up, and a later one of the same name wins. `container` and `pod` are merge
    patches (RFC 7386) on the container that holds the GPUs and on its pod template, `patch` a JSON
    patch (RFC 6902) on that template, after all else. None as a value takes away.
    """

    name: str
    when: When
    image: str | None = None
    env: Mapping[str, str | None] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)  # whole arguments, old to new
    options: Mapping[str, str] = field(default_factory=dict)  # other defaults of the entry's
    nic_resource: str | None = None  # requested as often as a node has NICs; AUTO: found on them
    nic_network: str | None = None  # a Multus network, attached once for each of these NICs
    claims: Mapping[str, str] = field(default_factory=dict)  # claim to ResourceClaimTemplate
    resources: Mapping[str, str | None] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, str]] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    container: Mapping[str, Json] = field(default_factory=dict)
    pod: Mapping[str, Json] = field(default_factory=dict)
    patch: Sequence[Mapping[str, Json]] = ()
    objects: Sequence[Mapping[str, Json]] = ()
    note: str = ""
    place: str = ""

    @property
    def edits_freely(self) -> bool:
        """Return whether it may change anything of the pods, with patches."""
        return bool(self.patch or self.container or self.pod)


AUTO = "auto"
"""The NIC resource that is looked for on the nodes."""
