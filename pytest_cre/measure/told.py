"""One stream of a Job on its own clock."""

from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pytest_cre.measure.clocks import Clock, bursts, spread
from pytest_cre.measure.events import EventKind, TimeSource
from pytest_cre.measure.frameworks.dialect import Dialect
from pytest_cre.measure.frameworks.recorder import NO_TIME, Fact, Recorder
from pytest_cre.measure.sources import LeftOut
from pytest_cre.measure.training import FailureEpisode, TrainingReader


@dataclass(slots=True, kw_only=True)
class Told:
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

    def times_of(self, kinds: Collection[EventKind]) -> list[int | None]:
        """Return the times of the facts of some kinds, None where one is not known."""
        return [t_ns for fact, t_ns, _ in self.facts if fact.kind in kinds]

    def of_kind(self, *kinds: EventKind) -> list[tuple[int, int]]:
        """Return step and time of the facts of some kinds, where both are known."""
        return [
            (fact.step, t_ns)
            for fact, t_ns, _ in self.facts
            if fact.kind in kinds and fact.step is not None and t_ns is not None
        ]


def told_of(
    name: str,
    reader: TrainingReader,
    winner: type[Dialect] | None,
    *,
    by_profile: bool,
    flags: set[str],
    near_ns: int | None,
    of_all_ns: Sequence[int],
    without: LeftOut,
) -> Told:
    """Return what counts of a stream: the winner's steps, and the facts of it and its kin, in UTC."""
    clock = Clock(reader.recorders, near_ns=near_ns, of_all_ns=of_all_ns)
    flags |= clock.flags
    recorder = Recorder(reader.counter)
    facts: list[Fact] = []
    kin: list[Fact] = []
    done: list[Fact] = []
    for dialect in reader.dialects:
        if winner is not None and type(dialect) is winner:
            facts.extend(dialect.recorder.facts)
            if name not in without.counted_steps:
                recorder = dialect.recorder
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
        facts = [fact for fact in facts if fact.kind not in kinds]
        if name not in without.profile_facts:
            facts.extend(own.facts)
        if by_profile:
            recorder = Recorder(reader.counter) if name in without.profile_steps else own
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
    told = Told(
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
