"""Events to attempts: one attempt is one life of the training processes.

An attempt begins with a process start or with other proof of a restart, never merely because a step number
repeats: copies of a line from other ranks repeat numbers too, and a crash right after a save repeats none.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from pytest_cre.measure.events import BEGINNINGS, SAVING, StepRun, TrainingEvent
from pytest_cre.measure.history import Attempt, History, greatest, least
from pytest_cre.measure.instants import SECOND_NS
from pytest_cre.measure.ordering import Item, in_order

_LOADING = frozenset(BEGINNINGS[1:])
_EVALUATING = frozenset(("eval_start", "eval_end"))


def history_of(events: Sequence[TrainingEvent | StepRun], tolerance_ns: int = SECOND_NS) -> History:
    """Sort events and split them into attempts.

    What comes up to `tolerance_ns` after the window's end keeps its time, because the API truncates
    times to whole seconds: moved to the end it would make the last steps look quick and all others slow.
    What comes later is dropped and counted.
    """
    history = History(tolerance_ns=tolerance_ns)
    runs = [event for event in events if isinstance(event, StepRun)]
    timed = _with_times(events, history)
    _read_window(timed, history)
    ordered, moved_ns = in_order(timed, runs, history.closed_ns)
    for distance_ns in moved_ns:
        history.clamp(distance_ns)
    _Splitter(history).split(ordered)
    return history


def _with_times(events: Sequence[TrainingEvent | StepRun], history: History) -> list[TrainingEvent]:
    """Keep events with a time; other lines take the time of the line before them in their stream.

    Where none has one, they take that of the first line that does. Steps without a time are only counted:
    a lent time would invent a duration.
    """
    singles = [event for event in events if isinstance(event, TrainingEvent)]
    if all(event.t_ns is not None for event in singles):
        return singles
    history.flags.add("no_timestamps")
    known: dict[str, list[Item]] = {}
    for event in sorted(events, key=attrgetter("seq")):
        if isinstance(event, StepRun) or (event.t_ns is not None and event.t_source != "api"):
            known.setdefault(event.stream, []).append(event)
    timed: list[TrainingEvent] = []
    for event in sorted(singles, key=attrgetter("stream", "seq")):
        if event.t_ns is not None:
            timed.append(event)
        elif event.kind == "step":
            history.untimed.append(event, 0)
        elif event.stream in known:
            t_ns = _lent_ns(known[event.stream], event.seq)
            timed.append(replace(event, t_ns=t_ns, t_source="inferred"))
    return timed


def _lent_ns(known: Sequence[Item], seq: int) -> int | None:
    """Return the time of the last of the lines, in their order, before the one with this number."""
    before = known[max(0, bisect_left(known, seq, key=attrgetter("seq")) - 1)]
    if isinstance(before, StepRun):
        return before.times_ns[min(max(0, seq - before.seq - 1), len(before) - 1)]
    return before.t_ns


def _read_window(events: list[TrainingEvent], history: History) -> None:
    for event in events:
        if event.kind == "window_open":
            history.opened_ns = least(history.opened_ns, event.t_ns)
        elif event.kind == "window_close":
            history.closed_ns = greatest(history.closed_ns, event.t_ns)
        elif event.kind == "gap" and event.t_ns is not None and event.until_ns is not None:
            history.gaps.append((event.t_ns, max(event.t_ns, event.until_ns)))
            history.flags.add("log_gap")
        if event.gpus is not None and event.t_ns is not None:
            history.gpus.append((event.t_ns, event.gpus))


class _Splitter:
    """The walk over ordered events, with the attempt it is in."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.tolerance_ns = history.tolerance_ns
        self.by_number: dict[int, Attempt] = {}
        self.ends: dict[str, int] = {}  # last time seen in each stream

    def split(self, items: list[Item]) -> None:
        """Put every event into its attempt."""
        for item in items:
            ended = item.times_ns[-1] if isinstance(item, StepRun) else item.t_ns
            self.ends[item.stream] = ended or 0
        for item in items:
            if isinstance(item, StepRun):
                self._run(item)
            else:
                self._event(item)
        for attempt in self.history.attempts:
            for late in attempt.pending:
                self.history.clamp((late.t_ns or 0) - attempt.steps.times_ns[0])
                attempt.load(late, attempt.steps.times_ns[0])

    def _run(self, run: StepRun) -> None:
        """Take the first step like any other; the rest follow it as a block if it was ahead."""
        events = iter(run.part(0, 1) if len(run) > 1 else run)
        self._event(next(events))
        if len(run) == 1:
            return
        attempt = self.history.attempts[-1]
        if run.attempt is not None:
            attempt = self.by_number.get(run.attempt, attempt)
        columns = attempt.steps
        is_ahead = bool(columns.numbers) and columns.numbers[-1] == run.numbers[0]
        if not is_ahead or (attempt.exit_ns is not None and run.attempt is None):
            for event in run.part(1, len(run)):
                self._event(event)
            return
        columns.numbers.extend(run.numbers[1:])
        columns.times_ns.extend(run.times_ns[1:])
        columns.step_times_s.extend(run.step_times_s[1:])
        columns.tflops.extend(run.tflops[1:])
        attempt.last_by_stream[run.stream] = run.numbers[-1]
        attempt.last_seen_ns = max(attempt.last_seen_ns, run.times_ns[-1])
        self._count(run.skipped, run.samples)

    def _event(self, event: TrainingEvent) -> None:
        closed, last = self.history.closed_ns, self.last
        if last is not None and event.kind == "step" and self._goes_on(event, last, closed):
            return
        if event.kind in ("window_open", "window_close", "gap"):
            return
        t_ns = event.t_ns or 0
        if closed is not None and t_ns >= closed + self.tolerance_ns:
            self.history.after_close += 1
            return
        attempt = self._attempt_of(event, t_ns, last)
        if event.kind == "step":
            attempt = self._step(event, t_ns, attempt)
        elif event.kind == "proc_start":
            attempt.start_ns = least(attempt.start_ns, t_ns)
            attempt.streams.add(event.stream)
        elif event.kind in _LOADING:
            if attempt.steps.numbers:
                attempt.pending.append(event)
                return
            attempt.load(event, t_ns)
        elif event.kind in SAVING:
            attempt.saves.append(event)
        elif event.kind in _EVALUATING:
            attempt.evals.append(event)
        else:
            self._exit(event, t_ns, attempt)
        attempt.last_seen_ns = max(attempt.last_seen_ns, t_ns)

    @property
    def last(self) -> Attempt | None:
        """Return the newest attempt."""
        return self.history.attempts[-1] if self.history.attempts else None

    def _goes_on(self, event: TrainingEvent, last: Attempt, closed: int | None) -> bool:
        """Take a step that is simply the next one; logs have a million of them."""
        columns, t_ns, step = last.steps, event.t_ns, event.step
        if not columns.numbers or t_ns is None or step is None or step <= columns.numbers[-1]:
            return False
        if last.exit_ns is not None or last.pending or (closed is not None and t_ns > closed):
            return False
        if event.attempt is not None and self.by_number.get(event.attempt) is not last:
            return False
        if t_ns < columns.times_ns[-1]:
            return False
        if event.skipped or event.samples is not None:
            self._count(event.skipped, event.samples)
        columns.append(event, t_ns)
        last.last_by_stream[event.stream] = step
        last.last_seen_ns = t_ns
        return True

    def _new(self, t_ns: int, number: int | None) -> Attempt:
        attempt = Attempt(first_seen_ns=t_ns, last_seen_ns=t_ns)
        self.history.attempts.append(attempt)
        if number is not None:
            self.by_number[number] = attempt
        return attempt

    def _attempt_of(self, event: TrainingEvent, t_ns: int, last: Attempt | None) -> Attempt:
        """Return the attempt that an event belongs to, a new one where it proves a restart."""
        number = event.attempt
        if number is not None:
            return self.by_number.get(number) or self._new(t_ns, number)
        if last is None:
            return self._new(t_ns, None)
        if event.kind == "proc_start":
            joins = not last.steps.numbers and last.start_ns is None
            joins = joins or (not last.has_progress and event.stream not in last.streams)
            is_again = t_ns == last.start_ns  # the same line, read twice
            joins = is_again or (joins and last.exit_ns is None)
            return last if joins else self._new(t_ns, None)
        if event.kind in ("abort", "end"):
            return self._leaving(event, t_ns, last)
        if event.kind in SAVING and self._is_by_a_clock_only(t_ns, last):
            return self.history.attempts[-2]
        if last.exit_ns is None or event.kind in SAVING or event.kind in _EVALUATING:
            return last
        late = event.kind == "step" and t_ns <= last.exit_ns + self.tolerance_ns
        late = late and (last.has_progress or last.train_ready_ns is not None)
        return last if late else self._new(t_ns, None)

    def _leaving(self, event: TrainingEvent, t_ns: int, last: Attempt) -> Attempt:
        """Return whose exit it is: of the attempt before, one may be seen only after the next start.

        So it is with several pods, and with clocks that differ a little.
        """
        if len(self.history.attempts) > 1 and not last.has_progress:
            before = self.history.attempts[-2]
            if event.stream in before.streams and event.stream not in last.streams:
                return before
            if before.exit_ns is None and self._is_by_a_clock_only(t_ns, last):
                return before
        return last

    def _is_by_a_clock_only(self, t_ns: int, last: Attempt) -> bool:
        """Return whether an event may be in the newest attempt only because clocks differ."""
        is_new = not last.has_progress and len(self.history.attempts) > 1
        return is_new and t_ns <= last.first_seen_ns + self.tolerance_ns

    def _exit(self, event: TrainingEvent, t_ns: int, attempt: Attempt) -> None:
        first = attempt.exit_ns is None
        attempt.exit_ns = greatest(attempt.exit_ns, t_ns)
        attempt.succeeded = event.kind == "end" and (first or attempt.succeeded)
        if event.kind == "abort" and attempt.reason is None:
            attempt.reason = event.reason

    def _step(self, event: TrainingEvent, t_ns: int, attempt: Attempt) -> Attempt:
        step, stream = event.step or 0, event.stream
        columns = attempt.steps
        ahead = not columns.numbers or step > columns.numbers[-1]
        if attempt.pending:
            same_stream = attempt.pending[-1].stream in attempt.last_by_stream
            if not ahead or same_stream:
                attempt = self._restarted(event, attempt)
                columns, ahead = attempt.steps, True
        if not ahead:
            newest = attempt.last_by_stream.get(stream, 0)
            if attempt.is_copy(step, t_ns) or (
                newest < step and self._others_go_on(attempt, event)
            ):
                attempt.last_by_stream[stream] = max(step, newest)
                self.history.copies += 1
                return attempt
            attempt = self._restarted(event, attempt)
            columns = attempt.steps
        if not columns.numbers:
            attempt.first_covers = event.covers
        columns.append(event, max(t_ns, columns.times_ns[-1]) if columns.times_ns else t_ns)
        attempt.last_by_stream[stream] = step
        self._count(event.skipped, event.samples)
        return attempt

    def _count(self, skipped: int | None, samples: int | None) -> None:
        if skipped:
            self.history.skipped_steps += skipped
            self.history.flags.add("skipped_steps")
        if samples is not None:
            self.history.samples = samples

    def _others_go_on(self, attempt: Attempt, event: TrainingEvent) -> bool:
        """Return whether a stream that printed steps of this attempt is still being written."""
        streams = attempt.last_by_stream.keys() - {event.stream}
        return any(self.ends[stream] >= (event.t_ns or 0) for stream in streams)

    def _restarted(self, event: TrainingEvent, attempt: Attempt) -> Attempt:
        """Open the attempt that a step or a load proves, without any process start."""
        seen_ns = attempt.pending[0].t_ns if attempt.pending else event.t_ns
        fresh = self._new(seen_ns or 0, event.attempt)
        for pending in attempt.pending:
            fresh.load(pending, pending.t_ns or 0)
        attempt.pending = []
        self.history.flags.add("implicit_restart")
        return fresh
