"""Megatron's step lines, many at once: where they differ in nothing but digits, column by column."""

import re
from array import array
from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING

from pytest_cre.measure.frameworks.recorder import NO_TIME, Recorder

if TYPE_CHECKING:
    from pytest_cre.measure.frameworks.stepgrid import Columns, Floats, Whole

_STEP = re.compile(rb"[^|\n]{0,80}\biteration +\d{1,15}/ *\d{1,15} \|")
_SAMPLES = re.compile(rb"consumed samples: *([\d.eE+-]+)")
_MOST_BYTES, _FEWEST_BYTES = 131_072, 2_048


class StepLines:
    """Takes stretches of step lines just as they would be taken one by one.

    It tries as many lines at once as were alike of late.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._bytes = _MOST_BYTES

    def take(self, block: bytes, at: int) -> tuple[int, int]:
        """Take lines from a place on as long as they are alike; return where they end and how many."""
        taken = 0
        while _STEP.match(block, at):
            end = block.rfind(b"\n", at, at + self._bytes) + 1
            size, count = self._stretch(block[at:end])
            at, taken = at + size, taken + count
            if at == end:
                self._bytes = min(self._bytes * 2, _MOST_BYTES)
            elif not count and self._bytes > _FEWEST_BYTES:
                self._bytes //= 2
            elif not count:
                break
        return at, taken

    def _stretch(self, lines: bytes) -> tuple[int, int]:
        """Take the first of some lines; return how many bytes and lines."""
        from pytest_cre.measure.frameworks.stepgrid import columns_of

        size = lines.find(b"\n") + 1
        columns = columns_of(lines, size) if size else None
        if columns is not None and len(columns.numbers) * size < min(len(lines), _FEWEST_BYTES):
            size, columns = 0, _of_some_lengths(lines.splitlines(keepends=True))
        if columns is None or columns.last in columns.numbers:  # the run's last step ends it
            return 0, 0
        count = len(columns.numbers)
        size = size * count or len(lines)
        self._recorder.rows(
            numbers=_times(columns.numbers, count),
            app_ns=_times(columns.app_ns, count),
            absolute_ns=_times(columns.stamp_ns, count),
            seconds=_numbers(columns.seconds, count),
            tflops=_numbers(columns.tflops, count),
            loss=_numbers(columns.loss, count),
        )
        if samples := _SAMPLES.search(lines, lines.rfind(b"\n", 0, size - 1) + 1, size):
            self._recorder.samples = int(float(samples[1]))
        return size, count


def _of_some_lengths(lines: Sequence[bytes]) -> "Columns | None":
    """Return the columns of lines of several lengths: numbers have more digits here than there."""
    from pytest_cre.measure.frameworks.stepgrid import columns_of, put_together

    places_by_length: dict[int, list[int]] = {}
    for at, line in enumerate(lines):
        places_by_length.setdefault(len(line), []).append(at)
    parts = []
    for length, places in places_by_length.items():
        columns = columns_of(b"".join([lines[at] for at in places]), length)
        if columns is None or len(columns.numbers) < len(places):
            return None
        parts.append((places, columns))
    return put_together(parts, len(lines))


def _times(column: "Whole | None", count: int) -> "array[int]":
    return array("q", [NO_TIME]) * count if column is None else array("q", column.tobytes())


def _numbers(column: "Floats | None", count: int) -> "array[float]":
    return array("d", [nan]) * count if column is None else array("d", column.tobytes())
