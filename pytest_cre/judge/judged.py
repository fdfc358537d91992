"""The one number of a measurement that a limit judges, and whether it meets the limit."""

from typing import assert_never

from pytest_cre.catalog.limit import Limit
from pytest_cre.formats.cel import CelProblem, compile_predicate
from pytest_cre.judge.curve import algbw_by_size, largest_dip, latency_by_size, plateau
from pytest_cre.judge.figures import busbw_by_size, measured_metrics
from pytest_cre.measure.model import Measurement, TrainingMeasurement

# What starting costs is a matter of its own: it would eat any ratio of a short run.
STARTING = ("schedule", "reschedule", "init", "load", "warmup")


def judged_value(limit: Limit, measurement: Measurement) -> float | None:
    """Return what the limit judges, or None where it was not measured."""
    bandwidth, training = measurement.bandwidth, measurement.training
    match limit.metric:
        case "busbw" | "algbw" | "latency":
            if bandwidth is None:
                return None
            if limit.metric == "busbw":
                by_size = busbw_by_size(bandwidth)
            elif limit.metric == "algbw":
                by_size = algbw_by_size(bandwidth)
            else:
                by_size = latency_by_size(bandwidth)
            return _of_curve(limit, by_size)
        case "dip":
            dip = largest_dip(busbw_by_size(bandwidth)) if bandwidth is not None else None
            return dip[0] if dip is not None else None
        case "ledger_time" | "ledger_share":
            return _of_ledger(limit, training) if training is not None else None
        case _:
            return measured_metrics(measurement).get(limit.metric)


def is_met(limit: Limit, measured: float) -> bool:
    """Return whether a number meets the limit; one that equals `>=` or `<=` does.

    Raises `CelProblem` for an expression that has no answer.
    """
    if limit.value is None:
        return compile_predicate(limit.expression, ("value",)).holds({"value": measured})
    match limit.operator:
        case ">=":
            return measured >= limit.value
        case "<=":
            return measured <= limit.value
        case ">":
            return measured > limit.value
        case "<":
            return measured < limit.value
        case _:
            assert_never(limit.operator)


def margin_of(limit: Limit, measured: float) -> float | None:
    """Return the signed relative distance to the limit, positive when it is met; None for none."""
    if not limit.value:
        return None
    distance = measured / limit.value - 1
    return distance if limit.operator in (">=", ">") else -distance


def expression_problem(limit: Limit, measured: float) -> str | None:
    """Return why an expression has no answer for this number, or None where it has one."""
    try:
        is_met(limit, measured)
    except CelProblem as problem:
        return str(problem)
    return None


def _of_curve(limit: Limit, by_size: dict[int, float]) -> float | None:
    if limit.statistic == "at-size":
        return by_size.get(limit.size_bytes or 0)
    if limit.statistic == "plateau":
        return plateau(by_size)
    return max(by_size.values(), default=None)


def _of_ledger(limit: Limit, training: TrainingMeasurement) -> float | None:
    """Return seconds of a category, or its share.

    What starting costs is a share of the whole window, anything else of the window without that.
    """
    seconds = training.ledger_s.get(limit.category or "")
    if seconds is None or limit.metric == "ledger_time":
        return seconds
    window_s = training.window_s or 0.0
    if limit.category not in STARTING:
        window_s -= sum(training.ledger_s.get(name, 0.0) for name in STARTING)
    return seconds / window_s if window_s > 0 else None
