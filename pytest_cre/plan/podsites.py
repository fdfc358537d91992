"""Where pods stand inside manifests of any workload kind."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

GPU_RESOURCE = "nvidia.com/gpu"

Json = dict[str, Any]
Manifest = Mapping[str, object]


def editable(manifests: Sequence[Manifest]) -> list[Json]:
    """Return copies that share nothing with each other or with what is given."""
    copies: list[Json] = json.loads(json.dumps(list(manifests)))
    return copies


def pod_templates(manifest: Json) -> Iterator[Json]:
    """Yield every pod template of a manifest, wherever its kind keeps it."""
    spec = manifest.get("spec")
    if isinstance(spec, dict):
        if isinstance(spec.get("containers"), list):
            yield manifest
            return
        yield from _templates_in(spec)


def _templates_in(value: object) -> Iterator[Json]:
    if isinstance(value, dict):
        spec = value.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield value
            return
        for each in value.values():
            yield from _templates_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _templates_in(each)


def all_templates(manifests: Sequence[Json]) -> list[Json]:
    """Return the pod templates of every manifest, in order."""
    return [template for manifest in manifests for template in pod_templates(manifest)]


def containers_of(template: Json) -> list[Json]:
    """Return the containers of a template, those that run first included."""
    spec = template["spec"]
    return [*spec.get("initContainers", ()), *spec["containers"]]


def gpu_containers(template: Json) -> list[Json]:
    """Return the containers of a template that hold GPUs, by request or by claim."""
    return [each for each in template["spec"]["containers"] if holds_gpus(each)]


def holds_gpus(container: Json) -> bool:
    """Return whether a container asks for GPUs."""
    resources = container.get("resources") or {}
    return GPU_RESOURCE in (resources.get("limits") or {}) or bool(resources.get("claims"))


def launcher_position(container: Json) -> int | None:
    """Return where `mpirun` stands in command and arguments together, or None without one.

    The ranks that it starts elsewhere get only the variables that it is told to hand on.
    """
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    names = [word.rpartition("/")[2] for word in words if isinstance(word, str)]
    return next((at for at, name in enumerate(names) if name in ("mpirun", "mpiexec")), None)


def with_tolerations(template: Json, tolerations: Sequence[Mapping[str, str]]) -> list[str]:
    """Add tolerations that the template does not have yet; return the keys of those added."""
    present: list[Any] = template["spec"].setdefault("tolerations", [])
    added = [dict(each) for each in tolerations if dict(each) not in present]
    present += added
    return [each.get("key") or "any" for each in added]


def rank_variables(manifests: Sequence[Manifest]) -> dict[str, str]:
    """Return the environment of the containers that hold GPUs."""
    found: dict[str, str] = {}
    for template in all_templates(editable(manifests)):
        for container in gpu_containers(template):
            found |= {each["name"]: each.get("value", "") for each in container.get("env") or ()}
    return found


def add_tolerations(
    present: Sequence[Mapping[str, str]], added: Sequence[Mapping[str, str]]
) -> tuple[Mapping[str, str], ...]:
    """Return tolerations with those added that are not there yet."""
    return (*present, *(each for each in added if each not in present))
