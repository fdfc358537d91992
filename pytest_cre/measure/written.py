"""Event sequences written by hand to measurements of the same form as logs give."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.events import BEGINNINGS, EventKind, TrainingEvent
from pytest_cre.measure.goodput import account
from pytest_cre.measure.instants import SECOND_NS
from pytest_cre.measure.model import CheckpointRecord, Measurement, RecordName, TrainingMeasurement
from pytest_cre.measure.reasons import status_of
from pytest_cre.measure.series import StepSeries, covers_of

_RECORDS: Mapping[EventKind, RecordName] = {
    "save_start": "save_start",
    "save_commit": "save_done",
    "load_start": "load_start",
    "load_end": "load_done",
}


def measure_events(events: Sequence[TrainingEvent], params: LedgerParams) -> Measurement:
    """Account for an event sequence; times are those of its own clock.

    It is whole: a sequence whose last attempt aborts is that of a Job that failed, closed then or later.
    """
    failed = _last_abort(events)
    if params.succeeded is None and failed is not None:
        params = replace(params, succeeded=False)
    accounted = account(events, params)
    steps = [event for event in events if event.kind == "step"]
    series = StepSeries(
        numbers=array("q", [event.step or 0 for event in steps]),
        times_ns=array("q", [event.t_ns or 0 for event in steps]),
        seconds=array("d", [float("nan")]) * len(steps),
        tflops=array("d", [float("nan")]) * len(steps),
        loss=array("d", [float("nan")]) * len(steps),
    )
    series.covers = covers_of(series.numbers)
    reasons = set()
    if not steps:
        reasons.add("no-steps")
    if params.succeeded is False:
        reasons.add("job-failed")
    if accounted.is_provisional:
        reasons.add("no-end")
    has_data = bool(steps) or accounted.ratios["ledger"] is not None
    return Measurement(
        kind="training",
        profile=None,
        status=status_of(reasons, has_data=has_data),
        reasons=tuple(sorted(reasons)),
        training=TrainingMeasurement(
            framework=None,
            steps=series,
            checkpoints=tuple(
                CheckpointRecord(
                    event=_RECORDS[event.kind],
                    step=event.step,
                    time_ns=event.t_ns,
                    duration_s=None,
                )
                for event in events
                if event.kind in _RECORDS
            ),
            attempts=len(accounted.attempts),
            failure=failed.reason if failed is not None and not params.succeeded else None,
            summary=accounted.summary,
            ledger_s={name: t_ns / SECOND_NS for name, t_ns in accounted.ledger_ns.items()},
            window_s=accounted.window_ns / SECOND_NS,
            ratios=accounted.ratios,
            flags=accounted.flags,
            reference_step_s=accounted.reference_step_s,
            gpu_hours=accounted.gpu_hours,
        ),
    )


def _last_abort(events: Sequence[TrainingEvent]) -> TrainingEvent | None:
    """Return the abort that nothing of an attempt came after, or None."""
    last: TrainingEvent | None = None
    for event in sorted(events, key=lambda e: (e.t_ns or 0, e.kind in BEGINNINGS)):
        if event.kind == "abort":
            last = event
        elif event.kind not in ("window_open", "window_close", "gap") and (
            last is None or event.kind in BEGINNINGS or event.t_ns != last.t_ns
        ):
            last = None
    return last
