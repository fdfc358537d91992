"""Figures over all printed lines of a run, and what its saves and restarts cost."""

from array import array
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isnan
from statistics import fmean, median

from pytest_cre.measure.account import Checkpointing
from pytest_cre.measure.history import History
from pytest_cre.measure.instants import SECOND_NS
from pytest_cre.measure.lives import Life
from pytest_cre.measure.model import TrainingSummary


def summary_of(history: History, lives: Sequence[Life], warmup_steps: int) -> TrainingSummary:
    """Sum up the printed lines; averages are over the lines of every attempt, warm-up left out."""
    step_times = array("d")
    tflops = array("d")
    paces: list[float] = []
    left_out = 0
    for life in lives:
        warm = 0
        if life.is_first_segment_warmup and life.numbers:
            until = life.numbers[0] + max(warmup_steps, 1)
            warm = next((at for at, n in enumerate(life.numbers) if n >= until), len(life.numbers))
        left_out += warm
        step_times.extend(_printed(life.step_times_s[warm:]))
        tflops.extend(_printed(life.tflops[warm:]))
        if not step_times:
            paces.extend(_paces(life, warm))
    printed = [n for life in lives for n in (life.numbers[:1] + life.numbers[-1:])]
    untimed = history.untimed
    step_times.extend(_printed(untimed.step_times_s))
    tflops.extend(_printed(untimed.tflops))
    printed.extend(untimed.numbers)
    times = step_times or paces
    return TrainingSummary(
        first_step=printed[0] if printed else None,
        last_step=printed[-1] if printed else None,
        highest_step=max(printed, default=None),
        step_records=sum(len(life.numbers) for life in lives) + len(untimed.numbers),
        avg_step_time_s=fmean(times) if times else None,
        avg_tflops_per_gpu=fmean(tflops) if tflops else None,
        interruptions=sum(life.exit in ("abort", "unknown") for life in lives),
        warmup_records=left_out,
    )


def _printed(values: "array[float]") -> "array[float] | list[float]":
    """Return the values that were printed, which are above 0."""
    if values and not isnan(sum(values)) and min(values) > 0:
        return values
    return [value for value in values if value > 0]


def checkpointing_of(
    lives: Sequence[Life], ledger_ns: Mapping[str, int], interruptions: int
) -> Checkpointing:
    """Return what saves and restarts cost on average."""
    starts = [[start for start, _ in life.pauses.saves] for life in lives]
    between = [b - a for times in starts for a, b in pairwise(times)]
    saves = sum(map(len, starts))
    restarted = [life.ready_ns - life.start_ns for life in lives[1:] if life.ready_ns is not None]
    restart_ns = ledger_ns["reschedule"] + sum(restarted)
    blocking_ns = ledger_ns["checkpoint_blocking"]
    return Checkpointing(
        saves=saves,
        mean_blocking_s=blocking_ns / saves / SECOND_NS if saves else None,
        interval_s=median(between) / SECOND_NS if between else None,
        mean_restart_s=restart_ns / interruptions / SECOND_NS if interruptions else None,
    )


def _paces(life: Life, warm: int) -> list[float]:
    """Return seconds per step between lines, pauses taken out, for logs that print no step time."""
    paces = []
    spans = life.pauses.spans
    for at in range(max(warm, 1), len(life.numbers)):
        since, until = life.times_ns[at - 1], life.times_ns[at]
        paused = sum(max(0, min(end, until) - max(start, since)) for start, end in spans)
        covered = life.numbers[at] - life.numbers[at - 1]
        if until - since > paused:
            paces.append((until - since - paused) / covered / SECOND_NS)
    return paces
