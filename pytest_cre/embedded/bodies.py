"""Bodies and options of requests, checked; everything unreadable becomes an ApiError."""

import json
from collections.abc import Mapping
from typing import NoReturn, cast, get_args

from pytest_cre.embedded.deletion import DeleteOptions, Propagation
from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.status import ApiError, bad_request, invalid_options, unsupported_value
from pytest_cre.embedded.strategicpatch import apply_strategic_patch
from pytest_cre.formats.patch import json_patch, merge_patch

BODY_LIMIT_BYTES = 3 * 1024 * 1024
_DEPTH_LIMIT = 200
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)


def parse_object(data: bytes, content_type: str, kind_name: str) -> Json:
    """Read a JSON or YAML object; the kind expected is named in what is raised."""
    if content_type not in ("", "application/json", "application/yaml"):
        raise _unsupported_media_type()
    try:
        body = _decode(data, content_type)
        if not isinstance(body, dict):
            raise ValueError("json: cannot unmarshal this value into a JSON object")
    except ValueError as error:
        shown = data[:64].decode("utf-8", "replace") or "<empty>"
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind_name}): couldn't get "
            f"version/kind; json parse error: {error} ({shown})"
        ) from None
    return body


def parse_delete_options(data: bytes, content_type: str, query: Mapping[str, str]) -> DeleteOptions:
    """Read DeleteOptions from the body and, for what it leaves open, from the query."""
    body = parse_object(data, content_type, "DeleteOptions") if data.strip() else {}
    preconditions = body.get("preconditions")
    if not isinstance(preconditions, dict):
        preconditions = {}
    grace = body.get("gracePeriodSeconds")
    if grace is None and query.get("gracePeriodSeconds"):
        grace = integer(query, "gracePeriodSeconds")
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise bad_request("gracePeriodSeconds must be an integer")
    propagation = body.get("propagationPolicy") or query.get("propagationPolicy") or None
    orphan = body.get("orphanDependents")
    if orphan is None and query.get("orphanDependents"):
        orphan = boolean(query, "orphanDependents")
    if propagation is None and isinstance(orphan, bool):
        propagation = "Orphan" if orphan else "Background"
    if propagation is not None and propagation not in get_args(Propagation):
        policies = ("Foreground", "Background", "Orphan", "nil")
        cause = unsupported_value("propagationPolicy", propagation, policies)
        raise invalid_options("DeleteOptions", cause)
    return DeleteOptions(
        grace_s=grace,
        propagation=cast("Propagation | None", propagation),
        uid=_text(preconditions.get("uid")),
        resource_version=_text(preconditions.get("resourceVersion")),
        dry_run=is_dry_run(query) or body.get("dryRun") == ["All"],
    )


def apply_patch(target: Json, data: bytes, content_type: str) -> Json:
    """Give the patched object; `target` is not changed."""
    if content_type not in _PATCH_TYPES:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    try:
        patch = _decode(data, "application/json")
    except ValueError:
        raise bad_request("invalid JSON patch") from None
    if not isinstance(patch, list if content_type == JSON_PATCH else dict):
        raise bad_request("invalid JSON patch")
    result: object
    try:
        if isinstance(patch, list):
            result = json_patch(target, patch)
        elif content_type == MERGE_PATCH:
            result = merge_patch(target, patch)
        else:
            result = apply_strategic_patch(target, cast("Json", patch))
    except ValueError:
        raise ApiError(
            422, "Invalid", "the server rejected our request due to an error in our request", {}
        ) from None
    if not isinstance(result, dict):
        raise bad_request("invalid JSON patch")
    return result


def integer(query: Mapping[str, str], name: str, default: int = 0) -> int:
    """Read a whole number from the query."""
    text = query.get(name, "")
    if not text:
        return default
    try:
        if len(text) > 19:
            raise ValueError
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def boolean(query: Mapping[str, str], name: str) -> bool:
    """Read a truth value from the query, as Go's query conversion does."""
    if name not in query:
        return False
    return query[name].lower() not in ("false", "0")


def is_dry_run(query: Mapping[str, str]) -> bool:
    """Whether the request only asks what would happen."""
    return query.get("dryRun") == "All"


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
            value = json.loads(data, parse_constant=_refuse_constant)
        _check_depth(value, 0)
    except RecursionError:
        raise ValueError("exceeded max depth") from None
    result: object = value
    return result


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


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _unsupported_media_type() -> ApiError:
    return ApiError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml",
    )
