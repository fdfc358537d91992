"""The JSON form of a measurement, `cre.measure/1`. Numbers are numbers, what is absent is null."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from json import dumps
from math import isfinite

from pytest_cre.measure.devices_document import devices_documents
from pytest_cre.measure.instants import rfc3339
from pytest_cre.measure.model import (
    LEDGER_CATEGORIES,
    RATIOS,
    BandwidthMeasurement,
    BandwidthRow,
    BandwidthTable,
    CheckpointRecord,
    HalfRow,
    Measurement,
    StepRecord,
    TrainingMeasurement,
)

SCHEMA = "cre.measure/1"
_STEPS_MARK = "\x00steps\x00"


def to_document(measurement: Measurement) -> dict[str, object]:
    """Return the whole document as plain data."""
    return _document(measurement, lambda steps: [_step(step) for step in steps])


def document_text(measurement: Measurement) -> Iterator[str]:
    """Yield the document as JSON text in pieces, so that a million steps need no memory of their own."""
    text = dumps(_document(measurement, lambda _: _STEPS_MARK), allow_nan=False)
    head, mark, tail = text.partition(dumps(_STEPS_MARK))
    yield head
    if mark and measurement.training is not None:
        yield "["
        separator = ""
        steps = measurement.training.steps
        for at in range(0, len(steps), 1000):
            part = ", ".join(dumps(_step(step), allow_nan=False) for step in steps[at : at + 1000])
            yield separator + part
            separator = ", "
        yield "]"
    yield tail + "\n"


def _document(
    measurement: Measurement, steps: Callable[[Sequence[StepRecord]], object]
) -> dict[str, object]:
    dropped = measurement.dropped
    bandwidth, training = measurement.bandwidth, measurement.training
    return {
        "schema": SCHEMA,
        "inputs": [
            {"path": each.path, "bytes": each.size_bytes, "sha256": each.sha256}
            for each in measurement.inputs
        ],
        "kind": measurement.kind,
        "profile": measurement.profile,
        "status": measurement.status,
        "reasons": list(measurement.reasons),
        "bandwidth": _bandwidth(bandwidth) if bandwidth is not None else None,
        "training": _training(training, steps) if training is not None else None,
        **devices_documents(measurement),
        "dropped": {
            "lines_too_long": dropped.lines_too_long,
            "undecodable_bytes": dropped.undecodable_bytes,
            "unmatched_lines": dropped.unmatched_lines,
        },
    }


def _bandwidth(bandwidth: BandwidthMeasurement) -> dict[str, object]:
    return {
        "tables": [_table(table) for table in bandwidth.tables],
        "max_busbw_gbs": {
            "out_of_place": _number(bandwidth.max_out_of_place_gbs),
            "in_place": _number(bandwidth.max_in_place_gbs),
        },
        "transport": list(bandwidth.transport),
        "paths": list(bandwidth.paths),
        "failure": bandwidth.failure,
    }


def _table(table: BandwidthTable) -> dict[str, object]:
    bounds = table.out_of_bounds
    return {
        "test": table.test,
        "rows": [_row(row) for row in table.rows],
        "avg_busbw_gbs": _number(table.avg_busbw_gbs),
        "out_of_bounds": {"count": bounds.count, "ok": bounds.is_ok} if bounds else None,
        "complete": table.is_complete,
        "ranks": table.ranks,
        "nccl_version": table.nccl_version,
        "tool_version": table.tool_version,
    }


def _row(row: BandwidthRow) -> dict[str, object]:
    return {
        "size_bytes": row.size_bytes,
        "count": row.count,
        "dtype": row.dtype,
        "redop": row.redop,
        "root": row.root,
        "out_of_place": _half(row.out_of_place),
        "in_place": _half(row.in_place),
    }


def _half(half: HalfRow | None) -> dict[str, object] | None:
    if half is None:
        return None
    return {
        "time_us": _number(half.time_us),
        "algbw_gbs": _number(half.algbw_gbs),
        "busbw_gbs": _number(half.busbw_gbs),
        "wrong": half.wrong,
    }


def _training(
    training: TrainingMeasurement, steps: Callable[[Sequence[StepRecord]], object]
) -> dict[str, object]:
    summary = training.summary
    return {
        "framework": training.framework,
        "steps": steps(training.steps),
        "checkpoints": [_checkpoint(each) for each in training.checkpoints],
        "attempts": training.attempts,
        "failure": training.failure,
        "summary": {
            "first_step": summary.first_step,
            "last_step": summary.last_step,
            "highest_step": summary.highest_step,
            "step_records": summary.step_records,
            "avg_step_time_s": _number(summary.avg_step_time_s),
            "avg_tflops_per_gpu": _number(summary.avg_tflops_per_gpu),
            "interruptions": summary.interruptions,
            "warmup_records": summary.warmup_records,
        },
        "ledger_s": _numbers(training.ledger_s, LEDGER_CATEGORIES),
        "window_s": _number(training.window_s),
        "ratios": _numbers(training.ratios, RATIOS),
        "flags": list(training.flags),
        "skews_s": _numbers(training.skews_s, sorted(training.skews_s)),
        "reference_step_s": _number(training.reference_step_s),
        "gpu_hours": _numbers(training.gpu_hours, LEDGER_CATEGORIES)
        if training.gpu_hours is not None
        else None,
        "advice": training.advice,
    }


def _step(step: StepRecord) -> dict[str, object]:
    return {
        "step": step.step,
        "time": _time(step.time_ns),
        "step_time_s": _number(step.step_time_s),
        "tflops_per_gpu": _number(step.tflops_per_gpu),
        "loss": _number(step.loss),
        "covers": step.covers,
    }


def _checkpoint(record: CheckpointRecord) -> dict[str, object]:
    return {
        "event": record.event,
        "step": record.step,
        "time": _time(record.time_ns),
        "duration_s": _number(record.duration_s),
    }


def _numbers(
    values: Mapping[str, float | None] | Mapping[str, float], names: Sequence[str]
) -> dict[str, float | None]:
    return {name: _number(values.get(name)) for name in names}


def _number(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _time(t_ns: int | None) -> str | None:
    if t_ns is None:
        return None
    try:
        return rfc3339(t_ns)
    except (OverflowError, ValueError, OSError):
        return None  # beyond the year 9999
