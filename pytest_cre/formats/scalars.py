"""Plain scalars by the core schema of YAML 1.2: `no`, `on` and `1:30` are texts, `1e3` a number."""

import math
import re

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]{1,4000}")
_RADIX = re.compile(r"0o[0-7]{1,4000}|0x[0-9a-fA-F]{1,4000}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
_NAN = frozenset((".nan", ".NaN", ".NAN"))

Scalar = str | int | float | bool | None


class WrittenInt(int):
    """A whole number that was not written as Python would write it; `written` is its own text."""

    written: str


class WrittenFloat(float):
    """A number that was not written as Python would write it; `written` is its own text."""

    written: str


def plain_scalar(text: str) -> Scalar:
    """Return what a plain scalar means; raises `ValueError` for a number too large to hold."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        return _whole(int(text), text)
    if _RADIX.fullmatch(text):
        return _whole(int(text, 0), text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise ValueError(f"number {text[:40]} is too large")
        return _broken(number, text)
    if _INFINITY.fullmatch(text):
        return _broken(-math.inf if text[0] == "-" else math.inf, text)
    return _broken(math.nan, text) if text in _NAN else text


def written_text(value: str | float) -> str:
    """Return a text or number as it stands in the document: `007` stays `007`."""
    return value.written if isinstance(value, WrittenInt | WrittenFloat) else str(value)


def _whole(number: int, text: str) -> int:
    if str(number) == text:
        return number
    written = WrittenInt(number)
    written.written = text
    return written


def _broken(number: float, text: str) -> float:
    if str(number) == text:
        return number
    written = WrittenFloat(number)
    written.written = text
    return written
