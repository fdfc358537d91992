"""The order of events: by corrected time, each stream in the order of its lines."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from operator import attrgetter, le

from pytest_cre.measure.events import BEGINNINGS, KIND_RANK, StepRun, TrainingEvent
from pytest_cre.measure.instants import SECOND_NS

Item = TrainingEvent | StepRun

# What may end one attempt or begin another: a run of steps is cut there.
_STRUCTURAL = frozenset((*BEGINNINGS, "abort", "end", "step"))


def first_ns(item: Item) -> int:
    """Return the time of an event, or of the first step of a run."""
    return item.times_ns[0] if isinstance(item, StepRun) else item.t_ns or 0


def in_order(
    events: Sequence[TrainingEvent], runs: Sequence[StepRun], closed_ns: int | None
) -> tuple[list[Item], list[int]]:
    """Sort timed events and runs of steps; return them, and how far each line was moved by a backward clock.

    Order is by time, then attempt, kind and stream; lines of one stream at the same instant, and of one whose
    clock went back, keep their order. A run stays whole where nothing falls between its steps that could
    end an attempt; otherwise it is cut there.
    """
    pieces, loose = _cut(events, runs, closed_ns)
    ordered, moved_ns = _ordered([*events, *loose])
    merged: list[Item] = [*ordered]
    if pieces:
        merged = sorted([*ordered, *pieces], key=_order)
    return _instants_in_order(merged), moved_ns


def _cut(
    events: Sequence[TrainingEvent], runs: Sequence[StepRun], closed_ns: int | None
) -> tuple[list[StepRun], list[TrainingEvent]]:
    """Cut runs so that no piece has anything of another stream between its steps; the rest becomes events."""
    pieces: list[StepRun] = []
    loose: list[TrainingEvent] = []
    marks = sorted(e.t_ns or 0 for e in events if e.kind in _STRUCTURAL)
    runs = sorted((run for run in runs if len(run)), key=first_ns)
    overlapping = _overlapping(runs)
    turned = _turned(runs)
    for at, run in enumerate(runs):
        begun, ended = run.times_ns[0], run.times_ns[-1]
        if at in overlapping or run.stream in turned:
            loose.extend(run)
            continue
        cuts = {0, len(run)}
        cuts.update(
            bisect_left(run.times_ns, mark)
            for mark in marks[bisect_left(marks, begun) : bisect_right(marks, ended)]
        )
        if closed_ns is not None and closed_ns < ended:
            cuts.add(bisect_right(run.times_ns, closed_ns))
        for first, end in pairwise(sorted(cuts)):
            part = run.part(first, end) if end - first < len(run) else run
            if closed_ns is not None and part.times_ns[0] > closed_ns:
                loose.extend(part)
            else:
                pieces.append(part)
    return pieces, loose


def _overlapping(runs: Sequence[StepRun]) -> set[int]:
    """Return the runs, sorted by their start, that share some time with another one."""
    found: set[int] = set()
    longest = 0  # the run that ends last of those so far
    for at in range(1, len(runs)):
        if runs[at].times_ns[0] <= runs[longest].times_ns[-1]:
            found.update((longest, at))
        if runs[at].times_ns[-1] > runs[longest].times_ns[-1]:
            longest = at
    return found


def _turned(runs: Sequence[StepRun]) -> set[str]:
    """Return the streams whose runs, sorted by their start, are not in the order of their lines."""
    newest: dict[str, int] = {}
    found: set[str] = set()
    for run in runs:
        if run.seq < newest.get(run.stream, 0):
            found.add(run.stream)
        newest[run.stream] = run.seq
    return found


def _ordered(events: list[TrainingEvent]) -> tuple[list[TrainingEvent], list[int]]:
    times = [event.t_ns or 0 for event in events]
    if not all(map(le, times, times[1:])) or any(a == b for a, b in pairwise(times)):
        events = sorted(events, key=_order)
    newest: dict[str, TrainingEvent] = {}
    torn: set[str] = set()
    for event in events:
        if event.seq and event.t_source != "api":
            before = newest.get(event.stream)
            if before is not None and event.seq < before.seq and event.t_ns != before.t_ns:
                torn.add(event.stream)
            newest[event.stream] = event
    torn -= {stream for stream in torn if _is_shuffled(events, stream)}
    if not torn:
        return events, []
    mended, moved_ns = _mended(events, torn)
    return sorted(mended, key=_order), moved_ns


def _is_shuffled(events: Sequence[TrainingEvent], stream: str) -> bool:
    """Return whether the lines of a stream lost their order, which their times still tell.

    So it is where steps fall back more often from line to line than they do in time.
    """
    steps = [event for event in events if event.kind == "step" and event.stream == stream]
    return _falls(steps) < _falls(sorted(steps, key=attrgetter("seq")))


def _falls(steps: Sequence[TrainingEvent]) -> int:
    """Count where the steps go back, lines that were read twice left out."""
    return sum(
        (after.step or 0) <= (before.step or 0)
        for before, after in pairwise(steps)
        if (after.step, after.t_ns) != (before.step, before.t_ns)
    )


def _mended(events: list[TrainingEvent], torn: set[str]) -> tuple[list[TrainingEvent], list[int]]:
    """Hold back the clock of each torn stream so that it never runs backwards.

    A time in whole seconds was cut, so up to a second of the way is not its clock's doing.
    """
    kept: list[TrainingEvent] = []
    held: list[TrainingEvent] = []
    for event in events:
        is_torn = event.stream in torn and event.seq and event.t_source != "api"
        (held if is_torn else kept).append(event)
    newest: dict[str, int] = {}
    moved_ns: list[int] = []
    for event in sorted(held, key=attrgetter("seq")):
        t_ns = event.t_ns or 0
        floor = newest.get(event.stream, t_ns)
        if t_ns < floor:
            cut_ns = 0 if t_ns % SECOND_NS else SECOND_NS
            moved_ns.append(max(0, floor - t_ns - cut_ns))
        newest[event.stream] = max(t_ns, floor)
        kept.append(event if t_ns >= floor else replace(event, t_ns=floor))
    return kept, moved_ns


def _order(item: Item) -> tuple[int, int, int, str, int]:
    attempt = -1 if item.attempt is None else item.attempt
    return (first_ns(item), attempt, _rank(item), item.stream, item.seq)


def _instants_in_order(items: list[Item]) -> list[Item]:
    """Keep the order of lines at one instant, and let what runs end before the next process starts then.

    The latter only where no attempt is named.
    """
    ordered: list[Item] = []
    is_running = False
    for _, instant in groupby(items, key=first_ns):
        group = list(instant)
        if len(group) > 1:
            group = _as_written(group)
            if is_running and any(_is(item, BEGINNINGS[:1]) for item in group):
                group.sort(key=lambda item: _is(item, BEGINNINGS))
        ordered.extend(group)
        for item in group:
            if not _is(item, ("window_open", "window_close", "gap")):
                is_running = not _is(item, ("abort", "end"))
    return ordered


def _as_written(group: list[Item]) -> list[Item]:
    """Sort what is of one instant by kind, but no line before one that stands above it in its stream."""
    highest: dict[str, int] = {}
    ranks: dict[int, int] = {}
    for item in sorted(group, key=attrgetter("seq")):
        rank = _rank(item)
        if item.seq and item.t_source != "api":
            rank = highest[item.stream] = max(rank, highest.get(item.stream, 0))
        ranks[id(item)] = rank
    return sorted(
        group,
        key=lambda item: (
            -1 if item.attempt is None else item.attempt,
            ranks[id(item)],
            item.stream,
            item.seq,
        ),
    )


def _rank(item: Item) -> int:
    return KIND_RANK["step" if isinstance(item, StepRun) else item.kind]


def _is(item: Item, kinds: tuple[str, ...]) -> bool:
    return isinstance(item, TrainingEvent) and item.attempt is None and item.kind in kinds
