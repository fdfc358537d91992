"""Megatron's step lines, many at once: where they differ in nothing but digits, column by column.

Lines of one shape are the same text once each digit is replaced by 0, so that a number stands at the same
place in each of them.
"""

import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from math import isfinite, nan
from operator import add, mul
from struct import Struct
from typing import NamedTuple, TypeVar

from pytest_cre.measure.frameworks.recorder import Recorder, positive
from pytest_cre.measure.instants import instant_ns

# The labels that mean nothing to any other reader, and what stands under them.
_LABELS: dict[bytes, str] = {
    b" consumed samples:": "",
    b" consumed tokens:": "",
    b" elapsed time per iteration (ms):": "milliseconds",
    b" throughput per GPU (TFLOP/s/GPU):": "tflops",
    b" energy per GPU (J/iter/GPU):": "",
    b" power per GPU (W/GPU):": "",
    b" learning rate:": "",
    b" global batch size:": "",
    b" batch size:": "",
    b" lm loss:": "loss",
    b" load_balancing_loss:": "",
    b" seq_load_balancing_loss:": "",
    b" z_loss:": "",
    b" mtp_0 loss:": "",  # with any digit
    b" loss scale:": "",
    b" grad norm:": "",
    b" num zeros:": "",
    b" params norm:": "",
    b" number of skipped iterations:": "none",
    b" number of nan iterations:": "none",
}
_HEAD = re.compile(
    rb"(?:(\d{4}-\d\d-\d\dT\d\d:\d\d):(\d\d(?:\.\d{1,9})?)Z )?"
    rb" ?(?:\[(\d{4}-\d\d-\d\d \d\d:\d\d):(\d\d(?:\.\d{1,9})?)\] )?"
    rb"iteration +(\d{1,15})/ *(\d{1,15}) (?=\|)"
)
_COLUMN = re.compile(
    rb"\|( [^:|\n]+:) *([-+]?\d{1,20}(?:\.\d{0,20})?(?:[eE][-+]?\d{1,3})?) *(?=\|)"
)
_SAMPLES = re.compile(rb"consumed samples: *([\d.eE+-]+)")
_SHAPE = bytes.maketrans(b"0123456789+", b"0000000000-")
_MOST_BYTES, _FEWEST_BYTES = 65_536, 2_048
_MOST_KEPT = 4_096

_Value = TypeVar("_Value")
_Columns = Mapping[str, Sequence[bytes]]


class _Known(dict[bytes, _Value]):
    """What texts mean, kept because the same ones come again and again."""

    def __init__(self, read: Callable[[bytes], _Value]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, text: bytes) -> _Value:
        if len(self) >= _MOST_KEPT:
            self.clear()
        value = self[text] = self._read(text)
        return value


class _Layout(NamedTuple):
    """Where in lines of one shape the numbers stand, and what is asked of single digits.

    `same` do not differ between lines, `zero` are 0, `sixty` are below 6.
    """

    names: tuple[str, ...]
    cells: Struct
    same: tuple[int, ...]
    zero: tuple[int, ...]
    sixty: tuple[int, ...]


class _Rows(NamedTuple):
    """The cells of each line, and what all lines share: columns, last step of the run, digits of times."""

    cells: Iterable[tuple[bytes, ...]]
    names: tuple[str, ...]
    last: bytes
    digits: int


class StepLines:
    """Takes stretches of step lines just as they would be taken one by one.

    It tries as many lines at once as were alike of late.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._bytes = _MOST_BYTES
        self._layouts = _Known[_Layout | None](_layout_of)
        self._minutes = _Known(_minute_ns)
        self._seconds = _Known(lambda milliseconds: positive(float(milliseconds) / 1000))
        self._tflops = _Known(lambda tflops: positive(float(tflops)))

    def take(self, block: bytes, at: int) -> tuple[int, int]:
        """Take lines from a place on as long as they are alike; return where they end and how many."""
        taken = 0
        while _HEAD.match(block, at):
            end = block.rfind(b"\n", at, at + self._bytes) + 1
            lines = self._stretch(block[at:end])
            if lines:
                at, taken = end, taken + lines
                self._bytes = min(self._bytes * 2, _MOST_BYTES)
            elif self._bytes > _FEWEST_BYTES:
                self._bytes //= 2
            else:
                break
        return at, taken

    def _stretch(self, lines: bytes) -> int:
        """Take some lines if all can be taken so; return how many, else 0."""
        size = lines.find(b"\n") + 1
        try:
            if rows := self._alike(lines, size):
                return self._take(rows, lambda at: lines[at * size : at * size + size])
            separate = lines.splitlines(keepends=True)
            rows = self._of_some_lengths(separate)
            return self._take(rows, separate.__getitem__) if rows else 0
        except ValueError:  # a time that is none
            return 0

    def _alike(self, lines: bytes, size: int) -> _Rows | None:
        """Return the rows of lines that all have one shape."""
        shape, count = lines.translate(_SHAPE), len(lines) // (size or 1)
        if not size or len(lines) % size or shape != shape[:size] * count:
            return None
        layout, head = self._layouts[shape[:size]], _HEAD.match(lines)
        if (
            layout is None
            or head is None
            or any(lines[at::size].count(lines[at : at + 1]) < count for at in layout.same)
            or any(lines[at::size].count(b"0") < count for at in layout.zero)
            or any(max(lines[at::size]) >= ord("6") for at in layout.sixty)
        ):
            return None
        if head[1]:
            self._minutes[head[1]]
        digits = len((head[4] or head[2] or b"").partition(b".")[2])
        return _Rows(layout.cells.iter_unpack(lines), layout.names, head[6], digits)

    def _of_some_lengths(self, lines: Sequence[bytes]) -> _Rows | None:
        """Return the rows of lines of several lengths: numbers have more digits here than there."""
        places_by_length: dict[int, list[int]] = {}
        for at, line in enumerate(lines):
            places_by_length.setdefault(len(line), []).append(at)
        cells: list[tuple[bytes, ...]] = [()] * len(lines)
        common: _Rows | None = None
        for length, places in places_by_length.items():
            found = self._alike(b"".join([lines[at] for at in places]), length)
            common = common or found
            if found is None or common is None or found[1:] != common[1:]:
                return None
            for at, row in zip(places, found.cells, strict=True):
                cells[at] = row
        return common and common._replace(cells=cells)

    def _take(self, rows: _Rows, line_at: Callable[[int], bytes]) -> int:
        """Take some lines; return how many, 0 where a number has no end or a line is the last of its run."""
        columns = dict(zip(rows.names, zip(*rows.cells, strict=True), strict=True))
        numbers = array("q", map(int, columns["number"]))
        count = len(numbers)
        loss = _floats(columns.get("loss"), count, float)
        if int(rows.last) in numbers or ("loss" in columns and not isfinite(sum(loss))):
            return 0
        stamps_ns = self._times_ns(columns, "stamp", rows.digits)
        self._recorder.rows(
            numbers=numbers,
            app_ns=self._times_ns(columns, "app", rows.digits),
            absolute_ns=(
                stamps_ns.__getitem__ if stamps_ns else lambda at: self._stamp_ns(line_at(at))
            ),
            seconds=_floats(columns.get("milliseconds"), count, self._seconds.__getitem__),
            tflops=_floats(columns.get("tflops"), count, self._tflops.__getitem__),
            loss=loss,
        )
        if samples := _SAMPLES.search(line_at(count - 1)):
            self._recorder.samples = int(float(samples[1]))
        return count

    def _times_ns(self, columns: _Columns, clock: str, digits: int) -> "array[int] | None":
        """Return times with so many digits after the point; raises `ValueError` where one is none."""
        minutes, seconds = columns.get(f"{clock}_minute"), columns.get(f"{clock}_seconds")
        if minutes is None or seconds is None:
            return None
        whole = b" ".join(seconds).replace(b".", b"").split(b" ")
        seconds_ns = map(mul, map(int, whole), repeat(10 ** (9 - digits)))
        return array("q", map(add, map(self._minutes.__getitem__, minutes), seconds_ns))

    def _stamp_ns(self, line: bytes) -> int | None:
        head = _HEAD.match(line)
        if head is None or not head[1]:
            return None
        return self._minutes[head[1]] + int(float(head[2]) * 1e9 + 0.5)


def _layout_of(shape: bytes) -> _Layout | None:
    """Return the layout of lines of a shape; None where they are not like the usual ones."""
    head = _HEAD.match(shape)
    if head is None:
        return None
    spans: dict[str, tuple[int, int]] = {}
    for clock, minute in (("app", 3), ("stamp", 1)):
        if head[minute] and not spans:
            spans[f"{clock}_minute"], spans[f"{clock}_seconds"] = (
                head.span(minute),
                head.span(minute + 1),
            )
    spans["number"] = head.span(5)
    zero: list[int] = []
    at = head.end()
    while column := _COLUMN.match(shape, at):
        name = _LABELS.get(column[1])
        if name is None or (name == "milliseconds" and column[2].strip(b"0.")):
            return None
        if name == "none":
            zero.extend(at for at in range(*column.span(2)) if shape[at] == ord("0"))
        elif name:
            spans.setdefault(name, column.span(2))
        at = column.end()
    if shape[at:] != b"|\n":
        return None
    parts, before = ["="], 0
    for begin, end in spans.values():
        parts.append(f"{begin - before}x{end - begin}s")
        before = end
    parts.append(f"{len(shape) - before}x")
    same, sixty = list(range(*head.span(6))), [head.start(group) for group in (2, 4) if head[group]]
    if head[1]:
        begin, end = head.span(1)
        same.extend(range(begin, end - 2))  # to the hour
        sixty.append(end - 2)
    return _Layout(tuple(spans), Struct("".join(parts)), tuple(same), tuple(zero), tuple(sixty))


def _minute_ns(minute: bytes) -> int:
    at_ns = instant_ns(minute + b":00")
    if at_ns is None:
        raise ValueError("no such minute")
    return at_ns


def _floats(
    column: Sequence[bytes] | None, count: int, read: Callable[[bytes], float]
) -> "array[float]":
    return array("d", [nan]) * count if column is None else array("d", map(read, column))
