"""A stretch of time cut into categories: one ordered line, so its parts cannot overlap and always add up."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice
from operator import sub
from typing import NamedTuple

from pytest_cre.measure.model import LEDGER_CATEGORIES

(
    USEFUL,
    REWORK,
    HANG,
    CHECKPOINT_BLOCKING,
    SCHEDULE,
    RESCHEDULE,
    INIT,
    LOAD,
    WARMUP,
    STRAGGLER,
    EVAL,
    OTHER,
) = range(len(LEDGER_CATEGORIES))


class Interval(NamedTuple):
    """A stretch of one category."""

    category: str
    start_ns: int
    end_ns: int


class Partition:
    """Contiguous intervals from a start on, kept as bounds and codes (9 bytes an interval)."""

    __slots__ = ("bounds_ns", "codes")

    def __init__(self, start_ns: int) -> None:
        self.bounds_ns = array("q", [start_ns])
        self.codes = bytearray()

    @property
    def end_ns(self) -> int:
        """Return how far it reaches."""
        return self.bounds_ns[-1]

    def extend(self, code: int, until_ns: int) -> None:
        """Book the time from the end so far until `until_ns`; nothing where that is not later."""
        if until_ns <= self.bounds_ns[-1]:
            return
        if self.codes and self.codes[-1] == code:
            self.bounds_ns[-1] = until_ns
        else:
            self.codes.append(code)
            self.bounds_ns.append(until_ns)

    def totals_ns(self) -> dict[str, int]:
        """Return the time of each category."""
        sums = [0] * len(LEDGER_CATEGORIES)
        lasted_ns = map(sub, islice(self.bounds_ns, 1, None), self.bounds_ns)
        for code, each_ns in zip(self.codes, lasted_ns, strict=True):
            sums[code] += each_ns
        return dict(zip(LEDGER_CATEGORIES, sums, strict=True))

    def clipped(self, start_ns: int, end_ns: int) -> "Partition":
        """Return the part between two instants."""
        start_ns = max(start_ns, self.bounds_ns[0])
        if start_ns == self.bounds_ns[0] and end_ns >= self.end_ns:
            return self
        part = Partition(start_ns)
        first = max(0, bisect_right(self.bounds_ns, start_ns) - 1)
        last = bisect_left(self.bounds_ns, end_ns)
        for at in range(first, min(last, len(self.codes))):
            part.extend(self.codes[at], min(self.bounds_ns[at + 1], end_ns))
        return part

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Partition):
            return NotImplemented
        return self.bounds_ns == other.bounds_ns and self.codes == other.codes

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __iter__(self) -> Iterator[Interval]:
        for at, code in enumerate(self.codes):
            yield Interval(LEDGER_CATEGORIES[code], self.bounds_ns[at], self.bounds_ns[at + 1])
