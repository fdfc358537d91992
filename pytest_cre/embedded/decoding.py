"""Typed decoding: an object as a client wrote it becomes one as the API stores it.

What passes here can be read by the controllers without surprises: fields have their types, nulls
and empty values are gone, quantities and times have one form, and what no kind has is left out.
"""

import base64
import binascii
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pytest_cre.embedded.amounts import canonical_quantity
from pytest_cre.embedded.fields import Field, Struct, struct
from pytest_cre.embedded.kinds import Json

_RANGES = {"int32": 2**31, "int64": 2**63}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_TIME_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_TIME_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_QUANTITY_PROBLEM = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


class DecodingError(ValueError):
    """A value that does not fit its field, worded as Go's decoder does."""


class RepeatedKeys(dict[str, Any]):
    """A JSON object in whose text keys stood twice; the last value of each counts."""

    repeated: tuple[str, ...] = ()


@dataclass(slots=True)
class Decoded:
    """A decoded object, and what was in its text that has no place in it."""

    obj: Json
    strays: list[str] = field(default_factory=list)


def decode(struct_name: str, value: Json) -> Decoded:
    """Decode an object, its kind and apiVersion left aside; raises DecodingError."""
    decoded = Decoded({})
    plain = {key: inner for key, inner in value.items() if key not in ("kind", "apiVersion")}
    if isinstance(value, RepeatedKeys):
        decoded.strays += [f'duplicate field "{key}"' for key in value.repeated]
    decoded.obj = _struct(struct(struct_name), plain, "", decoded.strays)
    return decoded


def _struct(shape: Struct, value: Json, at: str, strays: list[str]) -> Json:
    result: Json = {}
    if isinstance(value, RepeatedKeys):
        strays += [f'duplicate field "{_join(at, key)}"' for key in value.repeated]
    for name, inner in value.items():
        known = shape.fields.get(name)
        if known is None:
            strays.append(f'unknown field "{_join(at, name)}"')
        elif inner is not None:
            decoded = _field(shape, known, inner, _join(at, name), strays)
            if decoded or known.is_always_written or _stays(known, decoded):
                result[name] = decoded
    for known in shape.always:
        if known.name not in result:
            result[known.name] = _empty(known, strays)
    return result


def _stays(known: Field, value: object) -> bool:
    """Whether an empty value is written: pointers tell it from one that is not there."""
    return known.keeps_empty and not (known.container and not value)


def _empty(known: Field, strays: list[str]) -> object:
    """Give what is written for a field that is always there and was not given."""
    if known.is_pointer or known.container or known.type in ("Time", "MicroTime", "bytes"):
        return None
    if known.is_struct:
        return _struct(struct(known.type), {}, "", strays)
    return {"string": "", "bool": False, "Quantity": "0", "Any": None}.get(known.type, 0)


def _field(shape: Struct, known: Field, value: object, at: str, strays: list[str]) -> object:
    if known.container == "list":
        if not isinstance(value, list):
            raise _mismatch(shape, at, value, known.go_type)
        return [
            _one(shape, known, _null(known) if item is None else item, f"{at}[{index}]", strays)
            for index, item in enumerate(value)
        ]
    if known.container == "map":
        if not isinstance(value, dict):
            raise _mismatch(shape, at, value, known.go_type)
        if isinstance(value, RepeatedKeys):
            strays += [f'duplicate field "{_join(at, key)}"' for key in value.repeated]
        return {
            name: _one(shape, known, _null(known) if item is None else item, at, strays)
            for name, item in value.items()
        }
    return _one(shape, known, value, at, strays)


def _null(known: Field) -> object:
    """Give what a null stands for among the values of a list or map."""
    if known.is_struct:
        return {}
    return {"int32": 0, "int64": 0, "bool": False, "Quantity": "0"}.get(known.type, "")


def _one(shape: Struct, known: Field, value: object, at: str, strays: list[str]) -> object:
    """Decode one value, container aside; `at` is its path."""
    kind = known.type
    if kind == "string" and isinstance(value, str):
        return value
    if known.is_struct:
        if not isinstance(value, dict):
            go_type = known.go_type if not known.container else f"v1.{kind}"
            raise _mismatch(shape, at, value, go_type)
        return _struct(struct(kind), value, at, strays)
    if kind == "Any":
        return value
    return _scalar(shape, known, value, at)


def _scalar(shape: Struct, known: Field, value: object, at: str) -> object:
    kind = known.type
    go_type = kind if known.container else known.go_type
    match kind:
        case "string":
            raise _mismatch(shape, at, value, go_type)
        case "bool":
            if not isinstance(value, bool):
                raise _mismatch(shape, at, value, go_type)
        case "int32" | "int64":
            limit = _RANGES[kind]
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if not is_whole or not -limit <= value < limit:  # type: ignore[operator]
                raise _mismatch(shape, at, value, go_type)
        case "IntOrString":
            if isinstance(value, bool) or not isinstance(value, (int, str)):
                raise _mismatch(shape, at, value, "intstr.IntOrString")
        case "bytes":
            return _base64(shape, value, at)
        case "Quantity":
            return _quantity(value)
        case _:
            return _time(shape, value, at, is_micro=kind == "MicroTime")
    return value


def _quantity(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise DecodingError(_QUANTITY_PROBLEM)
    try:
        return canonical_quantity(str(value))
    except (ValueError, ArithmeticError):
        raise DecodingError(_QUANTITY_PROBLEM) from None


def _base64(shape: Struct, value: object, at: str) -> str:
    if not isinstance(value, str):
        raise _mismatch(shape, at, value, "[]uint8")
    text = value.replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        fits = re.match(r"[A-Za-z0-9+/]*", text)
        place = len(fits[0]) if fits else 0
        raise DecodingError(f"illegal base64 data at input byte {place}") from None
    return value


def _time(shape: Struct, value: object, at: str, *, is_micro: bool) -> str:
    if not isinstance(value, str):
        raise _mismatch(shape, at, value, "string")
    return rfc3339_time(value, is_micro=is_micro)


def rfc3339_time(text: str, *, is_micro: bool = False) -> str:
    """Give a time in the one form that is stored; raises DecodingError, worded as Go does."""
    layout = _MICRO_TIME_LAYOUT if is_micro else _TIME_LAYOUT
    found = _TIME.fullmatch(text)
    if found is None or (is_micro and len(found[1] or "") != 7):
        rest, element = _unread(text, is_micro=is_micro)
        raise DecodingError(
            f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{element}"'
        )
    try:
        moment = datetime.fromisoformat(text[:19] + found[2].replace("Z", "+00:00")).astimezone(UTC)
    except (ValueError, OverflowError):
        raise DecodingError(f'parsing time "{text}": day out of range') from None
    seconds = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{seconds}{found[1]}Z" if is_micro else f"{seconds}Z"


def _unread(text: str, *, is_micro: bool) -> tuple[str, str]:
    """Give where a text stops being a time, and what should stand there."""
    elements = [
        ("2006", r"\d{4}"),
        ("-", "-"),
        ("01", r"\d\d"),
        ("-", "-"),
        ("02", r"\d\d"),
        ("T", "T"),
        ("15", r"\d\d"),
        (":", ":"),
        ("04", r"\d\d"),
        (":", ":"),
        ("05", r"\d\d" if is_micro else r"\d\d(\.\d+)?"),
        *([(".000000", r"\.\d{6}(?!\d)")] if is_micro else []),
    ]
    place = 0
    for element, pattern in elements:
        found = re.compile(pattern).match(text, place)
        if found is None:
            return text[place:], element
        place = found.end()
    return text[place:], "Z07:00"


def _mismatch(shape: Struct, at: str, value: object, go_type: str) -> DecodingError:
    found = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}.get(
        type(value), "object"
    )
    shown = f"number {value}" if found == "number" and go_type.startswith("int") else found
    path = re.sub(r"\[\d+\]", "", at)
    return DecodingError(
        f"json: cannot unmarshal {shown} into Go struct field {shape.name}.{path} of type {go_type}"
    )


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name
