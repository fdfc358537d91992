"""Attempts settled: start, readiness, resume step and exit, from what was seen or by a named fallback."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isnan
from typing import Literal

from pytest_cre.measure.history import Attempt, History
from pytest_cre.measure.instants import SECOND_NS
from pytest_cre.measure.pauses import Pauses
from pytest_cre.measure.reference import Reference, print_interval

# open: it still runs at the end of the window; unseen: the last attempt, and nothing tells how it ended;
# unknown: an earlier attempt, and nothing tells how it ended.
ExitKind = Literal["abort", "end", "open", "unseen", "unknown"]

_LONGEST_NS = 2**61  # 73 years: more would not fit into a time

_REASONS: dict[ExitKind, str | None] = {"end": "succeeded", "open": None, "unseen": None}


@dataclass(slots=True, kw_only=True)
class Life:
    """One attempt, ready to be laid out in time.

    `base` is the step that its first segment starts from; `resumed` the step that later survival is cut at,
    None where it never told one. `ready_ns` is None where it never got ready. `load` is the span of the
    checkpoint load.
    """

    start_ns: int
    ready_ns: int | None
    load: tuple[int, int] | None
    base: int
    resumed: int | None
    numbers: "array[int]"
    times_ns: "array[int]"
    step_times_s: "array[float]"
    tflops: "array[float]"
    is_first_segment_warmup: bool
    pauses: Pauses = field(default_factory=Pauses)
    exit_ns: int
    exit: ExitKind
    reason: str | None = None

    @property
    def last_step(self) -> int:
        """Return the last step that it printed, or the one it began from."""
        return self.numbers[-1] if self.numbers else self.base

    @property
    def executed_steps(self) -> int:
        """Return how many steps its lines cover."""
        return self.last_step - self.base

    def lost_steps(self, limit: int) -> int:
        """Return how many of its steps did not survive where only steps up to `limit` do."""
        return self.last_step - min(max(limit, self.base), self.last_step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How to settle doubts: whether the Job succeeded (None: it still runs or nobody knows), and counting."""

    succeeded: bool | None
    counter_is_local: bool


def exit_of(
    attempt: Attempt, *, is_last: bool, closed_ns: int | None, rules: Rules
) -> tuple[int, ExitKind]:
    """Return when and how an attempt ended.

    Without exit evidence it is the last thing seen of it, and of the last attempt the end of the window.
    """
    last_step_ns = attempt.steps.times_ns[-1] if attempt.steps.times_ns else attempt.first_seen_ns
    if attempt.exit_ns is not None:
        ended: ExitKind = "end" if attempt.succeeded else "abort"
        exit_ns = max(attempt.exit_ns, last_step_ns)
    elif is_last and closed_ns is not None:
        ended, exit_ns = "open", max(closed_ns, last_step_ns)
    else:
        ended, exit_ns = ("unseen" if is_last else "unknown"), attempt.last_seen_ns
    if is_last and rules.succeeded is not None:
        ended = "end" if rules.succeeded else "abort"
    return exit_ns, ended


def settle(
    history: History,
    attempts: Sequence[Attempt],
    exits: Sequence[tuple[int, ExitKind]],
    pauses: Sequence[Pauses],
    *,
    rules: Rules,
    reference: Reference,
) -> list[Life]:
    """Settle attempts in order; each may rest on what the earlier ones made durable."""
    lives: list[Life] = []
    durable: set[int] = set()
    floor_ns: int | None = None
    for attempt, (exit_ns, ended), paused in zip(attempts, exits, pauses, strict=True):
        settler = _Settler(history, attempt, rules, reference, is_first=not lives)
        life = settler.life(durable, floor_ns, exit_ns, ended)
        life.pauses = _shifted(paused, settler.offset)
        lives.append(life)
        durable.update(step for _, step in life.pauses.commits)
        if life.resumed is not None:
            durable.add(life.resumed)
        floor_ns = life.exit_ns
    return lives


class _Settler:
    """The fallbacks for one attempt."""

    def __init__(
        self,
        history: History,
        attempt: Attempt,
        rules: Rules,
        reference: Reference,
        *,
        is_first: bool,
    ) -> None:
        self.history = history
        self.attempt = attempt
        self.reference = reference
        self.is_first = is_first
        loaded = attempt.loaded_step
        self.offset = loaded if rules.counter_is_local and loaded is not None else 0
        numbers = attempt.steps.numbers
        self.numbers = array("q", [n + self.offset for n in numbers]) if self.offset else numbers

    def life(self, durable: set[int], floor_ns: int | None, exit_ns: int, ended: ExitKind) -> Life:
        """Return the attempt settled; `floor_ns` is the exit before it."""
        attempt, times = self.attempt, self.attempt.steps.times_ns
        base, resumed = self._resume(durable)
        if self._lacks_first_steps(base):
            self.history.flags.add("start_unseen")
        known = self._earliest_seen()
        ready_ns = self._ready(base, known if known is not None else floor_ns)
        start_ns = known if known is not None else ready_ns
        if start_ns is None:
            start_ns = attempt.first_seen_ns
        if floor_ns is not None and start_ns < floor_ns:
            self.history.clamp(floor_ns - start_ns)
            start_ns = floor_ns
        exit_ns = max(exit_ns, start_ns)
        if ready_ns is not None:
            ready_ns = min(max(ready_ns, start_ns), exit_ns)
        if times and times[0] < start_ns:
            times = array("q", [max(t_ns, start_ns) for t_ns in times])
        return Life(
            start_ns=start_ns,
            ready_ns=ready_ns,
            load=self._load(start_ns, ready_ns),
            base=base,
            resumed=resumed,
            numbers=self.numbers,
            times_ns=times,
            step_times_s=attempt.steps.step_times_s,
            tflops=attempt.steps.tflops,
            is_first_segment_warmup=known is not None or base <= 0,  # some count steps from 0
            exit_ns=exit_ns,
            exit=ended,
            reason=attempt.reason or _REASONS.get(ended, "unknown"),
        )

    def _resume(self, durable: set[int]) -> tuple[int, int | None]:
        """Return the step before the first segment, and the resume step that counts for survival."""
        attempt, loaded = self.attempt, self.attempt.loaded_step
        if not self.numbers:
            return loaded or 0, loaded
        first = self.numbers[0]
        if loaded is not None and loaded <= first:
            # Where steps count from 0, the step that was loaded is the first one to be done.
            base = min(loaded, first - 1)
            return base, base
        if loaded is not None:
            # The counter is behind the step that was loaded: never guess an offset.
            self.history.flags.add("counter_restarted")
        base = min(max((step for step in durable if step < first), default=0), first - 1)
        if base <= 0 and self._starts_midway(first):
            base = first - (attempt.first_covers or self.reference.interval)
            self.history.flags.update(("resume_inferred", "starts_midway"))
            return base, base
        if not self.is_first:
            self.history.flags.add("resume_inferred" if base > 0 else "counter_restarted")
        elif first > self.reference.interval:
            self.history.flags.add("resume_inferred")
        return base, base

    def _starts_midway(self, first: int) -> bool:
        """Return whether the first steps cannot all have been done in this attempt.

        So it is where nothing tells of a start before a late first step, and where so many steps would
        not have fitted in, even at twice the pace.
        """
        if not self.is_first or first <= self.reference.interval:
            return False
        started_ns = self._earliest_seen()
        if started_ns is None:
            started_ns = self.history.opened_ns
        if started_ns is None:
            return True
        pace_ns = self.reference.step_ns or 0.0
        return first * pace_ns > 2 * (self.attempt.steps.times_ns[0] - started_ns)

    def _lacks_first_steps(self, base: int) -> bool:
        """Return whether there should be lines before the first one with a step."""
        if not self.numbers:
            return False
        covered = self.numbers[0] - base
        if covered <= (self.attempt.first_covers or self.reference.interval):
            return False
        # Profiles tell the interval at which lines are counted; they may be printed more rarely.
        rises = (after - before for before, after in pairwise(self.numbers[:2]))
        return covered > max((print_interval(self.history.attempts), *rises))

    def _earliest_seen(self) -> int | None:
        attempt = self.attempt
        seen = (
            attempt.start_ns,
            attempt.load_start_ns,
            attempt.load_end_ns,
            attempt.train_ready_ns,
        )
        return min((t_ns for t_ns in seen if t_ns is not None), default=None)

    def _ready(self, base: int, floor_ns: int | None) -> int | None:
        """Return when the loop was entered: told, else so long before the first line as its steps take."""
        attempt, steps = self.attempt, self.attempt.steps
        told = [t for t in (attempt.load_end_ns, attempt.train_ready_ns) if t is not None]
        if told:
            ready_ns = max(told)
            if steps.times_ns and ready_ns > steps.times_ns[0]:
                self.history.clamp(ready_ns - steps.times_ns[0])
                return steps.times_ns[0]
            return ready_ns
        if not steps.times_ns:
            return None
        printed_ns = steps.step_times_s[0] * SECOND_NS
        pace_ns = self.reference.step_ns or 0.0 if isnan(printed_ns) else printed_ns
        lasted_ns = min(round((self.numbers[0] - base) * pace_ns), _LONGEST_NS)
        ready_ns = steps.times_ns[0] - lasted_ns
        if floor_ns is None:
            floor_ns = self.history.opened_ns
        return ready_ns if floor_ns is None else max(ready_ns, floor_ns)

    def _load(self, start_ns: int, ready_ns: int | None) -> tuple[int, int] | None:
        begun, ended = self.attempt.load_start_ns, self.attempt.load_end_ns
        if begun is None or ready_ns is None:
            return None
        begun = min(max(begun, start_ns), ready_ns)
        return begun, min(max(ended if ended is not None else ready_ns, begun), ready_ns)


def _shifted(pauses: Pauses, offset: int) -> Pauses:
    """Count the steps of saves as the steps of the process are counted."""
    if not offset:
        return pauses
    return Pauses(
        saves=pauses.saves,
        evals=pauses.evals,
        commits=tuple((t_ns, step + offset) for t_ns, step in pauses.commits),
        has_unconfirmed_save=pauses.has_unconfirmed_save,
    )
