"""Bodies of requests, read and decoded; everything unreadable becomes an ApiError."""

import json
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from pytest_cre.embedded.decoding import DecodingError, RepeatedKeys, decode
from pytest_cre.embedded.kinds import KIND_BY_NAME, Json, Kind
from pytest_cre.embedded.options import Strictness
from pytest_cre.embedded.protobuf import MEDIA_TYPE as PROTOBUF
from pytest_cre.embedded.protobuf import ProtobufError, read_envelope, read_message
from pytest_cre.embedded.status import (
    ApiError,
    bad_request,
    invalid_patch,
)
from pytest_cre.embedded.strategicpatch import MissingKeyError, apply_strategic_patch
from pytest_cre.formats.patch import json_patch, merge_patch

BODY_LIMIT_BYTES = 3 * 1024 * 1024
_DEPTH_LIMIT = 200
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)
_BODY_TYPES = ("application/json", "application/yaml", PROTOBUF)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A decoded object, and what the client should be told about its text."""

    obj: Json
    warnings: tuple[str, ...] = ()


def parse_object(data: bytes, content_type: str, kind: Kind, strictness: Strictness) -> Body:
    """Read an object of a kind from JSON, YAML or protobuf; raises ApiError 400 and 415."""
    if content_type not in ("", *_BODY_TYPES):
        raise ApiError(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(_BODY_TYPES),
        )
    raw = _from_protobuf(data, kind) if content_type == PROTOBUF else _raw(data, content_type, kind)
    check_type(kind, raw)
    try:
        decoded = decode(kind.kind, raw)
    except DecodingError as error:
        raise _cannot_be_handled(kind, str(error)) from None
    if decoded.strays and strictness == "Strict":
        raise _cannot_be_handled(kind, f"strict decoding error: {', '.join(decoded.strays)}")
    warnings = tuple(decoded.strays) if strictness == "Warn" else ()
    return Body(obj=decoded.obj, warnings=warnings)


def check_type(kind: Kind, raw: Json) -> None:
    """Raise 400 where kind and apiVersion of an object are not those of the path."""
    api_version = str(raw.get("apiVersion") or kind.api_version)
    name = str(raw.get("kind") or kind.kind)
    if (api_version, name) == (kind.api_version, kind.kind):
        return
    known = KIND_BY_NAME.get((api_version, name))
    why = _not_registered(name, api_version) if known is None else _no_conversion(known, kind)
    version = api_version.rpartition("/")[2]
    raise bad_request(f'{name} in version "{version}" cannot be handled as a {kind.kind}: {why}')


def check_patch_type(content_type: str) -> None:
    """Raise 415 for a sort of patch that is not served, server-side apply among them."""
    if content_type not in _PATCH_TYPES:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def apply_patch(
    target: Json, data: bytes, content_type: str, kind: Kind, strictness: Strictness
) -> Body:
    """Give the patched object, decoded; `target` is not changed. Raises ApiError 400, 422."""
    patch = _patch(data, content_type)
    try:
        if isinstance(patch, list):
            result: object = json_patch(target, patch)
        elif content_type == MERGE_PATCH:
            result = merge_patch(target, patch)
        else:
            result = apply_strategic_patch(target, cast("Json", patch), kind.kind)
    except MissingKeyError as error:
        raise ApiError(500, "", str(error)) from None
    except ValueError:
        raise ApiError(
            422, "Invalid", "the server rejected our request due to an error in our request", {}
        ) from None
    if not isinstance(result, dict):
        raise bad_request("invalid JSON patch")
    shown = _go_value(patch) if content_type == STRATEGIC_PATCH else json.dumps(result)
    names = (str(result.get("apiVersion", "")), str(result.get("kind", "")))
    if names != (kind.api_version, kind.kind):
        if KIND_BY_NAME.get(names) is None:
            raise invalid_patch(shown, _not_registered(names[1], names[0]))
        raise invalid_patch(shown, _no_conversion(KIND_BY_NAME[names], kind))
    try:
        decoded = decode(kind.kind, result)
    except DecodingError as error:
        raise invalid_patch(shown, str(error)) from None
    if decoded.strays and strictness == "Strict":
        raise invalid_patch(shown, f"strict decoding error: {', '.join(decoded.strays)}")
    return Body(obj=decoded.obj, warnings=tuple(decoded.strays) if strictness == "Warn" else ())


def _patch(data: bytes, content_type: str) -> object:
    try:
        patch = _decode(data, "application/json")
    except ValueError:
        raise bad_request("invalid JSON patch") from None
    wanted, go_type = (
        (list, "[]handlers.jsonPatchOp")
        if content_type == JSON_PATCH
        else (dict, "map[string]interface {}")
    )
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, wanted):
        found = _json_type(patch)
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {found} into Go value of type {go_type}"
        )
    return patch


def _raw(data: bytes, content_type: str, kind: Kind) -> Json:
    try:
        raw = _decode(data, content_type)
        if raw is None and data.strip():
            return {}
        if not isinstance(raw, dict):
            raise ValueError(
                f"json: cannot unmarshal {_json_type(raw)} into Go value of type struct"
            )
    except ValueError as error:
        shown = data[:64].decode("utf-8", "replace") or "<empty>"
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): couldn't get "
            f"version/kind; json parse error: {error} ({shown})"
        ) from None
    return raw


def _from_protobuf(data: bytes, kind: Kind) -> Json:
    try:
        api_version, name, message = read_envelope(data)
        return {"apiVersion": api_version, "kind": name, **read_message(kind.kind, message)}
    except ProtobufError as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): {error}"
        ) from None


def _cannot_be_handled(kind: Kind, why: str) -> ApiError:
    return bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}'
    )


def _no_conversion(found: Kind, wanted: Kind) -> str:
    return (
        f"converting ({found.version}.{found.kind}) to ({wanted.group or 'core'}.{wanted.kind}): "
        "unknown conversion"
    )


def _not_registered(name: str, api_version: str) -> str:
    return (
        f'no kind "{name}" is registered for version "{api_version}" in scheme '
        '"pkg/runtime/scheme.go:111"'
    )


def _decode(data: bytes, content_type: str) -> object:
    """Read JSON or YAML; raises ValueError for whatever is not plain JSON data."""
    try:
        if content_type == "application/yaml":
            import yaml

            try:
                value = yaml.safe_load(data)
            except yaml.YAMLError as error:
                raise ValueError(" ".join(str(error).split())) from None
        else:
            value = _loads(data)
        _check_depth(value, 0)
    except RecursionError:
        raise ValueError("exceeded max depth") from None
    result: object = value
    return result


def _loads(data: bytes) -> object:
    try:
        text = data.decode("utf-8", "replace")
        return json.loads(text, object_pairs_hook=_pairs, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        if error.pos >= len(error.doc.rstrip()):
            raise ValueError("unexpected end of JSON input") from None
        raise


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    repeated = RepeatedKeys(found)
    repeated.repeated = tuple(
        dict.fromkeys(name for name, _value in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    )
    return repeated


def _check_depth(value: object, depth: int) -> None:
    if depth > _DEPTH_LIMIT:
        raise RecursionError
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise ValueError("a key is no text")
            _check_depth(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check_depth(inner, depth + 1)
    elif value is not None and not isinstance(value, (str, int, float)):
        raise ValueError("a value is none that JSON knows")


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"invalid character in number: {text}")


def _json_type(value: object) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


def _go_value(value: object) -> str:
    """Show a value as Go prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_go_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_value, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "<nil>", True: "true", False: "false"}[value]
    return str(value)
