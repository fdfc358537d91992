"""What no override may do to pods: take away what a run needs, or leave something that is no pod."""

from collections import Counter
from collections.abc import Sequence

from pytest_cre.plan.podsites import Json, all_templates, containers_of, gpu_containers

_LISTS = ("env", "args", "command", "volumeMounts")
_MAPS = ("resources", "securityContext")


class LostPart(ValueError):
    """An override that cannot stand; the text is one line."""


def check_pods(before: Sequence[Json], manifests: Sequence[Json]) -> None:
    """Raise `LostPart` for the first thing that pods had before an override and lack after it.

    `before` are the templates as they were, `manifests` hold them as they are. Looked at are labels,
    tolerations, GPUs, containers, and that each variable stands once.
    """
    after = all_templates(manifests)
    if len(after) < len(before):
        raise LostPart("takes the containers away, so nothing would run")
    for first, second in zip(before, after, strict=True):
        _check_shape(second)
        _check_kept(first, second)


def _check_shape(template: Json) -> None:
    """Raise `LostPart` where a part that is edited further is not what pods have there."""
    _must_be(template.get("metadata", {}), dict, "metadata")
    for part in ("labels", "annotations"):
        _must_be(template.get("metadata", {}).get(part, {}), dict, f"metadata.{part}")
    spec = template["spec"]
    for part in ("containers", "initContainers", "tolerations", "volumes", "resourceClaims"):
        _must_be(spec.get(part, []), list, f"spec.{part}")
        for each in spec.get(part, []):
            _must_be(each, dict, f"an item of spec.{part}")
    for container in containers_of(template):
        name = container.get("name")
        if not isinstance(name, str) or not isinstance(container.get("image"), str):
            raise LostPart("leaves a container without name or image")
        for part in _LISTS:
            _must_be(container.get(part, []), list, f"{part} of container {name}")
        for part in _MAPS:
            _must_be(container.get(part, {}), dict, f"{part} of container {name}")
        resources = container.get("resources", {})
        for part, kind in (("limits", dict), ("requests", dict), ("claims", list)):
            _must_be(resources.get(part, kind()), kind, f"resources.{part} of container {name}")
        _check_env(container)


def _check_env(container: Json) -> None:
    for each in container.get("env", []):
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            raise LostPart(f"leaves a variable of container {container['name']} without a name")
    counts = Counter(each["name"] for each in container.get("env", []))
    for name, count in counts.items():
        if count > 1:
            raise LostPart(f"sets variable {name} a second time; use env")


def _check_kept(before: Json, after: Json) -> None:
    labels = after.get("metadata", {}).get("labels", {})
    for name, value in before["metadata"].get("labels", {}).items():
        if labels.get(name) != value and name.startswith(("cre.pytest.org/", "app.kubernetes.io/")):
            raise LostPart(f"changes label {name}, by which the run finds its pods")
    for toleration in before["spec"].get("tolerations", []):
        if toleration not in after["spec"].get("tolerations", []):
            raise LostPart("loses tolerations that were there; use tolerations")
    if len(gpu_containers(after)) < len(gpu_containers(before)):
        raise LostPart("takes the GPUs away; claim them by another name in the same override")


def _must_be(value: object, kind: type, part: str) -> None:
    if not isinstance(value, kind):
        raise LostPart(f"leaves no {'list' if kind is list else 'map'} as {part}")
