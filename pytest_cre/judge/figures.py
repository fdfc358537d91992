"""Every figure of a measurement, by name, with its unit."""

import math
from collections.abc import Iterable, Mapping
from typing import TypeGuard

from pytest_cre.catalog.limit import Metric
from pytest_cre.judge.devices import DEVICE_UNITS, diagnostic_figures, gemm_figures
from pytest_cre.measure.model import (
    LEDGER_CATEGORIES,
    BandwidthMeasurement,
    BandwidthRow,
    Measurement,
    TrainingMeasurement,
)

FIGURE_UNITS: Mapping[str, str] = {
    "busbw_max": "GB/s",
    "busbw_max_out_of_place": "GB/s",
    "busbw_max_in_place": "GB/s",
    "busbw_average": "GB/s",
    "ranks": "count",
    "wrong_elements": "count",
    "goodput": "ratio",
    "goodput_ledger": "ratio",
    "goodput_runtime": "ratio",
    "goodput_strict_durable": "ratio",
    "throughput_fraction": "ratio",
    "step_time": "s",
    "tflops_per_gpu": "TFLOP/s",
    "highest_step": "count",
    "interruptions": "count",
    "window": "s",
    **{f"ledger_{category}": "s" for category in LEDGER_CATEGORIES},
    **DEVICE_UNITS,
}


def figure_unit(name: str) -> str:
    """Return the unit of a figure; what stands after a dot names the part that it is of."""
    return FIGURE_UNITS.get(name.partition(".")[0], "")


def row_busbw_gbs(row: BandwidthRow) -> float | None:
    """Return the judged bus bandwidth of a row: the smaller of its halves, or the only one."""
    halves = [half.busbw_gbs for half in (row.out_of_place, row.in_place) if half is not None]
    return min(_finite(halves), default=None)


def busbw_by_size(bandwidth: BandwidthMeasurement) -> dict[int, float]:
    """Return the judged bus bandwidth in GB/s by message size, ascending.

    Where a size was measured several times, its slowest row counts.
    """
    found: dict[int, float] = {}
    for row in (row for table in bandwidth.tables for row in table.rows):
        value = row_busbw_gbs(row)
        if value is not None:
            found[row.size_bytes] = min(value, found.get(row.size_bytes, value))
    return dict(sorted(found.items()))


def whole_sizes(measurement: Measurement) -> frozenset[int] | None:
    """Return the message sizes of a whole table, or None where a table is not whole or not one."""
    tables = measurement.bandwidth.tables if measurement.bandwidth is not None else ()
    if len(tables) != 1 or not tables[0].is_complete or not tables[0].rows:
        return None
    return frozenset(row.size_bytes for row in tables[0].rows)


def measured_metrics(measurement: Measurement) -> dict[Metric, float]:
    """Return the judged number of each metric that was measured; bus bandwidth: its maximum."""
    found: dict[Metric, float | None] = {}
    if measurement.bandwidth is not None:
        found["busbw"] = max(busbw_by_size(measurement.bandwidth).values(), default=None)
    if measurement.training is not None:
        found["goodput"] = measurement.training.ratios.get("goodput")
        found["step_time"] = measurement.training.summary.avg_step_time_s
        found["tflops_per_gpu"] = measurement.training.summary.avg_tflops_per_gpu
    if measurement.gemm is not None:
        found["gemm_tflops"] = measurement.gemm.min_tflops
        found["gemm_spread"] = measurement.gemm.spread
    if measurement.diagnostics is not None and measurement.diagnostics.results:
        found["dcgm_failed_tests"] = len(measurement.diagnostics.failed)
    return {name: value for name, value in found.items() if _is_number(value)}


def figures_of(measurement: Measurement) -> dict[str, float]:
    """Return every figure that has a value, by the names of `FIGURE_UNITS`, in their order.

    Figures of single GPUs, such as `gemm_tflops.gpu-3`, come after the one that they are parts of.
    """
    found: dict[str, float | None] = {}
    if measurement.bandwidth is not None:
        found |= _bandwidth_figures(measurement.bandwidth)
    if measurement.training is not None:
        found |= _training_figures(measurement.training)
    if measurement.gemm is not None:
        found |= gemm_figures(measurement.gemm)
    if measurement.diagnostics is not None:
        found |= diagnostic_figures(measurement.diagnostics)
    order = list(FIGURE_UNITS)
    names = sorted(found, key=lambda name: order.index(name.partition(".")[0]))
    return {name: value for name in names if _is_number(value := found[name])}


def _bandwidth_figures(bandwidth: BandwidthMeasurement) -> dict[str, float | None]:
    tables = bandwidth.tables
    wrong = [
        half.wrong
        for table in tables
        for row in table.rows
        for half in (row.out_of_place, row.in_place)
        if half is not None and half.wrong is not None
    ]
    return {
        "busbw_max": max(busbw_by_size(bandwidth).values(), default=None),
        "busbw_max_out_of_place": bandwidth.max_out_of_place_gbs,
        "busbw_max_in_place": bandwidth.max_in_place_gbs,
        "busbw_average": tables[0].avg_busbw_gbs if len(tables) == 1 else None,
        "ranks": tables[0].ranks if len(tables) == 1 else None,
        "wrong_elements": sum(wrong) if wrong else None,
    }


def _training_figures(training: TrainingMeasurement) -> dict[str, float | None]:
    ratios, summary = training.ratios, training.summary
    return {
        "goodput": ratios.get("goodput"),
        "goodput_ledger": ratios.get("ledger"),
        "goodput_runtime": ratios.get("runtime"),
        "goodput_strict_durable": ratios.get("strict_durable"),
        "throughput_fraction": ratios.get("throughput_fraction"),
        "step_time": summary.avg_step_time_s,
        "tflops_per_gpu": summary.avg_tflops_per_gpu,
        "highest_step": summary.highest_step,
        "interruptions": summary.interruptions,
        "window": training.window_s,
        **{f"ledger_{name}": training.ledger_s.get(name) for name in LEDGER_CATEGORIES},
    }


def _finite(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if _is_number(value)]


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
