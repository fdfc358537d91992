"""A group that was measured several times: each limit is answered by the interval of its figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_cre.catalog.limit import Limit
from pytest_cre.judge.statistics import Answer, Interval, Repeats, answer_of, interval_of
from pytest_cre.judge.verdict import Check, Code
from pytest_cre.judge.words import quantity_words

_CODES: Mapping[Answer, Code] = {
    "pass": "pass",
    "fail": "fail",
    "more": "inconclusive",
    "inconclusive": "inconclusive",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """What the repeats of a figure say of one limit."""

    answer: Answer
    interval: Interval
    least: int

    @property
    def code(self) -> Code:
        """Return the verdict as it is now; without enough repeats it is inconclusive."""
        return _CODES[self.answer]

    def words(self, limit: Limit) -> str:
        """Return why the limit is not met, or not decided."""
        found, unit = self.interval, limit.unit
        figures = f"{limit.metric} {quantity_words(found.mean, unit)} over {found.count} repeats"
        bound = f"the {limit.tier} limit {quantity_words(limit.value or 0.0, unit)}"
        if found.count < self.least:
            return f"{figures} of at least {self.least} tells nothing of {bound}"
        between = f"({quantity_words(found.low, unit)} to {quantity_words(found.high, unit)})"
        verb = "misses" if self.answer == "fail" else "does not decide"
        return f"{figures} {between} {verb} {bound}"


def answers(attempts: Sequence[Sequence[Check]], repeats: Repeats) -> dict[Limit, Repeated]:
    """Return the answer of each limit that all attempts were judged by; `attempts` are whole ones.

    Guards, expressions and figures in doubt have none: each attempt is judged by them alone.
    """
    found: dict[Limit, Repeated] = {}
    for limit in dict.fromkeys(check.limit for checks in attempts for check in checks):
        if limit is None or limit.value is None or limit.is_guard:
            continue
        values = [
            check.measured
            for checks in attempts
            for check in checks
            if check.limit == limit and check.measured is not None and check.code != "inconclusive"
        ]
        if len(values) == len(attempts):
            found[limit] = Repeated(
                answer=answer_of(
                    values,
                    operator=">=" if limit.operator in (">=", ">") else "<=",
                    limit=limit.value,
                    repeats=repeats,
                ),
                interval=interval_of(values, repeats),
                least=repeats.least,
            )
    return found


def wants_another(found: Mapping[Limit, Repeated], *, count: int, repeats: Repeats) -> bool:
    """Return whether another repeat can still decide something, after `count` whole ones."""
    if count < repeats.least:
        return True
    given = [each.answer for each in found.values()]
    return "more" in given and "fail" not in given
