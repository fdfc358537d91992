"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902). Pure: nothing given is changed."""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

Json = Any  # what json.loads returns


MAX_OPERATIONS = 10_000  # as the API server has it
MAX_COPIES = 16


class PatchProblem(ValueError):
    """A patch that cannot be applied; the text is one line."""


def merge_patch(target: Json, patch: Json) -> Json:
    """Return `target` with `patch` merged in; null deletes a key, lists are replaced."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(target: Json, operations: Sequence[Mapping[str, Json]]) -> Json:
    """Return `target` after every operation in order; raises `PatchProblem` and changes nothing."""
    if not isinstance(operations, list | tuple):
        _refuse("a JSON patch must be a list of operations")
    if len(operations) > MAX_OPERATIONS:
        _refuse(f"a JSON patch may hold {MAX_OPERATIONS} operations, got {len(operations)}")
    document = copy.deepcopy(target)
    copies = 0
    for operation in operations:
        if not isinstance(operation, Mapping):
            _refuse("each operation of a JSON patch must be an object")
        copies += operation.get("op") == "copy"
        if copies > MAX_COPIES:  # each may double the document
            _refuse(f"a JSON patch may hold {MAX_COPIES} copy operations")
        document = _apply(document, operation)
    return document


def _apply(document: Json, operation: Mapping[str, Json]) -> Json:
    path = _pointer(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _add(document, path, copy.deepcopy(_value(operation)))
        case "remove":
            return _remove(document, path)
        case "replace":
            _get(document, path)
            return _put(document, path, copy.deepcopy(_value(operation)))
        case "move":
            source = _pointer(operation.get("from"))
            if path[: len(source)] == source and path != source:
                _refuse("move: a value cannot be moved into itself")
            moved = _get(document, source)
            return _add(_remove(document, source), path, moved)
        case "copy":
            return _add(
                document, path, copy.deepcopy(_get(document, _pointer(operation.get("from"))))
            )
        case "test":
            if not _same(_get(document, path), _value(operation)):
                _refuse(f"test failed at {operation['path']!r}")
            return document
        case other:
            _refuse(f"unknown operation {other!r}; choices: add, remove, replace, move, copy, test")


def _refuse(problem: str) -> NoReturn:
    raise PatchProblem(problem)


def _value(operation: Mapping[str, Json]) -> Json:
    if "value" not in operation:
        _refuse(f"{operation.get('op')}: the operation has no value")
    return operation["value"]


def _pointer(text: Json) -> tuple[str, ...]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        _refuse(f"must be a JSON pointer such as /metadata/labels, got {text!r}")
    if re.search("~(?![01])", text):
        _refuse(f"{text!r}: in a JSON pointer '~' is written ~0 and '/' is written ~1")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def _same(left: Json, right: Json) -> bool:
    """Return whether two values are equal as JSON, where true is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _index(key: str, size: int) -> int:
    if not (key.isascii() and key.isdigit()) or (len(key) > 1 and key[0] == "0"):
        _refuse(f"{key!r} is not an index of a list")
    if int(key) >= size:
        _refuse(f"index {key} is past the end of a list of {size}")
    return int(key)


def _get(document: Json, path: tuple[str, ...]) -> Json:
    for key in path:
        if isinstance(document, list):
            document = document[_index(key, len(document))]
        elif isinstance(document, dict) and key in document:
            document = document[key]
        else:
            _refuse(f"nothing at /{'/'.join(path)}")
    return document


def _add(document: Json, path: tuple[str, ...], value: Json) -> Json:
    if not path:
        return value
    parent, key = _get(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        parent.insert(len(parent) if key == "-" else _index(key, len(parent) + 1), value)
    elif isinstance(parent, dict):
        parent[key] = value
    else:
        _refuse(f"/{'/'.join(path[:-1])} is neither an object nor a list")
    return document


def _put(document: Json, path: tuple[str, ...], value: Json) -> Json:
    if not path:
        return value
    parent, key = _get(document, path[:-1]), path[-1]
    parent[_index(key, len(parent)) if isinstance(parent, list) else key] = value
    return document


def _remove(document: Json, path: tuple[str, ...]) -> Json:
    if not path:
        return None
    _get(document, path)
    parent, key = _get(document, path[:-1]), path[-1]
    del parent[_index(key, len(parent)) if isinstance(parent, list) else key]
    return document
