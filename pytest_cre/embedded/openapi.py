"""OpenAPI documents of the served kinds: enough for kubectl to leave the checking to the server."""

import functools
from collections.abc import Iterator

from pytest_cre.embedded.fields import Field, struct
from pytest_cre.embedded.kinds import GROUP_VERSIONS, KINDS, Json, Kind

_SCALARS: dict[str, Json] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "bytes": {"type": "string", "format": "byte"},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "Any": {"type": "object"},
}
_REFERENCE = "#/components/schemas/"


def openapi_index() -> Json:
    """Give the answer to `/openapi/v3`: where the document of each group is."""
    paths = {
        group_path(group, version): {
            "serverRelativeURL": f"/openapi/v3/{group_path(group, version)}"
        }
        for group, version in GROUP_VERSIONS.items()
    }
    return {"paths": paths}


def group_path(group: str, version: str) -> str:
    """Give the path under which a group is served, without the first slash."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


@functools.cache
def openapi_document(path: str) -> Json | None:
    """Give the document of one group, None where no group is served under the path."""
    kinds = [kind for kind in KINDS if group_path(kind.group, kind.version) == path]
    if not kinds and path not in openapi_index()["paths"]:
        return None
    schemas = {name: _schema(name) for name in sorted(_reachable([kind.kind for kind in kinds]))}
    for kind in kinds:
        schemas[kind.kind]["x-kubernetes-group-version-kind"] = [_kind_names(kind)]
        schemas[kind.kind]["properties"].update(
            {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
        )
    return {
        "openapi": "3.0.0",
        "info": {"title": "pytest-cre embedded cluster", "version": "unversioned"},
        "paths": dict(_path(path, kind) for kind in kinds),
        "components": {"schemas": schemas},
    }


def _path(path: str, kind: Kind) -> tuple[str, Json]:
    """Describe the one operation by which kubectl learns what the server checks."""
    place = "namespaces/{namespace}/" if kind.namespaced else ""
    media = {"application/json": {"schema": {"$ref": f"{_REFERENCE}{kind.kind}"}}}
    operation = {
        "x-kubernetes-group-version-kind": _kind_names(kind),
        "responses": {"200": {"description": "OK", "content": media}},
    }
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string"}}
        for name in ("dryRun", "fieldManager", "fieldValidation")
    ]
    patch = {**operation, "x-kubernetes-action": "patch", "parameters": parameters}
    get = {**operation, "x-kubernetes-action": "get"}
    return f"/{path}/{place}{kind.plural}/{{name}}", {"get": get, "patch": patch}


def _kind_names(kind: Kind) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _schema(name: str) -> Json:
    return {
        "type": "object",
        "properties": {field.name: _property(field) for field in struct(name).fields.values()},
    }


def _property(field: Field) -> Json:
    inner = {"$ref": f"{_REFERENCE}{field.type}"} if field.is_struct else _SCALARS[field.type]
    if field.container == "list":
        return {"type": "array", "items": inner}
    if field.container == "map":
        return {"type": "object", "additionalProperties": inner}
    return {"allOf": [inner]} if field.is_struct else dict(inner)


def _reachable(names: list[str]) -> Iterator[str]:
    seen: set[str] = set()
    while names:
        name = names.pop()
        if name not in seen:
            seen.add(name)
            yield name
            names += [field.type for field in struct(name).fields.values() if field.is_struct]
