"""Whose clock a log's times are of: time zones, output that came in bursts, and skew between pods."""

from array import array
from calendar import isleap
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from math import isnan
from operator import sub
from statistics import median

from pytest_cre.measure.events import TimeSource
from pytest_cre.measure.frameworks.recorder import NO_TIME, Fact, Recorder, sampled
from pytest_cre.measure.instants import (
    DAY_NS,
    MINUTE_NS,
    NO_YEAR,
    SECOND_NS,
    year_of,
    year_start_ns,
)

TOLERANCE_NS = SECOND_NS
_QUARTER_NS = 15 * MINUTE_NS
_MINIMUM_PAIRS = 5
_BURST_LINES = 3
_MILLISECOND_NS = 1_000_000
_NO_YEAR_NS = (year_start_ns(NO_YEAR), year_start_ns(NO_YEAR + 1))
_HALF_A_YEAR_NS = 183 * DAY_NS


class Clock:
    """Turns what one recorder noted into UTC, with the source of the times.

    An application's time without a zone is shifted by whole quarters of an hour to the kubelet's, which
    writes a line down later, never earlier, than it was printed. Where too few lines tell the zone and it
    is not UTC, the kubelet's times are taken instead; `of_all_ns` is how far apart both are in all logs of the
    Job, for one that tells too little by itself. Times without a year are put into that of `near_ns`.
    """

    def __init__(
        self,
        recorders: Sequence[Recorder],
        *,
        near_ns: int | None = None,
        of_all_ns: Sequence[int] = (),
    ) -> None:
        self._year = _Year(recorders, near_ns)
        ahead_ns: Sequence[int] = apart_ns(recorders)
        if len(ahead_ns) < _MINIMUM_PAIRS:
            ahead_ns = of_all_ns or ahead_ns
        quarters = round(max(ahead_ns, default=0) / _QUARTER_NS)
        self.offset_ns = quarters * _QUARTER_NS
        self.is_zone_unknown = bool(quarters) and len(ahead_ns) < _MINIMUM_PAIRS

    @property
    def flags(self) -> set[str]:
        """Return what to say about the times."""
        flags = {"zone_unknown"} if self.is_zone_unknown else set()
        return flags | {"year_unknown"} if self._year.is_unknown else flags

    def at(self, app_ns: int | None, absolute_ns: int | None) -> tuple[int | None, TimeSource]:
        """Return a time in UTC and where it comes from."""
        if app_ns is None or (self.is_zone_unknown and absolute_ns is not None):
            return absolute_ns, "kubelet"
        return self._year.with_year(app_ns) - self.offset_ns, "app"

    def fact(self, fact: Fact) -> tuple[int | None, TimeSource]:
        """Return a fact's time in UTC and where it comes from."""
        return self.at(fact.app_ns, fact.absolute_ns)

    def steps(self, recorder: Recorder) -> "tuple[array[int], TimeSource]":
        """Return the times of all step lines in UTC, `NO_TIME` where there is none."""
        app, absolute = recorder.app_ns, recorder.absolute_ns
        if self._year.is_missing:
            app = array("q", map(self._year.with_year, app))
        if NO_TIME not in app and not self.is_zone_unknown:
            if not self.offset_ns:
                return app, "app"
            return array("q", [t_ns - self.offset_ns for t_ns in app]), "app"
        times = array("q")
        for app_ns, absolute_ns in zip(app, absolute, strict=True):
            if app_ns == NO_TIME or (self.is_zone_unknown and absolute_ns != NO_TIME):
                times.append(absolute_ns)
            else:
                times.append(app_ns - self.offset_ns)
        has_app = any(t_ns != NO_TIME for t_ns in app) and not self.is_zone_unknown
        return times, "app" if has_app else "kubelet"


def apart_ns(recorders: Sequence[Recorder]) -> list[int]:
    """Return the application's time minus the kubelet's, of a sample of the lines that have both."""
    found: list[int] = []
    for recorder in recorders:
        app, absolute = recorder.app_ns, recorder.absolute_ns
        found.extend(
            app[at] - absolute[at]
            for at in sampled(0, len(app))
            if app[at] != NO_TIME and absolute[at] != NO_TIME
        )
        found.extend(
            fact.app_ns - fact.absolute_ns
            for fact in recorder.facts
            if fact.app_ns is not None and fact.absolute_ns is not None
        )
    return found


class _Year:
    """Puts times without a year into one; where two years met, what looks half a year older is of the next."""

    def __init__(self, recorders: Iterable[Recorder], near_ns: int | None) -> None:
        times = [
            t_ns
            for recorder in recorders
            for t_ns in (*recorder.app_ns[:1], *recorder.app_ns[-1:], *_app_times(recorder.facts))
            if _NO_YEAR_NS[0] <= t_ns < _NO_YEAR_NS[1]
        ]
        self.is_missing = bool(times)
        self.is_unknown = self.is_missing and near_ns is None
        self._turn_ns = NO_TIME
        if times and max(times) - min(times) > _HALF_A_YEAR_NS:
            self._turn_ns = _NO_YEAR_NS[0] + _HALF_A_YEAR_NS
        self._first = NO_YEAR
        if times and near_ns is not None:
            earliest = min((t for t in times if t >= self._turn_ns), default=min(times))
            around = range(year_of(near_ns) - 1, year_of(near_ns) + 2)
            self._first = min(around, key=lambda year: abs(_moved(earliest, year) - near_ns))

    def with_year(self, t_ns: int) -> int:
        """Return a time in its year; others as they are."""
        if not self.is_missing or not _NO_YEAR_NS[0] <= t_ns < _NO_YEAR_NS[1]:
            return t_ns
        return _moved(t_ns, self._first + (t_ns < self._turn_ns))


def _app_times(facts: Iterable[Fact]) -> list[int]:
    return [fact.app_ns for fact in facts if fact.app_ns is not None]


def _moved(t_ns: int, year: int) -> int:
    """Return a time of `NO_YEAR` in another year, at the same date."""
    since_ns = t_ns - _NO_YEAR_NS[0]
    if since_ns >= 60 * DAY_NS and not isleap(year):  # from 1 March on
        since_ns -= DAY_NS
    return year_start_ns(year) + since_ns


def bursts(recorder: Recorder) -> list[range]:
    """Return the step lines, three or more in a row, that were written down in the same millisecond.

    Such lines had waited in a buffer: their time is that of its flush.
    """
    absolute = recorder.absolute_ns
    rows: Sequence[int] = range(len(absolute))
    if NO_TIME in absolute:  # only a sample is there
        rows = [at for at in sampled(0, len(absolute)) if absolute[at] != NO_TIME]
    elif min(map(sub, islice(absolute, 1, None), absolute), default=0) > _MILLISECOND_NS:
        return []
    found: list[range] = []
    start = before = -2
    for at in (*rows, -2):
        goes_on = at == before + 1 and (
            absolute[at] // _MILLISECOND_NS == absolute[start] // _MILLISECOND_NS
        )
        if not goes_on:
            if before - start + 1 >= _BURST_LINES:
                found.append(range(start, before + 1))
            start = at
        before = at
    return found


def spread(times: "array[int]", recorder: Recorder, burst: range) -> None:
    """Set the times of a burst's lines back by the step times that they print, in place.

    Where a line prints none, the time of those before it is not known. None is set back beyond the
    line before the burst.
    """
    floor_ns = times[burst.start - 1] if burst.start else NO_TIME
    at_ns = times[burst.stop - 1]
    for at in range(burst.stop - 1, burst.start, -1):
        seconds = recorder.seconds[at]
        if isnan(seconds) or at_ns == NO_TIME:
            at_ns = NO_TIME
        else:
            covered = max(1, recorder.numbers[at] - recorder.numbers[at - 1])
            at_ns = max(at_ns - round(seconds * covered * SECOND_NS), floor_ns)
        times[at - 1] = at_ns


def copy_skew_ns(
    base_numbers: "array[int]",
    base_times: "array[int]",
    numbers: "array[int]",
    times: "array[int]",
) -> int:
    """Return what to add to a stream's times where it prints the same steps as the base, at the same time.

    Attempts that follow each other repeat steps, too, but never overlap; and a copy has most of the steps.
    """
    known = [t_ns for t_ns in times if t_ns != NO_TIME]
    base_known = [t_ns for t_ns in base_times if t_ns != NO_TIME]
    if not known or not base_known:
        return 0
    if min(known) > max(base_known) or max(known) < min(base_known):
        return 0
    shared = _shared_differences((base_numbers, base_times), (numbers, times))
    if len(shared) < max(_MINIMUM_PAIRS, len(known) // 2, len(base_known) // 2):
        return 0
    difference = round(median(shared))
    return difference if abs(difference) > TOLERANCE_NS else 0


def causal_skew_ns(
    numbers: "array[int]",
    times: "array[int]",
    *,
    saves: Sequence[tuple[int, int]],
    loads: Sequence[tuple[int, int]],
) -> int:
    """Return what to add to a stream's times so that its saves and loads fit the steps of other streams.

    Saves and loads are pairs of step and time, of starts of saves and ends of loads. A save of step n
    starts between the lines of n and of the next step, and a load of step n ends before the first line
    above n. Within a second all is taken to be right.
    """
    least, most = NO_TIME, -NO_TIME
    places = _places(numbers, times, {step for step, _ in saves})
    for step, t_ns in saves:
        done = min(places.get(step, ()), key=lambda at: abs(times[at] - t_ns), default=None)
        if done is not None:
            least = max(least, times[done] - t_ns)
            if done + 1 < len(numbers) and numbers[done + 1] > step:
                most = min(most, times[done + 1] - t_ns)
    starts = _starts(numbers, times)
    for step, t_ns in loads:
        after = min(
            (at for at in starts if numbers[at] > step),
            key=lambda at: abs(times[at] - t_ns),
            default=None,
        )
        if after is not None:
            most = min(most, times[after] - t_ns)
    if least > TOLERANCE_NS:
        return least
    return most if most < -TOLERANCE_NS else 0


def _places(
    numbers: "array[int]", times: "array[int]", wanted: AbstractSet[int]
) -> Mapping[int, list[int]]:
    """Return the lines of each wanted step that have a time."""
    found: dict[int, list[int]] = {}
    for at, number in enumerate(numbers):
        if number in wanted and times[at] != NO_TIME:
            found.setdefault(number, []).append(at)
    return found


def _starts(numbers: "array[int]", times: "array[int]") -> list[int]:
    """Return the lines with a time that are the first of all or where the counter was set back."""
    return [
        at
        for at, number in enumerate(numbers)
        if times[at] != NO_TIME and (at == 0 or numbers[at - 1] >= number)
    ]


def _shared_differences(
    base: "tuple[array[int], array[int]]", other: "tuple[array[int], array[int]]"
) -> list[int]:
    """Return base time minus stream time for each step that both print just as often."""
    first: dict[int, list[int]] = {}
    for number, t_ns in zip(*base, strict=True):
        if t_ns != NO_TIME:
            first.setdefault(number, []).append(t_ns)
    second: dict[int, list[int]] = {}
    for number, t_ns in zip(*other, strict=True):
        if t_ns != NO_TIME and number in first:
            second.setdefault(number, []).append(t_ns)
    return [
        a - b
        for number, times in second.items()
        if len(times) == len(first[number])
        for a, b in zip(first[number], times, strict=True)
    ]


def copies(numbers: Sequence[int], times: Sequence[int], streams: Sequence[int]) -> set[int]:
    """Return the indexes of step lines that repeat one of another stream; lines are in the order of time.

    A step cannot be done again within the time that steps usually take: a line so near to the same
    step's line from elsewhere is its copy. Without times the same step from elsewhere is a copy.
    """
    paces = [
        times[at] - times[at - 1]
        for at in range(1, len(times))
        if numbers[at] > numbers[at - 1] and NO_TIME not in (times[at], times[at - 1])
    ]
    near_ns = max(TOLERANCE_NS, round(1.5 * median(paces))) if paces else TOLERANCE_NS
    kept: dict[int, tuple[int, int]] = {}
    found: set[int] = set()
    for at, number in enumerate(numbers):
        before = kept.get(number)
        if before is not None and streams[at] != before[1]:
            is_untimed = NO_TIME in (times[at], before[0])
            if is_untimed or abs(times[at] - before[0]) <= near_ns:
                found.add(at)
                continue
        kept[number] = (times[at], streams[at])
    return found
