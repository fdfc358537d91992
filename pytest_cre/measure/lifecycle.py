"""GoodputMeasurement and BandwidthMeasurement as status documents: provisional while a Job runs, then frozen.

A status is bound to one Job UID. The first status computed after the Job's terminal time is the last
one: it is anchored to that time, not to any clock of the reader, so computing it again gives the same bytes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from pytest_cre.evidence.model import JobFacts
from pytest_cre.measure.account import LedgerParams, TrainingAccount
from pytest_cre.measure.events import StepRun, TrainingEvent
from pytest_cre.measure.goodput import account
from pytest_cre.measure.instants import SECOND_NS, rfc3339
from pytest_cre.measure.model import BandwidthMeasurement

Reason = Literal["JobRunning", "JobSucceeded", "JobFailed", "NoDataCollected", "LogsUnavailable"]

JOB_UID_ANNOTATION = "cre.pytest.org/job-uid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition of a status."""

    type: Literal["Measuring", "Complete"]
    is_true: bool
    reason: Reason
    since_ns: int | None

    def document(self) -> dict[str, str]:
        """Return it in the API's form."""
        written = {"type": self.type, "status": str(self.is_true), "reason": self.reason}
        if self.since_ns is not None:
            written["lastTransitionTime"] = rfc3339(self.since_ns)
        return written


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementStatus:
    """Status fields of either kind, and what they are bound to. Numbers are texts, as in the API."""

    kind: Literal["GoodputMeasurement", "BandwidthMeasurement"]
    job_uid: str
    fields: Mapping[str, object]
    conditions: tuple[Condition, ...]

    @property
    def is_complete(self) -> bool:
        """Return whether it will never change again."""
        return any(c.type == "Complete" and c.is_true for c in self.conditions)

    @property
    def reason(self) -> Reason:
        """Return why it is in its state."""
        return self.conditions[0].reason

    @property
    def is_judgeable(self) -> bool:
        """Return whether limits may be applied: complete, and with final results."""
        return self.is_complete and self.reason == "JobSucceeded"

    def document(self) -> dict[str, object]:
        """Return the status as the API would show it."""
        return {
            "kind": self.kind,
            "metadata": {"annotations": {JOB_UID_ANNOTATION: self.job_uid}},
            "status": {
                **{name: value for name, value in self.fields.items() if value is not None},
                "conditions": [condition.document() for condition in self.conditions],
            },
        }

    def text(self) -> str:
        """Return the document as JSON, always the same text for the same status."""
        return json.dumps(self.document(), indent=2, sort_keys=True) + "\n"


def goodput_status(
    job: JobFacts,
    events: Sequence[TrainingEvent | StepRun],
    params: LedgerParams,
    *,
    now_ns: int,
    logs_available: bool = True,
    previous: MeasurementStatus | None = None,
) -> MeasurementStatus:
    """Return the status of a training Job's goodput as known now.

    A complete `previous` status of the same Job is returned as it is; one of another Job is left alone.
    Without logs at the end, the figures of `previous` stand but are never judged.
    """
    if previous is not None and previous.job_uid == job.uid and previous.is_complete:
        return previous
    measured = measure_job(job, events, params, now_ns=now_ns)
    has_steps = measured.summary.step_records > 0
    fields: Mapping[str, object] = _goodput_fields(measured)
    if not logs_available:
        same = previous is not None and previous.job_uid == job.uid
        fields = previous.fields if same and previous is not None else {}
    return MeasurementStatus(
        kind="GoodputMeasurement",
        job_uid=job.uid,
        fields=_completed(fields, job),
        conditions=_conditions(
            job, has_data=has_steps, logs_available=logs_available, since_ns=measured.start_ns
        ),
    )


def bandwidth_status(
    job: JobFacts,
    measured: BandwidthMeasurement,
    *,
    logs_available: bool = True,
    previous: MeasurementStatus | None = None,
) -> MeasurementStatus:
    """Return the status of a benchmark Job's bandwidth, by the same rules as `goodput_status`."""
    if previous is not None and previous.job_uid == job.uid and previous.is_complete:
        return previous
    results = _results(measured)
    fields: Mapping[str, object] = {
        "results": results,
        "transport": sorted(measured.transport),
        "startTime": None if job.started_ns is None else rfc3339(job.started_ns),
    }
    if not logs_available:
        same = previous is not None and previous.job_uid == job.uid
        fields = previous.fields if same and previous is not None else {}
    return MeasurementStatus(
        kind="BandwidthMeasurement",
        job_uid=job.uid,
        fields=_completed(fields, job),
        conditions=_conditions(
            job, has_data=bool(results), logs_available=logs_available, since_ns=job.started_ns
        ),
    )


def measure_job(
    job: JobFacts,
    events: Sequence[TrainingEvent | StepRun],
    params: LedgerParams,
    *,
    now_ns: int,
) -> TrainingAccount:
    """Account for a Job: from when it was started until its terminal time, or until now while it runs."""
    bounds = []
    if job.started_ns is not None:
        bounds.append(TrainingEvent(kind="window_open", t_ns=job.started_ns, t_source="api"))
    end_ns = _anchor_ns(job)
    end_ns = now_ns if end_ns is None else end_ns
    bounds.append(TrainingEvent(kind="window_close", t_ns=end_ns, t_source="api"))
    outcome = {"succeeded": True, "failed": False, "none": None}[job.terminal]
    return account([*events, *bounds], replace(params, succeeded=outcome))


def _anchor_ns(job: JobFacts) -> int | None:
    return None if job.terminal == "none" else job.terminal_ns


def _conditions(
    job: JobFacts, *, has_data: bool, logs_available: bool, since_ns: int | None
) -> tuple[Condition, ...]:
    if job.terminal == "none":
        return (Condition(type="Measuring", is_true=True, reason="JobRunning", since_ns=since_ns),)
    reason: Reason = "JobSucceeded" if job.terminal == "succeeded" else "JobFailed"
    if not logs_available:
        reason = "LogsUnavailable"
    elif reason == "JobSucceeded" and not has_data:
        reason = "NoDataCollected"
    ended_ns = job.terminal_ns
    return (
        Condition(type="Complete", is_true=True, reason=reason, since_ns=ended_ns),
        Condition(type="Measuring", is_true=False, reason=reason, since_ns=ended_ns),
    )


def _completed(fields: Mapping[str, object], job: JobFacts) -> Mapping[str, object]:
    ended_ns = _anchor_ns(job)
    return fields if ended_ns is None else {**fields, "completionTime": rfc3339(ended_ns)}


def _goodput_fields(measured: TrainingAccount) -> dict[str, object]:
    """Return the seed's fields; without a step there is no result, whatever the time says."""
    if measured.summary.step_records == 0:
        return {"interruptionCount": measured.interruptions}
    return {
        "result": _number(measured.ratios["goodput"]),
        "startTime": None if measured.start_ns is None else rfc3339(measured.start_ns),
        "currentStep": measured.summary.last_step,
        "highestStep": measured.summary.highest_step,
        "lastCheckpointStep": measured.durable_step or None,
        "trainingTimeSec": _seconds(measured.terms.t_w),
        "lostWorkTimeSec": _seconds(measured.terms.t_ch),
        "rescheduleTimeSec": _seconds(measured.terms.t_re),
        "resumeTimeSec": _seconds(measured.terms.t_rm),
        "checkpointSaveTimeSec": _seconds(measured.terms.t_save),
        "interruptionCount": measured.interruptions,
        "avgStepTimeSec": _number(measured.summary.avg_step_time_s),
        "avgTFLOPSPerGPU": _number(measured.summary.avg_tflops_per_gpu),
    }


def _results(measured: BandwidthMeasurement) -> list[dict[str, object]]:
    """Return the out-of-place averages of each size in ascending order, rounded once, at the end."""
    by_size: dict[int, list[tuple[float, float]]] = {}
    for table in measured.tables:
        for row in table.rows:
            half = row.out_of_place
            if half is not None and half.algbw_gbs is not None and half.busbw_gbs is not None:
                by_size.setdefault(row.size_bytes, []).append((half.algbw_gbs, half.busbw_gbs))
    return [
        {
            "sizeBytes": size,
            "algBW": f"{fmean(alg for alg, _ in seen):.2f}",
            "busBW": f"{fmean(bus for _, bus in seen):.2f}",
            "samples": len(seen),
        }
        for size, seen in sorted(by_size.items())
    ]


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.6f}"


def _seconds(lasted_ns: int) -> str:
    whole, rest_ns = divmod(lasted_ns, SECOND_NS)
    return f"{whole}.{rest_ns // 1000:06d}"
