"""Step and checkpoint records of all streams together, each once."""

from collections.abc import Mapping, Sequence

from pytest_cre.measure.clocks import copies
from pytest_cre.measure.events import EventKind
from pytest_cre.measure.frameworks.recorder import NO_TIME
from pytest_cre.measure.instants import SECOND_NS
from pytest_cre.measure.model import CheckpointRecord, RecordName
from pytest_cre.measure.series import StepSeries, covers_of, without_repeats
from pytest_cre.measure.told import Told

_COPY_NS = 60 * SECOND_NS
_STARTS: Mapping[RecordName, RecordName] = {"save_done": "save_start", "load_done": "load_start"}
_RECORD_NAMES: Mapping[EventKind, RecordName] = {
    "save_start": "save_start",
    "save_commit": "save_done",
    "load_start": "load_start",
    "load_end": "load_done",
}


def series_of(told: Sequence[Told]) -> StepSeries:
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
    series = without_repeats(series)
    series.covers = covers_of(series.numbers)
    return series


def _joined(told: Sequence[Told]) -> StepSeries:
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


def checkpoints_of(told: Sequence[Told]) -> tuple[CheckpointRecord, ...]:
    """Return saves and loads in the order of time, copies and lines that were read or printed twice left out."""
    found = [
        (fact, t_ns, stream)
        for stream, each in enumerate(told)
        for fact, t_ns, _ in each.facts
        if fact.kind in _RECORD_NAMES
    ]
    if all(t_ns is not None for _, t_ns, _ in found):
        found.sort(key=lambda each: each[1] or 0)
    records: list[CheckpointRecord] = []
    newest: dict[tuple[RecordName, int | None], tuple[int | None, int, int]] = {}
    for at, (fact, t_ns, stream) in enumerate(found):
        name = _RECORD_NAMES[fact.kind]
        before = newest.get((name, fact.step))
        opened = newest.get((_STARTS[name], fact.step)) if name in _STARTS else None
        if before is not None:
            is_copy = before[1] != stream and _is_near(before[0], t_ns)
            is_same = before[1] == stream and t_ns is not None and before[0] == t_ns
            is_again = opened is not None and opened[2] < before[2]  # it was over already
            if is_copy or is_same or is_again:
                continue
        newest[name, fact.step] = (t_ns, stream, at)
        duration_s = fact.duration_s
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
