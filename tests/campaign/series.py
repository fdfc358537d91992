"""Many schedules, some at a time, and a table of what they brought."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tests.campaign.clusters import Clusters
from tests.campaign.kinds import KINDS
from tests.campaign.mutations import without
from tests.campaign.playing import Outcome, play
from tests.campaign.schedules import draw_schedule


@dataclass(frozen=True)
class Series:
    """The outcomes, in the order of their numbers."""

    outcomes: Sequence[Outcome]
    took_s: float

    @property
    def broken(self) -> list[str]:
        """Return every rule that was broken."""
        return [f"{_name(each)}: {words}" for each in self.outcomes for words in each.broken]

    @property
    def fired(self) -> Counter[str]:
        """Return how often each kind of fault came."""
        total = Counter(dict.fromkeys(KINDS, 0))
        for each in self.outcomes:
            total.update(each.fired)
        return total

    @property
    def silent(self) -> list[str]:
        """Return the kinds that never came."""
        return [name for name, count in self.fired.items() if not count]


def play_series(
    numbers: range,
    *,
    seed: int,
    workers: int,
    folder: Path,
    tell: Callable[[str], None] = lambda _: None,
) -> Series:
    """Play these schedules; `tell` is given a line for each one, as it ends."""
    began_s = time.monotonic()
    with without(), Clusters() as clusters, ThreadPoolExecutor(workers) as pool:
        jobs = [
            pool.submit(play, clusters, draw_schedule(seed, number), folder / str(number))
            for number in numbers
        ]
        for job in as_completed(jobs):
            tell(_line(job.result()))
        outcomes = [job.result() for job in jobs]
    return Series(outcomes, time.monotonic() - began_s)


def report_lines(series: Series) -> Iterator[str]:
    """Yield what a person wants to see."""
    for name, count in sorted(series.fired.items()):
        yield f"{name:>24} {count:6}"
    codes = Counter(each.code for each in series.outcomes)
    yield ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
    longest_s = max((each.took_s for each in series.outcomes), default=0.0)
    yield f"{len(series.outcomes)} schedules in {series.took_s:.0f} s, the longest {longest_s:.1f} s"
    yield from series.broken


def _line(outcome: Outcome) -> str:
    first = (outcome.text.strip().splitlines() or [""])[0]
    broken = "".join(f"  BROKEN: {words}" for words in outcome.broken)
    return f"{_name(outcome)}  {outcome.took_s:5.1f} s  {outcome.code:12}  {first[:150]}{broken}"


def _name(outcome: Outcome) -> str:
    schedule = outcome.schedule
    words = " ".join(schedule.kinds)
    return f"#{schedule.number} {schedule.entry}@{schedule.scale} [{words}]"
