"""One override at work on the manifests of a group."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_cre.catalog.options import substitute
from pytest_cre.catalog.override import AUTO, Override
from pytest_cre.formats.patch import json_patch, merge_patch
from pytest_cre.plan.podsites import (
    Json,
    all_templates,
    containers_of,
    editable,
    gpu_containers,
    launcher_position,
    with_tolerations,
)

NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks"
MLNX_NICS = "nvidia.com/mlnxnics"
# mpirun hands these on by itself.
_FORWARDED = ("OMPI_", "PMIX_", "PRTE_")
_COUNTS = frozenset(f"${{{name}}}" for name in ("nodes", "gpus", "gpusPerNode", "nicsPerNode"))
_OBJECT_PARTS = ("apiVersion", "kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class Nics:
    """The NICs of a node. `allocatable` by resource, the least of the nodes; None: not known.

    `are_host_devices`: pods open the node's own and ask for none.
    """

    per_node: int = 0
    allocatable: Mapping[str, int] | None = None
    site_resource: str | None = None
    are_host_devices: bool = False

    def resource(self, wanted: str | None) -> str | None:
        """Return the resource to ask for; None where nothing is wanted, or `auto` finds none."""
        if wanted is None or self.are_host_devices:
            return None
        if self.site_resource is not None or wanted != AUTO:
            return self.site_resource or wanted
        found = [
            name
            for name, count in sorted((self.allocatable or {}).items())
            if (name.startswith("rdma/") or name == MLNX_NICS) and count >= max(1, self.per_node)
        ]
        return found[0] if len(found) == 1 else None

    def count(self, resource: str) -> int:
        """Return how many of it to ask for."""
        return self.per_node if self.allocatable is None else self.allocatable.get(resource, 0)


class Editor:
    """One override at work; `changes` names what it changed, values left out."""

    def __init__(
        self,
        override: Override,
        values: Mapping[str, str],
        manifests: list[Json],
        image: str,
        nics: Nics,
    ) -> None:
        self.override = override
        self.values = values
        self.manifests = manifests
        self.image = image  # the entry's, which an override may replace
        self.nics = nics
        self.changes: list[str] = []

    def apply(self) -> None:
        """Apply every part in order: fields, merge patches, JSON patch, objects."""
        override = self.override
        resources = {
            name: None if amount is None else self._text(amount)
            for name, amount in override.resources.items()
        }
        annotations = dict(override.annotations)
        nic = self.nics.resource(override.nic_resource)
        if nic is not None:
            count = self.nics.count(nic)
            resources[nic] = str(count)
            if override.nic_network is not None and count:
                annotations[NETWORKS_ANNOTATION] = ",".join([override.nic_network] * count)
        for template in all_templates(self.manifests):
            self._template(template, resources, annotations)
        if override.objects:
            self._objects()
        self.changes += [f"option {name}" for name in override.options]

    def _template(
        self,
        template: Json,
        resources: Mapping[str, str | None],
        annotations: Mapping[str, str],
    ) -> None:
        override = self.override
        for key in with_tolerations(template, override.tolerations):
            self.changes.append(f"toleration {key}")
        for container in containers_of(template):
            self._container(container)
        holders = gpu_containers(template)
        if not holders:
            return
        metadata = template.setdefault("metadata", {})
        self._named(metadata, "annotations", "annotation", annotations)
        self._named(metadata, "labels", "label", override.labels)
        for container in holders:
            self._resources(container, resources)
            self._claims(template, container)
            if override.container:
                merged = merge_patch(container, self._filled(override.container))
                self._replaced(container, merged, "container")
        if override.pod:
            self._replaced(template, merge_patch(template, self._filled(override.pod)), "pod")
        if override.patch:
            patched = json_patch(template, [self._filled(each) for each in override.patch])
            self._replaced(template, patched, "pod patch")

    def _container(self, container: Json) -> None:
        override = self.override
        if override.image is not None and container.get("image") == self.image:
            image = self._text(override.image)
            if image != container["image"]:
                container["image"] = image
                self.changes.append("image")
        for part in ("command", "args"):
            words: list[str] = container.get(part) or []
            for index, word in enumerate(words):
                if word in override.words:
                    words[index] = self._text(override.words[word])
                    self.changes.append(f"word {word}")
        for name, value in sorted(override.env.items(), reverse=True):  # the last comes first
            self._variable(container, name, None if value is None else self._text(value))

    def _variable(self, container: Json, name: str, value: str | None) -> None:
        env = [dict(each) for each in container.get("env") or ()]
        others = [each for each in env if each["name"] != name]
        added = [] if value is None else [{"name": name, "value": value}]
        new = sorted((*others, *added), key=lambda each: str(each["name"]))
        if new != env:
            container["env"] = new
            self.changes.append(f"env {name}")
        if not name.startswith(_FORWARDED):
            self._handed_on(container, name, value)

    def _handed_on(self, container: Json, name: str, value: str | None) -> None:
        """Put a variable into `mpirun -x NAME=VALUE`, in place of one of the same name."""
        position = launcher_position(container)
        if position is None:
            return
        words = [*container["command"], *(container.get("args") or ())]
        before, rest = words[: position + 1], words[position + 1 :]
        kept: list[str] = []
        for word in rest:
            if kept[-1:] == ["-x"] and word.partition("=")[0] == name:
                kept.pop()
            else:
                kept.append(word)
        handed = [] if value is None else ["-x", f"{name}={value}"]
        if rest != [*handed, *kept]:
            container["command"], container["args"] = before, [*handed, *kept]

    def _resources(self, container: Json, resources: Mapping[str, str | None]) -> None:
        limits = dict((container.get("resources") or {}).get("limits") or {})
        new = dict(limits)
        for name, amount in resources.items():
            if amount is None or amount == "0":
                new.pop(name, None)
            else:
                new[name] = amount
            if new.get(name) != limits.get(name):
                self.changes.append(f"resource {name}")
        if new != limits:
            container["resources"] = {**(container.get("resources") or {}), "limits": new}

    def _claims(self, template: Json, container: Json) -> None:
        """Claim devices through resource claim templates, besides those claimed already."""
        for name, source in self.override.claims.items():
            claim = {"name": name, "resourceClaimTemplateName": self._text(source)}
            claims = template["spec"].setdefault("resourceClaims", [])
            if claim not in claims:
                claims.append(claim)
            used = container.setdefault("resources", {}).setdefault("claims", [])
            if {"name": name} not in used:
                used.append({"name": name})
                self.changes.append(f"claim {name}")

    def _named(self, metadata: Json, part: str, words: str, added: Mapping[str, str]) -> None:
        present = metadata.get(part) or {}
        new = {**present, **{name: self._text(value) for name, value in added.items()}}
        self.changes += [f"{words} {name}" for name in added if new[name] != present.get(name)]
        if new != present:
            metadata[part] = new

    def _objects(self) -> None:
        """Put further objects before all others, owned and labelled like them."""
        base = self.manifests[-1]["metadata"]
        added = []
        for each in self.override.objects:
            filled: dict[str, Any] = self._filled(each)
            own = filled.get("metadata") or {}
            labels = {**(own.get("labels") or {}), **base["labels"]}
            filled["metadata"] = {**own, **base, "name": own["name"], "labels": labels}
            first = {part: filled[part] for part in (*_OBJECT_PARTS, "metadata")}
            added.append({**first, **filled})
            self.changes.append(f"object {filled['kind']}")
        self.manifests = [*editable(added), *self.manifests]

    def _replaced(self, target: Json, new: Json, words: str) -> None:
        if new != target:
            target.clear()
            target.update(new)
            self.changes.append(words)

    def _text(self, text: str | None) -> str:
        return substitute(text or "", self.values)

    def _filled(self, value: Any) -> Any:
        """Return JSON with every text filled in; a text that is nothing but a count is a number."""
        if isinstance(value, str):
            filled = substitute(value, self.values)
            return int(filled) if value in _COUNTS else filled
        if isinstance(value, Mapping):
            return {key: self._filled(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._filled(each) for each in value]
        return json.loads(json.dumps(value))
