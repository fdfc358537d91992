"""Objects in protobuf, which kubectl sends where it makes objects itself, read into plain JSON."""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from pytest_cre.embedded.fields import Field, struct
from pytest_cre.embedded.kinds import Json

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\0"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEPTH_LIMIT = 60


class ProtobufError(ValueError):
    """Bytes that are no message."""


def read_envelope(data: bytes) -> tuple[str, str, bytes]:
    """Give apiVersion, kind and message of an object; raises ProtobufError."""
    if not data.startswith(_MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message")
    api_version = kind = ""
    message = b""
    for number, value in _entries(data[len(_MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            names = {inner: text for inner, text in _entries(value) if isinstance(text, bytes)}
            api_version, kind = _text(names.get(1, b"")), _text(names.get(2, b""))
        elif number == 2 and isinstance(value, bytes):
            message = value
    return api_version, kind, message


def read_message(struct_name: str, data: bytes, depth: int = 0) -> Json:
    """Read a message of a known struct; what is not known of it is left out."""
    if depth > _DEPTH_LIMIT:
        raise ProtobufError("exceeded max depth")
    shape = struct(struct_name)
    result: Json = {}
    for number, value in _entries(data):
        if number in shape.inlined and isinstance(value, bytes):
            result.update(read_message(shape.inlined[number], value, depth + 1))
            continue
        known = shape.by_number.get(number)
        if known is None:
            continue
        if known.container == "map":
            if not isinstance(value, bytes):
                raise ProtobufError("a map entry is no message")
            entry = dict(_entries(value))
            key = entry.get(1, b"")
            name = _text(key) if isinstance(key, bytes) else str(key)
            result.setdefault(known.name, {})[name] = _value(known, entry.get(2, b""), depth)
        elif known.container == "list":
            result.setdefault(known.name, []).append(_value(known, value, depth))
        else:
            result[known.name] = _value(known, value, depth)
    return result


def _value(known: Field, value: int | bytes, depth: int) -> object:
    if known.type in ("int32", "int64", "bool"):
        if not isinstance(value, int):
            raise ProtobufError(f"{known.name} is no number")
        return bool(value) if known.type == "bool" else _signed(value)
    if not isinstance(value, bytes):
        raise ProtobufError(f"{known.name} is a number")
    match known.type:
        case "string":
            return _text(value)
        case "bytes":
            return base64.b64encode(value).decode()
        case "Quantity":
            return _text(_bytes_of(value, 1))
        case "Time" | "MicroTime":
            return _moment(value, is_micro=known.type == "MicroTime")
        case "IntOrString":
            entries = dict(_entries(value))
            if entries.get(1):
                return _text(_bytes_of(value, 3))
            number = entries.get(2, 0)
            return _signed(number) if isinstance(number, int) else 0
        case "Any":
            return None
        case name:
            return read_message(name, value, depth + 1)


def _moment(data: bytes, *, is_micro: bool) -> str | None:
    if not data:
        return None
    entries = dict(_entries(data))
    seconds, nanos = entries.get(1, 0), entries.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int):
        raise ProtobufError("a time is no time")
    try:
        moment = _EPOCH + timedelta(seconds=_signed(seconds), microseconds=_signed(nanos) // 1000)
    except OverflowError:
        raise ProtobufError("a time is out of range") from None
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if is_micro else "%Y-%m-%dT%H:%M:%SZ")


def _bytes_of(data: bytes, number: int) -> bytes:
    value = dict(_entries(data)).get(number, b"")
    return value if isinstance(value, bytes) else b""


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ProtobufError("a text is not UTF-8") from None


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _entries(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Give number and value of each entry of a message."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, place = _varint(data, place)
            yield number, value
        elif wire in (1, 5):
            width = 8 if wire == 1 else 4
            yield number, int.from_bytes(data[place : place + width], "little")
            place += width
        elif wire == 2:
            length, place = _varint(data, place)
            if place + length > len(data):
                raise ProtobufError("unexpected EOF")
            yield number, data[place : place + length]
            place += length
        else:
            raise ProtobufError(f"wire type {wire} is not known")


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise ProtobufError("unexpected EOF")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value & (2**64 - 1), place
