"""Fields of every kind, read from `fields.txt`: what a field is called, holds, and how it is merged.

The file is read off the Go types of Kubernetes by `python -m tests.conformance.write_fields`. Each
line holds the JSON name (of an inlined struct its name after an `@`), the number in protobuf, the
type, and flags: `always` is written even when empty, `zero` is left out when empty even though it
is a struct, `key=NAME` is a list merged by that key, `set` one merged as a set, `retain` a list of
structs of which a patch names the fields to keep.
"""

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_TYPE = re.compile(r"(\*?)((?:\[\]|\{\})*)(\w+)(?::(\w+))?")
SCALARS = (
    "string",
    "bool",
    "int32",
    "int64",
    "bytes",
    "Quantity",
    "Time",
    "MicroTime",
    "IntOrString",
    "Any",
)
# Scalars that are structs in Go: they are written, as null, even when they are empty.
_STRUCT_SCALARS = ("Time", "MicroTime")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a struct. `type` is one of SCALARS or the name of a struct."""

    name: str
    number: int
    type: str
    container: Literal["", "list", "map"]
    is_pointer: bool
    is_always_written: bool
    merge_key: str
    is_set: bool
    # As Go's own messages name the type.
    go_type: str

    @property
    def is_struct(self) -> bool:
        """Whether the field holds a struct, or a container of them."""
        return self.type not in SCALARS

    @property
    def keeps_empty(self) -> bool:
        """Whether an empty value stays: Go leaves out what is empty, unless told so by a pointer."""
        return self.is_always_written or self.is_pointer


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct:
    """All fields of one struct."""

    name: str
    fields: dict[str, Field]
    # Those that are there whether a client gives them or not.
    always: tuple[Field, ...]
    # Structs that stand in a field of their own in protobuf but not in JSON, by number.
    inlined: dict[int, str]
    by_number: dict[int, Field]


@functools.cache
def struct(name: str) -> Struct:
    """Give a struct by name; raises KeyError for one that is not known."""
    fields: dict[str, Field] = {}
    inlined: dict[int, str] = {}
    by_number: dict[int, Field] = {}
    for line in _lines()[name]:
        json_name, number, type_text, *flags = line.split()
        if json_name.startswith("@"):
            inlined[int(number)] = type_text
            fields.update(struct(type_text).fields)
            continue
        field = _field(json_name, int(number), type_text, flags)
        fields[json_name] = field
        by_number[field.number] = field
    return Struct(
        name=name,
        fields=fields,
        always=tuple(field for field in fields.values() if field.is_always_written),
        inlined=inlined,
        by_number=by_number,
    )


def merge_struct(struct_name: str, field_name: str) -> "Field | None":
    """Give a field where the struct is known, None where either is not."""
    if struct_name not in _lines():
        return None
    return struct(struct_name).fields.get(field_name)


@functools.cache
def _lines() -> dict[str, list[str]]:
    lines: dict[str, list[str]] = {}
    text = Path(__file__).with_name("fields.txt").read_text("utf-8")
    name = ""
    for line in text.splitlines():
        if line.startswith("  "):
            lines[name].append(line)
        elif not line.startswith("#"):
            name = line
            lines[name] = []
    return lines


def _field(name: str, number: int, text: str, flags: list[str]) -> Field:
    found = _TYPE.fullmatch(text)
    if found is None:
        raise ValueError(f"fields.txt: {name}: type {text} cannot be read")
    pointer, containers, type_name, alias = found.groups()
    if len(containers) > 2:
        # Lists of lists occur only in what no kind of ours uses.
        containers, type_name = containers[:2], "Any"
    is_plain_struct = (
        not pointer
        and not containers
        and (type_name not in SCALARS or type_name in _STRUCT_SCALARS)
    )
    return Field(
        name=name,
        number=number,
        type=type_name,
        container={"[]": "list", "{}": "map"}.get(containers, ""),  # type: ignore[arg-type]
        is_pointer=bool(pointer),
        is_always_written="always" in flags or (is_plain_struct and "zero" not in flags),
        merge_key=next((flag[4:] for flag in flags if flag.startswith("key=")), ""),
        is_set="set" in flags,
        go_type=_go_type(type_name, containers, alias),
    )


def _go_type(type_name: str, containers: str, alias: str | None) -> str:
    if alias:
        return f"v1.{alias}"
    names = {"bytes": "[]uint8", "Quantity": "resource.Quantity", "Any": "interface {}"}
    plain = type_name in ("string", "bool", "int32", "int64")
    inner = type_name if plain else names.get(type_name, f"v1.{type_name}")
    return {"[]": f"[]{inner}", "{}": f"map[string]{inner}"}.get(containers, inner)
