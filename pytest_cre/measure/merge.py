"""The streams of one Job to one history: whose lines count, on one clock, without copies."""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import lt, sub

from pytest_cre.measure.clocks import Clock, bursts, causal_skew_ns, copies, copy_skew_ns, spread
from pytest_cre.measure.events import EventKind, StepRun, TimeSource, TrainingEvent
from pytest_cre.measure.failure import Failures
from pytest_cre.measure.frameworks.dialect import Dialect
from pytest_cre.measure.frameworks.recorder import NO_TIME, Fact, Recorder
from pytest_cre.measure.instants import SECOND_NS
from pytest_cre.measure.model import CheckpointRecord, RecordName
from pytest_cre.measure.series import StepSeries, covers_of
from pytest_cre.measure.stream import StreamReader
from pytest_cre.measure.training import FailureEpisode, TrainingReader

# Whose steps count where several frameworks printed some.
PRECEDENCE = ("nemo", "torchtitan", "maxtext", "megatron-lm", "deepspeed", "hf", "lightning")
_COPY_NS = 60 * SECOND_NS
_STARTS: Mapping[RecordName, RecordName] = {"save_done": "save_start", "load_done": "load_start"}
_RECORD_NAMES: Mapping[EventKind, RecordName] = {
    "save_start": "save_start",
    "save_commit": "save_done",
    "load_start": "load_start",
    "load_end": "load_done",
}


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


@dataclass(slots=True, kw_only=True)
class _Told:
    """One stream on its own clock: step columns, facts and exits."""

    name: str
    attempt: int | None
    steps: Recorder
    times: "array[int]"
    source: TimeSource
    facts: list[tuple[Fact, int | None, TimeSource]]
    episodes: list[tuple[FailureEpisode, int | None]]
    end: tuple[int | None, int] | None = None  # time and seq

    def shift(self, by_ns: int) -> None:
        """Move every time."""
        self.times = array("q", [t if t == NO_TIME else t + by_ns for t in self.times])
        self.facts = [(f, None if t is None else t + by_ns, s) for f, t, s in self.facts]
        self.episodes = [(e, None if t is None else t + by_ns) for e, t in self.episodes]
        if self.end is not None and self.end[0] is not None:
            self.end = (self.end[0] + by_ns, self.end[1])

    def of_kind(self, *kinds: EventKind) -> list[tuple[int, int]]:
        """Return step and time of the facts of some kinds, where both are known."""
        return [
            (fact.step, t_ns)
            for fact, t_ns, _ in self.facts
            if fact.kind in kinds and fact.step is not None and t_ns is not None
        ]


def merge(
    streams: Sequence[StreamReader],
    *,
    attempts: Mapping[str, int] | None = None,
    started_streams: frozenset[str] = frozenset(),
) -> Merged:
    """Merge the streams of one Job.

    `attempts` names the attempt of each stream where that is known from elsewhere; `started_streams` are
    those whose process start is known from elsewhere, so that the first start line only repeats it.
    """
    readers = {each.name: each.training for each in streams if each.training is not None}
    winner = _winner(list(readers.values()))
    by_profile = any(r.by_profile and r.by_profile.recorder.numbers for r in readers.values())
    flags: set[str] = set()
    told = [
        _told(name, reader, winner, by_profile=by_profile, flags=flags)
        for name, reader in readers.items()
    ]
    for each in told:
        each.attempt = (attempts or {}).get(each.name)
        if each.name in started_streams:
            _drop_first_start(each)
    skews_s = _correct_skew(told)
    if skews_s:
        flags.add("clock_skew")
    dialects = [d for r in readers.values() for d in r.dialects if type(d) is winner]
    named = next((d for d in dialects if d.name != d.framework), next(iter(dialects), None))
    marked = [n for r in readers.values() if r.by_profile for n in r.by_profile.warmup_numbers]
    has_steps = any(each.steps.numbers for each in told)
    if not by_profile and has_steps and any(r.by_profile for r in readers.values()):
        flags.add("profile_unmatched")
    return Merged(
        framework=named.name if named else None,
        profile=named.profile_name if named else None,
        events=[event for each in told for event in _events(each)],
        steps=_series(told),
        checkpoints=_checkpoints(told),
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
    with_steps = [dialect for dialect in order if steps[dialect]]
    if with_steps:
        return with_steps[0]
    with_facts = [dialect for dialect in order if facts[dialect]]
    return max(with_facts, key=lambda dialect: facts[dialect]) if with_facts else None


def _told(
    name: str,
    reader: TrainingReader,
    winner: type[Dialect] | None,
    *,
    by_profile: bool,
    flags: set[str],
) -> _Told:
    clock = Clock(reader.recorders)
    flags |= clock.flags
    recorder = Recorder(reader.counter)
    facts: list[Fact] = []
    kin: list[Fact] = []
    done: list[Fact] = []
    for dialect in reader.dialects:
        if winner is not None and type(dialect) is winner:
            recorder = dialect.recorder
            facts.extend(recorder.facts)
        elif (
            winner is not None and dialect.framework in winner.kin and not dialect.recorder.numbers
        ):
            kin.extend(dialect.recorder.facts)
        else:
            continue
        if dialect.recorder.done is not None:
            done.append(dialect.recorder.done)
    facts.extend(kin)
    if reader.by_profile is not None:
        own = reader.by_profile.recorder
        kinds = {fact.kind for fact in own.facts}
        facts = [*own.facts, *(fact for fact in facts if fact.kind not in kinds)]
        if by_profile:
            recorder = own
    flags |= recorder.flags
    facts.sort(key=lambda fact: fact.seq)
    times, source = clock.steps(recorder)
    late = bursts(recorder)
    if late:
        flags.add("buffered")
        if source == "kubelet":
            times = array("q", times)
            for burst in late:
                spread(times, recorder, burst)
    timed = [(fact, *clock.fact(fact)) for fact in facts]
    episodes = [(each, clock.fact(each.fact)[0]) for each in reader.episodes]
    told = _Told(
        name=name,
        attempt=None,
        steps=recorder,
        times=times,
        source=source,
        facts=timed,
        episodes=episodes,
    )
    if done:
        newest = [clock.fact(fact)[0] for fact in done]
        newest.extend(t_ns for _, t_ns, _ in timed)
        newest.append(max(times, default=NO_TIME))
        known = [t_ns for t_ns in newest if t_ns is not None and t_ns != NO_TIME]
        told.end = (max(known, default=None), reader.counter.taken + 1)
    return told


def _drop_first_start(told: _Told) -> None:
    for at, (fact, _, _) in enumerate(told.facts):
        if fact.kind == "proc_start":
            del told.facts[at]
            return


def _correct_skew(told: Sequence[_Told]) -> dict[str, float]:
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


def _events(told: _Told) -> Iterator[TrainingEvent | StepRun]:
    yield from _runs(told)
    for fact, t_ns, source in told.facts:
        yield TrainingEvent(
            kind=fact.kind,
            t_ns=t_ns,
            t_source=source,
            step=fact.step,
            attempt=told.attempt,
            stream=told.name,
            seq=fact.seq,
            duration_s=fact.duration_s,
            reason=fact.reason,
        )
    for episode, t_ns in told.episodes:
        yield TrainingEvent(
            kind="abort",
            t_ns=t_ns,
            attempt=told.attempt,
            stream=told.name,
            seq=episode.fact.seq,
            reason=episode.fact.reason,
        )
    if told.end is not None:
        yield TrainingEvent(
            kind="end",
            t_ns=told.end[0],
            attempt=told.attempt,
            stream=told.name,
            seq=told.end[1],
            t_source="inferred",
        )


def _runs(told: _Told) -> Iterator[TrainingEvent | StepRun]:
    """Yield the steps as few runs: numbers rise, times do not fall, and nothing came between the lines."""
    numbers, times, seqs, steps = told.steps.numbers, told.times, told.steps.seqs, told.steps
    for start, end in _stretches(numbers, times, seqs):
        if times[start] == NO_TIME:
            for at in range(start, end):
                record = StepSeries(
                    numbers=numbers[at : at + 1],
                    times_ns=times[at : at + 1],
                    seconds=steps.seconds[at : at + 1],
                    tflops=steps.tflops[at : at + 1],
                    loss=steps.loss[at : at + 1],
                    covers=array("i", [0]),
                )[0]
                yield TrainingEvent(
                    kind="step",
                    t_ns=None,
                    step=record.step,
                    attempt=told.attempt,
                    stream=told.name,
                    seq=seqs[at],
                    step_time_s=record.step_time_s,
                    tflops_per_gpu=record.tflops_per_gpu,
                )
            continue
        is_all, is_last = end - start == len(numbers), end == len(numbers)
        part = slice(start, end)
        yield StepRun(
            numbers=numbers if is_all else numbers[part],
            times_ns=times if is_all else times[part],
            step_times_s=steps.seconds if is_all else steps.seconds[part],
            tflops=steps.tflops if is_all else steps.tflops[part],
            stream=told.name,
            attempt=told.attempt,
            seq=seqs[start],
            t_source=told.source,
            skipped=steps.skipped if is_last else 0,
            samples=steps.samples if is_last else None,
        )


def _stretches(
    numbers: "array[int]", times: "array[int]", seqs: "array[int]"
) -> Iterator[tuple[int, int]]:
    """Yield start and end of each stretch that makes one run, lines without a time on their own."""
    if not numbers:
        return
    is_one = (
        NO_TIME not in times
        and seqs[-1] - seqs[0] == len(seqs) - 1
        and all(map(lt, numbers, islice(numbers, 1, None)))
        and min(map(sub, islice(times, 1, None), times), default=0) >= 0
    )
    if is_one:
        yield 0, len(numbers)
        return
    start = 0
    for at in range(1, len(numbers)):
        goes_on = (
            numbers[at] > numbers[at - 1]
            and seqs[at] == seqs[at - 1] + 1
            and (times[at] == NO_TIME) == (times[at - 1] == NO_TIME)
            and times[at] >= times[at - 1]
        )
        if not goes_on:
            yield start, at
            start = at
    yield start, len(numbers)


def _series(told: Sequence[_Told]) -> StepSeries:
    """Return every step line once, in the order of time where it is known, with how many steps it covers."""
    with_steps = [each for each in told if each.steps.numbers]
    if len(with_steps) == 1:
        one = with_steps[0]
        series = StepSeries(
            numbers=one.steps.numbers,
            times_ns=one.times,
            seconds=one.steps.seconds,
            tflops=one.steps.tflops,
            loss=one.steps.loss,
        )
    else:
        series = _joined(with_steps)
    series.covers = covers_of(series.numbers)
    return series


def _joined(told: Sequence[_Told]) -> StepSeries:
    rows = [(stream, at) for stream, each in enumerate(told) for at in range(len(each.times))]
    times = [told[stream].times[at] for stream, at in rows]
    if NO_TIME not in times:
        rows.sort(key=lambda row: told[row[0]].times[row[1]])
        times = [told[stream].times[at] for stream, at in rows]
    numbers = [told[stream].steps.numbers[at] for stream, at in rows]
    left_out = copies(numbers, times, [stream for stream, _ in rows])
    kept = [row for place, row in enumerate(rows) if place not in left_out]
    series = StepSeries()
    for stream, at in kept:
        each = told[stream]
        series.numbers.append(each.steps.numbers[at])
        series.times_ns.append(each.times[at])
        series.seconds.append(each.steps.seconds[at])
        series.tflops.append(each.steps.tflops[at])
        series.loss.append(each.steps.loss[at])
    return series


def _checkpoints(told: Sequence[_Told]) -> tuple[CheckpointRecord, ...]:
    """Return saves and loads in the order of time, copies from other streams left out."""
    found = [
        (fact, t_ns, stream)
        for stream, each in enumerate(told)
        for fact, t_ns, _ in each.facts
        if fact.kind in _RECORD_NAMES
    ]
    if all(t_ns is not None for _, t_ns, _ in found):
        found.sort(key=lambda each: each[1] or 0)
    records: list[CheckpointRecord] = []
    newest: dict[tuple[RecordName, int | None], tuple[int | None, int]] = {}
    for fact, t_ns, stream in found:
        name = _RECORD_NAMES[fact.kind]
        before = newest.get((name, fact.step))
        if before is not None and before[1] != stream and _is_near(before[0], t_ns):
            continue
        newest[name, fact.step] = (t_ns, stream)
        duration_s = fact.duration_s
        opened = newest.get((_STARTS[name], fact.step)) if name in _STARTS else None
        if duration_s is None and opened is not None and t_ns is not None:
            duration_s = None if opened[0] is None else (t_ns - opened[0]) / SECOND_NS
        records.append(
            CheckpointRecord(
                event=name,
                step=fact.step,
                time_ns=t_ns,
                duration_s=duration_s if duration_s is None or duration_s >= 0 else None,
            )
        )
    return tuple(records)


def _is_near(a: int | None, b: int | None) -> bool:
    return a is None or b is None or abs(a - b) <= _COPY_NS


def _final_failures(told: Sequence[_Told]) -> Failures:
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
    told: Sequence[_Told],
    *,
    by_profile: bool,
) -> int:
    """Return how many steps after each start averages leave out, as far as the log's format tells."""
    if by_profile:
        firsts = [each.steps.numbers[0] for each in told if each.steps.numbers]
        return max(marked) - min(firsts) + 1 if marked and firsts else 0
    return winner.warmup_steps if winner else 0
