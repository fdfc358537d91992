"""Pauses of the training loop inside an attempt: blocking saves and evaluations, and what saves made durable."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from pytest_cre.measure.events import TrainingEvent
from pytest_cre.measure.history import Attempt

Span = tuple[int, int]

_LONGEST_S = 1e9  # a line that tells of more is wrong


@dataclass(slots=True)
class _Pause:
    """A save or an evaluation. `released_ns` is when the loop went on, `durable_ns` when a save was safe.

    `is_end_lent`: the line of its end has no time of its own.
    """

    step: int
    started_ns: int
    released_ns: int | None = None
    durable_ns: int | None = None
    is_end_lent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """Of one attempt: disjoint spans in time order, and durable steps with the time they became so."""

    saves: tuple[Span, ...] = ()
    evals: tuple[Span, ...] = ()
    commits: tuple[tuple[int, int], ...] = ()  # time, step
    has_unconfirmed_save: bool = False

    @property
    def spans(self) -> tuple[Span, ...]:
        """Every pause, in time order."""
        return tuple(sorted((*self.saves, *self.evals)))


def pauses_of(
    attempt: Attempt, exit_ns: int, *, step_ns: float | None, has_commit_lines: bool
) -> Pauses:
    """Read the pauses of an attempt.

    A save blocks until its unblock line, without one until its commit line; ranks make one union.
    Where steps went on before the line that should have ended a pause, or no such line came, it ended
    one reference step (`step_ns`) before the next step line; with no further step it lasts until the exit.
    An evaluation of which only the end is told began when the step that it names was done. In a log whose saves are never confirmed, a save is durable once the next one starts, for that waits
    for it.
    """
    saves = _saves(attempt)
    if not has_commit_lines:
        for save, following in pairwise(saves):
            save.durable_ns = following.started_ns
    commits = sorted((s.durable_ns, s.step) for s in saves if s.durable_ns is not None)
    spans = _union(_span(attempt, save, exit_ns, step_ns) for save in saves)
    evals = _union(_span(attempt, pause, exit_ns, step_ns) for pause in _evals(attempt, step_ns))
    return Pauses(
        saves=spans,
        evals=_without(evals, spans),
        commits=tuple(commits),
        has_unconfirmed_save=has_commit_lines and any(s.durable_ns is None for s in saves),
    )


def _saves(attempt: Attempt) -> list[_Pause]:
    """Pair save lines by step: the earliest start, the latest end; a second save of a step is its own."""
    saves: list[_Pause] = []
    newest: dict[int, _Pause] = {}
    for event in attempt.saves:
        t_ns = event.t_ns or 0
        step = event.step
        if step is None:  # some frameworks do not name it: the save at hand, or the step just done
            starts = event.kind == "save_start" or not saves
            step = _last_step_at(attempt, t_ns) if starts else saves[-1].step
        save = newest.get(step)
        is_over = save is not None and (save.released_ns is not None or save.durable_ns is not None)
        if save is None or (event.kind == "save_start" and is_over):
            save = newest[step] = _Pause(step, t_ns - _lasted_ns(event))
            saves.append(save)
        is_lent = event.t_source == "inferred"
        if event.kind == "save_unblock" and not is_lent:
            save.released_ns = max(t_ns, save.released_ns or t_ns)
        elif event.kind == "save_commit":
            save.durable_ns = max(t_ns, save.durable_ns or t_ns)
        save.is_end_lent |= is_lent and event.kind != "save_start"
    return saves


def _evals(attempt: Attempt, step_ns: float | None) -> list[_Pause]:
    """Pair evaluation lines; copies of other ranks widen a pause, and at one instant an end comes first."""
    pauses: list[_Pause] = []
    for event in sorted(attempt.evals, key=lambda e: (e.t_ns or 0, e.kind == "eval_start")):
        t_ns = event.t_ns or 0
        step = _last_step_at(attempt, t_ns)
        is_open = bool(pauses) and pauses[-1].released_ns is None and not pauses[-1].is_end_lent
        if event.kind == "eval_start":
            if not (is_open and pauses[-1].step == step):
                pauses.append(_Pause(step, t_ns))
        elif event.duration_s is not None and not is_open:
            # A lent time is that of the line before: of its start.
            start_ns = t_ns if event.t_source == "inferred" else t_ns - _lasted_ns(event)
            pauses.append(_Pause(step, start_ns, start_ns + _lasted_ns(event)))
        elif pauses and pauses[-1].started_ns < t_ns and (is_open or pauses[-1].step == step):
            pauses[-1].released_ns = t_ns
        elif event.step is not None and (begun_ns := _done_ns(attempt, event, step_ns)) is not None:
            is_lent = event.t_source == "inferred"
            pauses.append(_Pause(step, begun_ns, None if is_lent else t_ns, is_end_lent=is_lent))
    return pauses


def _done_ns(attempt: Attempt, event: TrainingEvent, step_ns: float | None) -> int | None:
    """Return when the step that an event names was done: at its line, or by the pace after the one before."""
    numbers, times, t_ns = attempt.steps.numbers, attempt.steps.times_ns, event.t_ns or 0
    at = bisect_right(times, t_ns) - 1
    if at < 0:
        return None
    ahead = max(0, (event.step or 0) - numbers[at])
    return min(times[at] + round(ahead * (step_ns or 0)), t_ns)


def _span(attempt: Attempt, pause: _Pause, exit_ns: int, step_ns: float | None) -> Span:
    start, end = pause.started_ns, pause.released_ns
    if end is None and (next_step := _goes_on(attempt, pause)) is not None:
        t_ns, covered = next_step
        end = start if step_ns is None else max(start, t_ns - round(covered * step_ns))
    elif end is None:
        end = pause.durable_ns if pause.durable_ns is not None else exit_ns
    return start, max(start, min(end, exit_ns))


def _goes_on(attempt: Attempt, pause: _Pause) -> Span | None:
    """Return time and coverage of the first step line inside a pause that has no unblock line."""
    numbers, times = attempt.steps.numbers, attempt.steps.times_ns
    at = max(bisect_right(numbers, pause.step), bisect_right(times, pause.started_ns))
    if at == len(numbers):
        return None
    if not pause.is_end_lent and pause.durable_ns is not None and times[at] >= pause.durable_ns:
        return None
    return times[at], numbers[at] - (numbers[at - 1] if at else pause.step)


def _last_step_at(attempt: Attempt, t_ns: int) -> int:
    at = bisect_right(attempt.steps.times_ns, t_ns)
    return attempt.steps.numbers[at - 1] if at else attempt.loaded_step or 0


def _lasted_ns(event: TrainingEvent) -> int:
    """Return how long a line says that it lasted; a start line cannot say so about its past."""
    lasts = event.duration_s is not None and event.kind != "save_start"
    return round(min(event.duration_s or 0, _LONGEST_S) * 1e9) if lasts else 0


def _union(spans: Iterable[Span]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(span for span in merged if span[0] < span[1])


def _without(spans: tuple[Span, ...], taken: tuple[Span, ...]) -> tuple[Span, ...]:
    """Cut the disjoint spans `taken` out of `spans`."""
    left: list[Span] = []
    for start, end in spans:
        cursor = start
        for a, b in taken:
            if b <= cursor or a >= end:
                continue
            left.append((cursor, a))
            cursor = max(cursor, b)
        left.append((cursor, end))
    return tuple((a, b) for a, b in left if a < b)
