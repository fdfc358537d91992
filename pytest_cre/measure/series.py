"""Step records in columns: a run may have printed a million."""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import isnan
from operator import sub
from typing import overload

from pytest_cre.measure.frameworks.recorder import NO_TIME
from pytest_cre.measure.model import StepRecord


@dataclass(slots=True, kw_only=True, eq=False)
class StepSeries(Sequence[StepRecord]):
    """A sequence of `StepRecord`s that takes 44 bytes for each; a record is made when it is asked for.

    NaN stands for a number that was not printed, `NO_TIME` for a time.
    """

    numbers: "array[int]" = field(default_factory=lambda: array("q"))
    times_ns: "array[int]" = field(default_factory=lambda: array("q"))
    seconds: "array[float]" = field(default_factory=lambda: array("d"))
    tflops: "array[float]" = field(default_factory=lambda: array("d"))
    loss: "array[float]" = field(default_factory=lambda: array("d"))
    covers: "array[int]" = field(default_factory=lambda: array("i"))

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> StepRecord: ...

    @overload
    def __getitem__(self, at: slice) -> "StepSeries": ...

    def __getitem__(self, at: int | slice) -> "StepRecord | StepSeries":
        if isinstance(at, slice):
            return StepSeries(
                numbers=self.numbers[at],
                times_ns=self.times_ns[at],
                seconds=self.seconds[at],
                tflops=self.tflops[at],
                loss=self.loss[at],
                covers=self.covers[at],
            )
        return StepRecord(
            step=self.numbers[at],
            time_ns=None if self.times_ns[at] == NO_TIME else self.times_ns[at],
            step_time_s=_number(self.seconds[at]),
            tflops_per_gpu=_number(self.tflops[at]),
            loss=_number(self.loss[at]),
            covers=self.covers[at],
        )

    def __iter__(self) -> Iterator[StepRecord]:
        return (self[at] for at in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


def _number(value: float) -> float | None:
    return None if isnan(value) else value


def even_rise(numbers: "array[int]") -> int | None:
    """Return by how much each number is above the one before it; None where that differs or is not above."""
    if len(numbers) < 2 or numbers[1] <= numbers[0]:
        return None
    import numpy as np  # later than this: loading it takes longer than reading a table

    rise = numbers[1] - numbers[0]
    if numbers[-1] - numbers[0] != rise * (len(numbers) - 1):
        return None
    return rise if bool((np.diff(numbers) == rise).all()) else None


def rises(numbers: "array[int]") -> bool:
    """Return whether each number is above the one before it."""
    if len(numbers) < 2:
        return True
    import numpy as np

    values = np.asarray(numbers)
    return bool((values[1:] > values[:-1]).all())


def never_falls(numbers: "array[int]") -> bool:
    """Return whether no number is below the one before it."""
    import numpy as np

    values = np.asarray(numbers)
    return bool((values[1:] >= values[:-1]).all())


def without_repeats(series: StepSeries) -> StepSeries:
    """Return the lines without those that were read twice: of the same step at the same instant."""
    numbers, times = series.numbers, series.times_ns
    if rises(numbers):
        return series
    kept: list[int] = []
    kept_ns: list[int] = []
    for at, (number, t_ns) in enumerate(zip(numbers, times, strict=True)):
        place = bisect_left(kept_ns, t_ns) if t_ns != NO_TIME else len(kept)
        same = range(place, bisect_right(kept_ns, t_ns, lo=place))
        if not any(numbers[kept[each]] == number for each in same):
            kept.append(at)
            kept_ns.append(t_ns)
    if len(kept) == len(numbers):
        return series
    return StepSeries(
        numbers=array("q", [numbers[at] for at in kept]),
        times_ns=array("q", kept_ns),
        seconds=array("d", [series.seconds[at] for at in kept]),
        tflops=array("d", [series.tflops[at] for at in kept]),
        loss=array("d", [series.loss[at] for at in kept]),
    )


def covers_of(numbers: "array[int]") -> "array[int]":
    """Return how many steps each line stands for: those since the line before, in an attempt.

    The first line of an attempt stands for the usual number, or for all steps if they are fewer.
    """
    limit = 2**31 - 1
    rise = even_rise(numbers)
    if rise is not None and rise < limit:
        covers = array("i", [rise]) * len(numbers)
        covers[0] = max(1, min(rise, numbers[0]))
        return covers
    differences = array("q", map(sub, islice(numbers, 1, None), numbers))
    usual = Counter(d for d in differences if d > 0)
    interval = min(usual, key=lambda d: (-usual[d], d)) if usual else 1
    covers = array("i")
    if numbers:
        covers.append(max(1, min(interval, numbers[0], limit)))
    for at, difference in enumerate(differences):
        first = max(1, min(interval, numbers[at + 1], limit))
        covers.append(min(difference, limit) if difference > 0 else first)
    return covers
