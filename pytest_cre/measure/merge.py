"""The streams of one Job to one history: whose lines count, on one clock, without copies."""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_cre.measure.clocks import (
    apart_ns,
    causal_skew_ns,
    copy_skew_ns,
)
from pytest_cre.measure.events import BEGINNINGS, SAVING, StepRun, TrainingEvent
from pytest_cre.measure.failure import Failures
from pytest_cre.measure.frameworks.dialect import Dialect
from pytest_cre.measure.frameworks.recorder import NO_TIME
from pytest_cre.measure.instants import SECOND_NS
from pytest_cre.measure.model import CheckpointRecord
from pytest_cre.measure.records import checkpoints_of, series_of
from pytest_cre.measure.runs import events_of
from pytest_cre.measure.series import StepSeries
from pytest_cre.measure.sources import left_out
from pytest_cre.measure.stream import StreamReader
from pytest_cre.measure.told import Told, told_of
from pytest_cre.measure.training import TrainingReader

# Whose steps count where several frameworks printed some.
PRECEDENCE = ("nemo", "torchtitan", "maxtext", "megatron-lm", "deepspeed", "hf", "lightning")
_STRAY = 10


@dataclass(slots=True, kw_only=True)
class Merged:
    """What the streams tell together. `skews_s` is what was added to each pod's clock."""

    framework: str | None
    profile: str | None
    events: list[TrainingEvent | StepRun]
    steps: StepSeries
    checkpoints: tuple[CheckpointRecord, ...]
    failures: Failures
    flags: set[str]
    warmup_steps: int
    skews_s: Mapping[str, float] = field(default_factory=dict)
    has_end: bool = False


def merge(
    streams: Sequence[StreamReader],
    *,
    attempts: Mapping[str, int] | None = None,
    started_streams: frozenset[str] = frozenset(),
    near_ns: int | None = None,
) -> Merged:
    """Merge the streams of one Job.

    `attempts` names the attempt of each stream where that is known from elsewhere; `started_streams` are
    those whose process start is known from elsewhere, so that the first start line only repeats it.
    `near_ns` is a time that tells the year of times without one.
    """
    readers = {each.name: each.training for each in streams if each.training is not None}
    winner = _winner(list(readers.values()))
    by_profile = any(r.by_profile and r.by_profile.recorder.numbers for r in readers.values())
    flags: set[str] = set()
    of_all_ns = [t_ns for r in readers.values() for t_ns in apart_ns(r.recorders)]
    without = left_out(readers, attempts or {}, winner)
    told = [
        told_of(
            name,
            reader,
            winner,
            by_profile=by_profile,
            flags=flags,
            near_ns=near_ns,
            of_all_ns=of_all_ns,
            without=without,
        )
        for name, reader in readers.items()
    ]
    for each in told:
        each.attempt = (attempts or {}).get(each.name)
    skews_s = _correct_skew(told)
    if skews_s:
        flags.add("clock_skew")
    if _could_tell_a_start(readers, winner, by_profile=by_profile) and _lacks_a_start(told):
        flags.add("start_unseen")
    for each in told:
        if each.name in started_streams:
            _drop_first_start(each)
    dialects = [d for r in readers.values() for d in r.dialects if type(d) is winner]
    named = next((d for d in dialects if d.name != d.framework), next(iter(dialects), None))
    marked = [n for r in readers.values() if r.by_profile for n in r.by_profile.warmup_numbers]
    has_steps = any(each.steps.numbers for each in told)
    if not by_profile and has_steps and any(r.by_profile for r in readers.values()):
        flags.add("profile_unmatched")
    return Merged(
        framework=named.name if named else None,
        profile=named.profile_name if named else None,
        events=[event for each in told for event in events_of(each)],
        steps=series_of(told),
        checkpoints=checkpoints_of(told),
        failures=_final_failures(told),
        flags=flags,
        warmup_steps=_warmup(winner, marked, told, by_profile=by_profile),
        skews_s=skews_s,
        has_end=any(each.end is not None for each in told),
    )


def _winner(readers: Sequence[TrainingReader]) -> type[Dialect] | None:
    """Return the framework that the logs are of: that of the steps, else that of most other lines."""
    steps: Counter[type[Dialect]] = Counter()
    facts: Counter[type[Dialect]] = Counter()
    for reader in readers:
        for dialect in reader.dialects:
            steps[type(dialect)] += len(dialect.recorder.numbers)
            facts[type(dialect)] += len(dialect.recorder.facts)
    order = sorted(steps, key=lambda dialect: PRECEDENCE.index(dialect.framework))
    with_steps = [
        dialect
        for dialect in order
        # A line that merely looks like another framework's must not hide a whole run.
        if steps[dialect]
        and all(
            steps[other] <= _STRAY * steps[dialect] or other.framework in dialect.kin
            for other in order
        )
    ]
    if with_steps:
        return with_steps[0]
    with_facts = [dialect for dialect in order if facts[dialect]]
    return max(with_facts, key=lambda dialect: facts[dialect]) if with_facts else None


def _could_tell_a_start(
    readers: Mapping[str, TrainingReader], winner: type[Dialect] | None, *, by_profile: bool
) -> bool:
    """Return whether a line of a start would have been known: of every framework, not of every profile."""
    if by_profile:
        return any(r.by_profile and r.by_profile.profile.tells_starts for r in readers.values())
    return winner is not None


def _lacks_a_start(told: Sequence[Told]) -> bool:
    """Return whether steps or saves of an attempt come before anything that tells of its start.

    Where such lines are gone, those of saves may be gone with them.
    """
    attempts: dict[int | None, list[Told]] = {}
    for each in told:
        attempts.setdefault(each.attempt, []).append(each)
    for of_attempt in attempts.values():
        begun = [t_ns for each in of_attempt for t_ns in each.times_of(BEGINNINGS)]
        done = [t_ns for each in of_attempt for t_ns in (*each.times[:1], *each.times_of(SAVING))]
        if done and not begun:
            return True
        # A start without a time may be the one looked for.
        starts_ns = [NO_TIME if t_ns is None else t_ns for t_ns in begun]
        known_ns = [t_ns for t_ns in done if t_ns is not None and t_ns != NO_TIME]
        if known_ns and min(starts_ns) > min(known_ns) + SECOND_NS:
            return True
    return False


def _drop_first_start(told: Told) -> None:
    for at, (fact, _, _) in enumerate(told.facts):
        if fact.kind == "proc_start":
            del told.facts[at]
            return


def _correct_skew(told: Sequence[Told]) -> dict[str, float]:
    """Bring the streams onto the clock of the one with most steps; return what that took.

    A stream with steps of its own is only held against those that it copies; one without against the
    steps of all others.
    """
    skews: dict[str, float] = {}
    if len(told) < 2:
        return skews
    base = max(told, key=lambda each: len(each.steps.numbers))
    for each in told:
        if each is base:
            continue
        if each.steps.numbers:
            by_ns = copy_skew_ns(base.steps.numbers, base.times, each.steps.numbers, each.times)
        else:
            others = [o for o in told if o.steps.numbers and o.attempt == each.attempt]
            by_ns = causal_skew_ns(
                *_in_time([o.steps.numbers for o in others], [o.times for o in others]),
                saves=each.of_kind("save_start"),
                loads=each.of_kind("load_end"),
            )
        if by_ns:
            each.shift(by_ns)
            skews[each.name] = by_ns / SECOND_NS
    return skews


def _in_time(
    numbers: "Sequence[array[int]]", times: "Sequence[array[int]]"
) -> "tuple[array[int], array[int]]":
    """Return the step lines of several streams in the order of time."""
    if len(numbers) == 1:
        return numbers[0], times[0]
    rows = sorted(
        (t_ns, number)
        for of_stream, at in zip(numbers, times, strict=True)
        for number, t_ns in zip(of_stream, at, strict=True)
        if t_ns != NO_TIME
    )
    return array("q", [number for _, number in rows]), array("q", [t_ns for t_ns, _ in rows])


def _final_failures(told: Sequence[Told]) -> Failures:
    """Return the failures that nothing went on after, in the last attempt."""
    progress_ns = max((max(each.times, default=NO_TIME) for each in told), default=NO_TIME)
    newest = max((each.attempt or 0 for each in told), default=0)
    failures = Failures()
    for each in told:
        for episode, t_ns in each.episodes:
            is_last = (each.attempt or 0) == newest and episode.is_open
            if is_last and (t_ns is None or t_ns >= progress_ns):
                failures.join(episode.failures)
    return failures


def _warmup(
    winner: type[Dialect] | None,
    marked: Sequence[int],
    told: Sequence[Told],
    *,
    by_profile: bool,
) -> int:
    """Return how many steps after each start averages leave out, as far as the log's format tells."""
    if by_profile:
        firsts = [each.steps.numbers[0] for each in told if each.steps.numbers]
        return max(marked) - min(firsts) + 1 if marked and firsts else 0
    return winner.warmup_steps if winner else 0
