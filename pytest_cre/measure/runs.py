"""What a stream told, as events and runs of steps."""

from array import array
from collections.abc import Iterator

from pytest_cre.measure.events import StepRun, TrainingEvent
from pytest_cre.measure.frameworks.recorder import NO_TIME
from pytest_cre.measure.series import StepSeries, never_falls, rises
from pytest_cre.measure.told import Told


def events_of(told: Told) -> Iterator[TrainingEvent | StepRun]:
    """Yield a stream's steps as runs, then its facts, failures and end as events."""
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


def _runs(told: Told) -> Iterator[TrainingEvent | StepRun]:
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
        seqs[-1] - seqs[0] == len(seqs) - 1
        and rises(numbers)
        and times[0] != NO_TIME  # which is below all others
        and never_falls(times)
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
