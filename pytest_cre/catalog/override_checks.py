"""What an override of the right form may still have wrong: one line per mistake."""

import json
from collections.abc import Iterator, Mapping, Sequence

from pytest_cre.catalog.options import PLAN_NAMES, references
from pytest_cre.catalog.override import AUTO, Override
from pytest_cre.formats.choices import choices_words
from pytest_cre.formats.objectnames import EXTENDED_RESOURCE
from pytest_cre.formats.quantity import parse_amount
from pytest_cre.formats.yaml import Path as YamlPath
from pytest_cre.formats.yaml import YamlDocument

OVERRIDE_NAMES = (*PLAN_NAMES, "job", "nicsPerNode")
GPU_RESOURCE = "nvidia.com/gpu"

# Merge patches replace lists whole, so these would take away what is there already.
_CONTAINER_LISTS = {
    "env": "use env",
    "args": "use words",
    "command": "use words",
    "image": "use image",
    "volumeMounts": "use patch with add /spec/containers/0/volumeMounts/-",
}
_POD_LISTS = {
    "tolerations": "use tolerations",
    "containers": "use container",
    "volumes": "use patch with add /spec/volumes/-",
}
_PATCHED = {
    "/spec/tolerations": "use tolerations",
    "/spec/containers/0/env": "use env",
    "/spec/containers/0/args": "use words",
    "/spec/containers/0/command": "use words",
    "/spec/containers": "use container",
    "/spec/volumes": "add to /spec/volumes/-",
}


def override_problems(
    overrides: Sequence[Override],
    document: YamlDocument,
    options: Mapping[str, object],
    *,
    is_platform: bool = False,
) -> Iterator[str]:
    """Yield what is wrong with overrides; `options` are those of the entry they stand in."""
    names: dict[str, int] = {}
    for index, override in enumerate(overrides):
        path: YamlPath = ("overrides", index)
        first = names.setdefault(override.name, index)
        if first != index:
            other = document.place(("overrides", first))
            yield f"{document.place((*path, 'name'))}: override {override.name} stands also in {other}"
        if is_platform and override.when.platform is not None:
            place = document.place((*path, "when", "platform"))
            yield f"{place}: the file is for one platform; take when.platform out"
        yield from _reference_problems(document, path, {*OVERRIDE_NAMES, *options})
        yield from _option_problems(override, document, path, options)
        yield from _resource_problems(override, document, path)
        yield from _list_problems(override, document, path)
        yield from _object_problems(override, document, path)


def _reference_problems(document: YamlDocument, path: YamlPath, known: set[str]) -> Iterator[str]:
    for part, text in filled_texts(document.data["overrides"][path[1]]):
        for name in references(text):
            if name is None:
                place = document.place((*path, *part))
                yield f"{place}: '${{' is never closed in {text[:80]!r}; a plain '$' is written '$$'"
            elif name not in known:
                place = document.place((*path, *part))
                yield f"{place}: ${{{name}}} is unknown{choices_words(name, known)}"


def _option_problems(
    override: Override, document: YamlDocument, path: YamlPath, options: Mapping[str, object]
) -> Iterator[str]:
    if not override.options:
        return
    for name in override.options if options else ():
        if name not in options:
            place = document.place((*path, "options", name), of_key=True)
            yield f"{place}: option {name!r} is unknown{choices_words(name, options)}"
    when = override.when
    for key, is_given in (
        ("workloadKind", when.kind is not None),
        ("minNodes", when.min_nodes is not None),
        ("options", bool(when.options)),
    ):
        if is_given:
            place = document.place((*path, "when", key), of_key=True)
            yield f"{place}: options are chosen before that is known; take when.{key} out"


def filled_texts(override: object) -> Iterator[tuple[YamlPath, str]]:
    """Yield every text of an override's data that may take `${name}`, with its path."""
    for part, text in _texts(override, ()):
        if part[:1] not in (("when",), ("note",)):
            yield part, text


def _texts(data: object, path: YamlPath) -> Iterator[tuple[YamlPath, str]]:
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, Mapping):
        for key, each in data.items():
            yield from _texts(each, (*path, key))
    elif isinstance(data, list):
        for index, each in enumerate(data):
            yield from _texts(each, (*path, index))


def _resource_problems(override: Override, document: YamlDocument, path: YamlPath) -> Iterator[str]:
    for name, amount in override.resources.items():
        place = document.place((*path, "resources", name))
        if amount is None or "${" in amount:
            continue
        try:
            count = parse_amount(name, amount)
        except ValueError as problem:
            yield f"{place}: resource {name} {problem}"
            continue
        if count == 0 and name != GPU_RESOURCE:
            yield f"{place}: a request of {amount} {name} asks for nothing; take it out"
    nic = override.nic_resource
    if nic is not None and nic != AUTO and EXTENDED_RESOURCE.fullmatch(nic) is None:
        place = document.place((*path, "nicResource"))
        yield f"{place}: nicResource must be a name such as rdma/ib, or auto"


def _list_problems(override: Override, document: YamlDocument, path: YamlPath) -> Iterator[str]:
    spec = override.pod.get("spec")
    for part, given, lists in (
        (("container",), override.container, _CONTAINER_LISTS),
        (("pod", "spec"), spec if isinstance(spec, Mapping) else {}, _POD_LISTS),
    ):
        for key in given:
            if key in lists:
                place = document.place((*path, *part, key), of_key=True)
                yield f"{place}: {'.'.join(part)}.{key} would replace what is there; {lists[key]}"
    for index, operation in enumerate(override.patch):
        target, kind = str(operation.get("path", "")), operation.get("op")
        place = document.place((*path, "patch", index))
        if kind in ("replace", "add", "remove") and target in _PATCHED:
            yield f"{place}: {kind} {target} would lose what is there; {_PATCHED[target]}"
        if kind in ("add", "replace", "test") and "value" not in operation:
            yield f"{place}: {kind} needs a value"
        if kind in ("move", "copy") and "from" not in operation:
            yield f"{place}: {kind} needs from"
        if not target.startswith("/"):
            yield f"{place}: path must be a JSON pointer such as /spec/volumes/-, got {target!r}"


def _object_problems(override: Override, document: YamlDocument, path: YamlPath) -> Iterator[str]:
    for index, each in enumerate(override.objects):
        place = document.place((*path, "objects", index))
        metadata = each.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        for key, value in (("apiVersion", each.get("apiVersion")), ("kind", each.get("kind"))):
            if not isinstance(value, str) or not value:
                yield f"{place}: {key} is missing"
        if not isinstance(name, str) or "${job}" not in name:
            yield (
                f"{place}: metadata.name must hold ${{job}}, or two groups would share the object; "
                f"got {json.dumps(name)}"
            )
