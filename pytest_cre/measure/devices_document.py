"""The JSON form of what was measured of single GPUs, parts of `cre.measure/1`."""

from dataclasses import asdict

from pytest_cre.measure.model import DiagnosticMeasurement, GemmMeasurement, Measurement

Json = dict[str, object]


def devices_documents(measurement: Measurement) -> Json:
    """Return the parts that only documents of their own kind have."""
    parts: Json = {}
    if measurement.gemm is not None:
        parts["gemm"] = _gemm(measurement.gemm)
    if measurement.diagnostics is not None:
        parts["diagnostics"] = _diagnostics(measurement.diagnostics)
    return parts


def _gemm(measured: GemmMeasurement) -> Json:
    return {
        "rows": [asdict(row) for row in measured.rows],
        "gpus": [asdict(gpu) for gpu in measured.gpus],
        "gpus_planned": measured.gpus_planned,
        "min_tflops": measured.min_tflops,
        "spread": measured.spread,
        "failure": measured.failure,
        "tool_version": measured.tool_version,
    }


def _diagnostics(measured: DiagnosticMeasurement) -> Json:
    return {
        "results": [asdict(each) | {"messages": list(each.messages)} for each in measured.results],
        "gpus": [asdict(gpu) for gpu in measured.gpus],
        "gpus_planned": measured.gpus_planned,
        "failed_tests": len(measured.failed),
        "dcgm_version": measured.dcgm_version,
        "driver_version": measured.driver_version,
        "failure": measured.failure,
    }
