"""Rows of collective benchmark tables: strict about numbers, tolerant about everything around them.

The newest tables have `size count type redop root` and then, for each half, `time algbw busbw #wrong`.
Older ones lack redop or root, others have one half only, extra columns per iteration, or a time stamp at
the end. The header names the columns; without one the number of tokens tells.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from pytest_cre.measure.model import BandwidthRow, HalfRow

DTYPES = (
    *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("half", "float", "double", "bfloat16", "float16", "float32", "float64", "bf16", "fp16"),
    *("f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2", "fp32", "fp64", "char", "int", "long"),
)
# One of these is on each row, for they are in the types' names. None is in a hexadecimal number.
NEEDLES = (
    *(b"float", b"double", b"half", b"uint", b"fp16", b"fp32", b"fp64", b"fp8_", b"e4m3", b"e5m2"),
    *(b" bf16", b" int", b"char", b"long"),
)

_TYPE = "|".join(DTYPES).encode()
_BEGIN = re.compile(rb"\s*\d{1,18}\s+\d{1,18} +(?:" + _TYPE + rb")(?:\s|$)")
# A row after a kubelet's time, as it nearly always is: no other prefix can stand in it.
_STAMPED = re.compile(
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) ( *\d{1,18} +\d{1,18} +(?:"
    + _TYPE
    + rb") [ -~]{0,500})\n"
)
_NUMBER = re.compile(rb"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_WRONG = re.compile(rb"\d+|\d+(?:\.\d+)?[eE][+-]?\d{1,3}")  # a count, large ones with an exponent
_ROOT = re.compile(rb"-?\d{1,7}")
_WORD = re.compile(rb"[a-z]\w{0,30}")
_STAMP = (re.compile(rb"\d{4}-\d\d-\d\d"), re.compile(rb"\d\d:\d\d:\d\d(?:\.\d+)?"))
_TIME_NAMES = (b"time", b"cputime")
_WRONG_NAMES = (b"#wrong", b"wrong", b"error", b"#error")
_HALF_TOKENS = 4
_USUAL_NAMES = (b"size", b"count", b"type", b"redop", b"root")
_HALF_UNITS = tuple(0.5 * 10.0**-decimals for decimals in range(10))  # of a last printed place
# A row as it nearly always is; any other is looked at token by token.
_USUAL = re.compile(
    rb" *(\d{1,18}) +(\d{1,18}) +("
    + _TYPE
    + rb") +([a-z]\w{0,30}) +(-?\d{1,7})"
    + 2 * rb" +(\d{1,12}\.\d{1,9}) +(\d{1,9}\.\d{1,9}) +(\d{1,9}\.(\d{1,9})) +(?:(\d{1,18})|N/A)"
    + rb" *"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns that a header names, from left to right, and where each name ends."""

    names: tuple[bytes, ...]
    ends: tuple[int, ...]
    halves: tuple[int, ...]  # the index of each half's time
    counts_errors: bool  # whether the last column of a half counts wrong elements
    tokens: int  # of a row, a time stamp at its end left out
    is_usual: bool  # it has all columns of the newest releases, and no other

    @property
    def lead(self) -> tuple[bytes, ...]:
        """Return the names before the first half."""
        return self.names[: self.halves[0]]


class ParsedRow(NamedTuple):
    """A row, and half a unit in the last place of each bus bandwidth printed in it."""

    row: BandwidthRow
    errors_gbs: tuple[float, ...]
    is_half: bool  # only the first of two halves is there
    has_nan: bool = False


def layout_of(text: bytes) -> Layout | None:
    """Return the layout that a header line names, or None for any other line."""
    names: list[bytes] = []
    ends: list[int] = []
    for token in re.finditer(rb"\S+", text):
        if token[0] == b"#" and not names:
            continue
        names.append(token[0])
        ends.append(token.end())
    if names and names[0].lstrip(b"#") == b"size":
        names[0] = b"size"
    halves = tuple(at for at, name in enumerate(names) if name in _TIME_NAMES)
    if names[:3] != [b"size", b"count", b"type"] or not 1 <= len(halves) <= 2:
        return None
    if any(names[at + 1 : at + 3] != [b"algbw", b"busbw"] for at in halves):
        return None
    if len(names) < halves[-1] + _HALF_TOKENS:
        return None
    counts_errors = names[halves[0] + 3] not in (b"error", b"#error")
    tokens = sum(name not in (b"timestamp", b"#timestamp") for name in names)
    has_usual_columns = tokens == 13 and halves == (5, 9) and tuple(names[:5]) == _USUAL_NAMES
    return Layout(
        names=tuple(names),
        ends=tuple(ends),
        halves=halves,
        counts_errors=counts_errors,
        tokens=tokens,
        is_usual=has_usual_columns and counts_errors,
    )


def is_row_like(text: bytes) -> bool:
    """Return whether a line begins as a row does: two whole numbers and a type."""
    return _BEGIN.match(text) is not None


def stamped_row(block: bytes, at: int) -> "re.Match[bytes] | None":
    """Return time and text of the line at a place if that is a row after a kubelet's time and nothing else."""
    return _STAMPED.match(block, at)


def parse_row(text: bytes, layout: Layout | None) -> ParsedRow | None:
    """Return the row that a line holds; None when it is torn, commented or no row at all."""
    if (layout is None or layout.is_usual) and (usual := _USUAL.fullmatch(text)):
        return _usual_row(usual)
    if not is_row_like(text):
        return None
    tokens = text.split()
    if len(tokens) > 2 and _STAMP[0].fullmatch(tokens[-2]) and _STAMP[1].fullmatch(tokens[-1]):
        tokens = tokens[:-2]
    if layout is None:
        return _by_count(tokens)
    lead = layout.halves[0]
    if len(tokens) == layout.tokens:
        halves: list[list[bytes] | None] = [tokens[at : at + _HALF_TOKENS] for at in layout.halves]
    elif len(layout.halves) > 1 and len(tokens) == lead + _HALF_TOKENS:
        halves = [None, None]
        halves[_half_at(text, lead, layout)] = tokens[lead:]
    else:
        return None
    if len(halves) == 1:
        halves.append(None)
    return _row(tokens[:lead], layout.lead, halves, counts_errors=layout.counts_errors)


def _usual_row(found: "re.Match[bytes]") -> ParsedRow:
    size, count, dtype, redop, root, *cells = found.groups()
    out_us, out_alg, out_bus, out_decimals, out_wrong = cells[:5]
    in_us, in_alg, in_bus, in_decimals, in_wrong = cells[5:]
    out_count = None if out_wrong is None else int(out_wrong)
    in_count = None if in_wrong is None else int(in_wrong)
    row = BandwidthRow(
        int(size),
        int(count),
        dtype.decode(),
        redop.decode(),
        int(root),
        HalfRow(float(out_us), float(out_alg), float(out_bus), out_count),
        HalfRow(float(in_us), float(in_alg), float(in_bus), in_count),
    )
    return ParsedRow(row, (_HALF_UNITS[len(out_decimals)], _HALF_UNITS[len(in_decimals)]), False)


def _half_at(text: bytes, lead: int, layout: Layout) -> int:
    """Return which half the only one of a row stands in: columns are aligned at their right."""
    token = list(re.finditer(rb"\S+", text))[lead]
    distances = [abs(token.end() - layout.ends[at]) for at in layout.halves]
    return distances.index(min(distances))


def _by_count(tokens: Sequence[bytes]) -> ParsedRow | None:
    count = len(tokens)
    names: tuple[bytes, ...] = _USUAL_NAMES
    if count in (13, 21):
        second = 9 if count == 13 else 13
        halves: list[list[bytes] | None] = [list(tokens[5:9]), list(tokens[second : second + 4])]
    elif count == 9:
        halves = [list(tokens[5:9]), None]
    elif count == 12:
        names = names[:4] if _WORD.fullmatch(tokens[3]) else (*names[:3], b"root")
        halves = [list(tokens[4:8]), list(tokens[8:12])]
    elif count == 11:
        names = names[:3]
        halves = [list(tokens[3:7]), list(tokens[7:11])]
    else:
        return None
    return _row(tokens[: len(names)], names, halves, counts_errors=None)


def _row(
    lead: Sequence[bytes],
    names: Sequence[bytes],
    halves: Sequence[list[bytes] | None],
    *,
    counts_errors: bool | None,
) -> ParsedRow | None:
    cells = dict(zip(names, lead, strict=True))
    redop, root = cells.get(b"redop"), cells.get(b"root")
    if (redop is not None and not _WORD.fullmatch(redop)) or (
        root is not None and not _ROOT.fullmatch(root)
    ):
        return None
    parsed = [_half(half, counts_errors) if half else None for half in halves]
    if any(half and value is None for half, value in zip(halves, parsed, strict=True)):
        return None
    values = [value for value in parsed if value is not None]
    return ParsedRow(
        row=BandwidthRow(
            size_bytes=int(cells[b"size"]),
            count=int(cells[b"count"]),
            dtype=cells[b"type"].decode(),
            redop=redop.decode() if redop is not None else None,
            root=int(root) if root is not None else None,
            out_of_place=parsed[0][0] if parsed[0] else None,
            in_place=parsed[1][0] if parsed[1] else None,
        ),
        errors_gbs=tuple(error for _, error in values),
        is_half=halves[0] is not None and halves[1] is None,
        has_nan=any(None in (half.time_us, half.algbw_gbs, half.busbw_gbs) for half, _ in values),
    )


def _half(tokens: Sequence[bytes], counts_errors: bool | None) -> tuple[HalfRow, float] | None:
    """Return a half and the print error of its bus bandwidth; None where a number is torn."""
    values: list[float | None] = []
    for token in tokens[:3]:
        if _NUMBER.fullmatch(token):
            number = float(token)
            values.append(number if isfinite(number) else None)
        elif token.lower().lstrip(b"+-") in (b"nan", b"inf"):
            values.append(None)
        else:
            return None
    count: int | None = None
    last = tokens[3]
    if last not in (b"N/A", b"n/a"):
        if not _WRONG.fullmatch(last) or not isfinite(float(last)):
            return None
        if counts_errors is None:
            # Old releases print the largest difference here, as 0e+00 or 2e-07.
            counts_errors = last != b"0e+00" and float(last) in (0.0, max(1.0, float(last)))
        count = int(float(last)) if counts_errors else None
    half = HalfRow(time_us=values[0], algbw_gbs=values[1], busbw_gbs=values[2], wrong=count)
    return half, _half_unit(tokens[2])


def _half_unit(token: bytes) -> float:
    """Return half a unit in the last printed place of a number."""
    mantissa, _, exponent = token.lower().partition(b"e")
    decimals = len(mantissa.partition(b".")[2])
    power = int(exponent) if exponent.lstrip(b"+-").isdigit() else 0
    return 0.5 * float(10.0 ** max(-300, min(300, power - decimals)))
