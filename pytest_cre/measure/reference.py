"""The reference step time and the print interval: given, or taken from the log itself."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from operator import sub
from statistics import fmean, median
from typing import Literal

from pytest_cre.measure.history import Attempt
from pytest_cre.measure.instants import SECOND_NS
from pytest_cre.measure.pauses import Span
from pytest_cre.measure.series import even_rise

ReferenceSource = Literal["given", "estimated"]

MINIMUM_STEPS = 20
_SAMPLE = 20_000  # an estimate looks at so many step times, evenly spread: more would tell no more


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Step time to compare with. `step_ns` is None where nothing allows one.

    `allowance_ns` is how much of a silence counts as work in flight: one print interval.
    `resolution_ns` is the grain of the timestamps where it is coarser than the steps' own times, else 0.
    """

    step_ns: float | None
    source: ReferenceSource | None
    interval: int
    allowance_ns: int
    resolution_ns: int


def reference_of(
    attempts: Sequence[Attempt],
    pauses: Sequence[tuple[Span, ...]],
    *,
    given_s: float | None,
    interval: int | None,
) -> Reference:
    """Take the given values, else estimate.

    The estimate leaves out first segments and those with a pause, takes the median and then the mean of what
    is at most three median absolute deviations above it. It needs 20 steps and cannot see a run that
    is slow from start to end.
    """
    every = interval or print_interval(attempts)
    coarse = is_coarse(attempts)
    seen, covered = _per_step_ns(attempts, pauses, printed=coarse)
    source: ReferenceSource | None = None
    step_ns: float | None = None
    if given_s is not None:
        source, step_ns = "given", given_s * SECOND_NS
    elif covered >= MINIMUM_STEPS:
        source, step_ns = "estimated", _robust_mean(seen)
    # Too few steps for a reference still tell work in flight from a hang; both are losses.
    pace_ns = step_ns if step_ns is not None else median(seen) if seen else 0.0
    return Reference(
        step_ns=step_ns,
        source=source,
        interval=every,
        allowance_ns=round(every * pace_ns),
        resolution_ns=SECOND_NS if coarse else 0,
    )


def print_interval(attempts: Sequence[Attempt]) -> int:
    """Return the most common difference between printed steps, the smallest of equals, else 1."""
    counts: Counter[int] = Counter()
    for attempt in attempts:
        numbers = attempt.steps.numbers
        rise = even_rise(numbers)
        if rise is not None:
            counts[rise] += len(numbers) - 1
        else:
            counts.update(map(sub, numbers[1:], numbers))
    if not counts:
        return 1
    return min(counts, key=lambda difference: (-counts[difference], difference))


def is_coarse(attempts: Sequence[Attempt]) -> bool:
    """Return whether lines carry whole seconds although they print step times that are not whole."""
    printed = False
    for attempt in attempts:
        if any(t_ns % SECOND_NS for t_ns in attempt.steps.times_ns):
            return False
        printed = printed or any(not isnan(s) and s % 1 for s in attempt.steps.step_times_s)
    return printed


def _per_step_ns(
    attempts: Sequence[Attempt], pauses: Sequence[tuple[Span, ...]], *, printed: bool
) -> tuple[list[float], int]:
    """Return the time per step of clean segments, and the number of steps they cover."""
    seen: list[float] = []
    total = 0
    apart = sum(len(attempt.steps.numbers) for attempt in attempts) // _SAMPLE + 1
    for attempt, spans in zip(attempts, pauses, strict=True):
        numbers, times = attempt.steps.numbers, attempt.steps.times_ns
        covered = list(map(sub, numbers[1::apart], numbers[::apart]))
        lasted = list(map(sub, times[1::apart], times[::apart]))
        values = [t_ns / n for t_ns, n in zip(lasted, covered, strict=True)]
        if printed:
            values = [s * SECOND_NS for s in attempt.steps.step_times_s[1::apart]]
        blocked = _blocked_segments(times, spans)
        clean = [
            at for at, value in enumerate(values) if at * apart not in blocked and not isnan(value)
        ]
        seen.extend(values[at] for at in clean)
        total += sum(covered[at] for at in clean)
    return seen, total


def _blocked_segments(times: Sequence[int], spans: tuple[Span, ...]) -> set[int]:
    """Return the segments, numbered by the line they start at, that a pause touches."""
    blocked: set[int] = set()
    for start, end in spans:
        first = max(0, bisect_right(times, start) - 1)
        blocked.update(range(first, bisect_left(times, end)))
    return blocked


def _robust_mean(values: list[float]) -> float:
    middle = median(values)
    deviation = median([abs(value - middle) for value in values])
    limit = middle + 3 * deviation
    return fmean([value for value in values if value <= limit])
