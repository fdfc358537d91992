"""The verdict of a figure that was measured several times: by its interval, not by one lucky run.

The interval is Student's t interval of the mean. It assumes that repeats are independent and that
their noise is about normal. The data is looked at after every repeat from `least` to `most`; so that
looking often does not make mistakes likelier, each look spends an equal share of the error allowed
(Bonferroni), which errs on the safe side.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Answer = Literal["pass", "fail", "more", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """How often a figure is measured. `error` is the probability allowed for each kind of mistake."""

    least: int = 3
    most: int = 7
    error: float = 0.05

    def __post_init__(self) -> None:
        """Refuse what gives no interval; raises `ValueError`."""
        if not 2 <= self.least <= self.most:
            raise ValueError("repeats need 2 <= least <= most")
        if not 0 < self.error < 0.5:
            raise ValueError("the error allowed must lie between 0 and 0.5")

    @property
    def error_of_a_look(self) -> float:
        """Return the share of the error that one look may spend."""
        return self.error / (self.most - self.least + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Mean of `count` repeats and the ends of its interval; infinite ends: too few to tell."""

    mean: float
    low: float
    high: float
    count: int


def interval_of(values: Sequence[float], repeats: Repeats) -> Interval:
    """Return the interval in which the true mean lies, but for the error of a look at each end.

    Raises `ValueError` for no values and for values that are not finite.
    """
    if not values or not all(map(math.isfinite, values)):
        raise ValueError("an interval needs finite values")
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return Interval(mean=mean, low=-math.inf, high=math.inf, count=len(values))
    reach = t_quantile(1 - repeats.error_of_a_look, len(values) - 1)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = reach * math.sqrt(variance / len(values))
    return Interval(mean=mean, low=mean - half, high=mean + half, count=len(values))


def answer_of(
    values: Sequence[float], *, operator: Literal[">=", "<="], limit: float, repeats: Repeats
) -> Answer:
    """Return the verdict so far.

    Pass only if the whole interval meets the limit, fail only if none of it does; else `more`
    repeats, and `inconclusive` when there were the most.
    """
    if len(values) < repeats.least:
        return "more"
    found = interval_of(values, repeats)
    is_floor = operator == ">="
    if (found.low >= limit) if is_floor else (found.high <= limit):
        return "pass"
    if (found.high < limit) if is_floor else (found.low > limit):
        return "fail"
    return "more" if len(values) < repeats.most else "inconclusive"


@lru_cache(maxsize=256)
def t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution, for a probability above one half.

    Found by bisection of its distribution function; good to 1e-9.
    """
    if not 0.5 < probability < 1 or degrees < 1:
        raise ValueError("needs 0.5 < probability < 1 and at least one degree of freedom")
    low, high = 0.0, 1.0
    while _t_tail(high, degrees) > 1 - probability:
        high *= 2
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _t_tail(middle, degrees) > 1 - probability else (low, middle)
    return (low + high) / 2


def _t_tail(t: float, degrees: int) -> float:
    """Return the probability above t >= 0.

    The finite sums for whole degrees of freedom: Abramowitz and Stegun, 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    if degrees % 2:
        term = total = cosine if degrees > 1 else 0.0
        for k in range(2, degrees - 1, 2):
            term *= cosine * cosine * k / (k + 1)
            total += term
        inside = 2 / math.pi * (angle + sine * total)
    else:
        term = total = 1.0
        for k in range(1, degrees - 1, 2):
            term *= cosine * cosine * k / (k + 1)
            total += term
        inside = sine * total
    return (1 - inside) / 2
