"""Which streams of a Job are believed where several tell the same: as a log profile says, and as lines allow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_cre.measure.frameworks.dialect import Dialect
from pytest_cre.measure.frameworks.recorder import NO_TIME, Recorder
from pytest_cre.measure.training import TrainingReader


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Names of streams: whose profile matches do not count, and whose steps were only counted."""

    profile_steps: frozenset[str]
    profile_facts: frozenset[str]
    counted_steps: frozenset[str]


def left_out(
    readers: Mapping[str, TrainingReader],
    attempts: Mapping[str, int],
    winner: type[Dialect] | None,
) -> LeftOut:
    """Return what does not count.

    A profile for several workers takes steps from its step pod and the rest from its lifecycle pod: the
    first or the last stream of each attempt, in the order given. Only copies are left out, lines of other
    streams that the chosen one has as well at that time, so that a part of a log is never lost. With other
    profiles the first copy counts.
    """
    by_attempt: dict[int, list[str]] = {}
    for name in readers:
        by_attempt.setdefault(attempts.get(name, 0), []).append(name)
    steps: set[str] = set()
    facts: set[str] = set()
    for names in by_attempt.values():
        matched = {name: own for name in names if (own := readers[name].by_profile) is not None}
        if len(matched) < 2:
            continue
        first, last = (list(matched)[at] for at in (0, -1))
        profile = matched[first].profile.profile
        if profile.strategy != "Multi":
            continue
        step_pod = first if profile.training_step_pod == "first" else last
        lifecycle_pod = first if profile.lifecycle_pod == "first" else last
        for name, own in matched.items():
            if name != step_pod and _repeats_steps(own.recorder, matched[step_pod].recorder):
                steps.add(name)
            if name != lifecycle_pod and _repeats_facts(
                own.recorder, matched[lifecycle_pod].recorder
            ):
                facts.add(name)
    return LeftOut(
        profile_steps=frozenset(steps),
        profile_facts=frozenset(facts),
        counted_steps=_counted(readers, winner),
    )


def _repeats_steps(own: Recorder, chosen: Recorder) -> bool:
    spans = _span(own.app_ns, own.absolute_ns), _span(chosen.app_ns, chosen.absolute_ns)
    return bool(own.numbers) and _overlap(*spans) and set(own.numbers) <= set(chosen.numbers)


def _repeats_facts(own: Recorder, chosen: Recorder) -> bool:
    spans = [
        _span(
            [NO_TIME if fact.app_ns is None else fact.app_ns for fact in each.facts],
            [NO_TIME if fact.absolute_ns is None else fact.absolute_ns for fact in each.facts],
        )
        for each in (own, chosen)
    ]
    told, known = ({(fact.kind, fact.step) for fact in each.facts} for each in (own, chosen))
    return bool(told) and _overlap(*spans) and told <= known


def _span(app_ns: Sequence[int], absolute_ns: Sequence[int]) -> tuple[int, int] | None:
    """Return the earliest and the latest time of lines, None where none has one."""
    for times in (app_ns, absolute_ns):
        known = [t_ns for t_ns in times if t_ns != NO_TIME]
        if known:
            return min(known), max(known)
    return None


def _overlap(own: tuple[int, int] | None, chosen: tuple[int, int] | None) -> bool:
    return own is None or chosen is None or (own[0] <= chosen[1] and chosen[0] <= own[1])


def _counted(readers: Mapping[str, TrainingReader], winner: type[Dialect] | None) -> frozenset[str]:
    """Return the streams whose steps were only counted, where another one numbers them."""
    is_counted = {
        name: "steps_counted" in dialect.recorder.flags
        for name, reader in readers.items()
        for dialect in reader.dialects
        if type(dialect) is winner and dialect.recorder.numbers
    }
    if all(is_counted.values()):
        return frozenset()
    return frozenset(name for name, counted in is_counted.items() if counted)
