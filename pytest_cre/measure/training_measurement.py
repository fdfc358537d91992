"""What the streams of a Job told of training to a measurement."""

from dataclasses import replace

from pytest_cre.catalog.logprofile import LogProfile
from pytest_cre.measure.account import TrainingAccount
from pytest_cre.measure.advice import advice_of
from pytest_cre.measure.events import StepRun, TrainingEvent
from pytest_cre.measure.goodput import account
from pytest_cre.measure.instants import SECOND_NS
from pytest_cre.measure.merge import Merged
from pytest_cre.measure.model import Measurement, TrainingMeasurement
from pytest_cre.measure.reasons import NO_DATA, status_of
from pytest_cre.measure.surroundings import Surroundings


def measure_training(
    merged: Merged, around: Surroundings, profile: LogProfile | None
) -> Measurement:
    """Account for a run as the streams told it."""
    params = replace(
        around.params,
        succeeded=around.succeeded,
        log_interval=around.params.log_interval
        or (profile.log_interval if profile else None)
        or None,
        warmup_steps=max(
            around.params.warmup_steps, profile.warmup_steps if profile else 0, merged.warmup_steps
        ),
    )
    events: list[TrainingEvent | StepRun] = [*merged.events, *around.events]
    for kind, t_ns in (
        ("window_open", around.window_start_ns),
        ("window_close", around.window_end_ns),
    ):
        if t_ns is not None:
            events.append(
                TrainingEvent(
                    kind="window_open" if kind == "window_open" else "window_close",
                    t_ns=t_ns,
                    t_source="api",
                )
            )
    accounted = account(events, params)
    worst = merged.failures.worst if around.succeeded is not True else None
    reasons = set(around.reasons)
    if worst is not None:
        reasons.add("failure")
    if accounted.is_provisional and worst is None:
        reasons.add("no-end")
    has_steps = len(merged.steps) > 0
    if not has_steps:
        reasons.add("no-steps")
    flags = merged.flags | set(accounted.flags)
    if "log-gap" in reasons:
        flags.add("log_gap")
    has_window = accounted.ratios["ledger"] is not None
    has_data = has_steps or has_window
    if not has_data:
        reasons.add(NO_DATA)
    return Measurement(
        kind="training",
        profile=profile.name if profile else merged.profile,
        status=status_of(reasons, has_data=has_data),
        reasons=tuple(sorted(reasons)),
        training=_training_of(merged, accounted, worst.text if worst else None, flags),
    )


def _training_of(
    merged: Merged, accounted: TrainingAccount, failure: str | None, flags: set[str]
) -> TrainingMeasurement:
    advice = advice_of(accounted)
    return TrainingMeasurement(
        framework=merged.framework,
        steps=merged.steps,
        checkpoints=merged.checkpoints,
        attempts=max(len(accounted.attempts), int(len(merged.steps) > 0)),
        failure=failure,
        summary=accounted.summary,
        ledger_s={name: t_ns / SECOND_NS for name, t_ns in accounted.ledger_ns.items()},
        window_s=accounted.window_ns / SECOND_NS,
        ratios=accounted.ratios,
        flags=tuple(sorted(flags)),
        skews_s=merged.skews_s,
        reference_step_s=accounted.reference_step_s,
        gpu_hours=accounted.gpu_hours,
        durable_step=accounted.durable_step,
        advice=advice.line() if advice else None,
    )
