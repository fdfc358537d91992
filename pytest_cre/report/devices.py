"""What was measured of single GPUs as text for a terminal."""

from collections.abc import Iterator

from pytest_cre.measure.model import DiagnosticMeasurement, DiagnosticResult, GemmMeasurement
from pytest_cre.report.table import tabulated
from pytest_cre.report.text import brief

ROWS_SHOWN = 200


def gemm_lines(measured: GemmMeasurement) -> Iterator[str]:
    """Yield the burn-in: a line per GPU, with its slowest sample."""
    if measured.failure:
        yield f"failure: {brief(measured.failure)}"
    shapes = {(row.dtype, row.m, row.n, row.k) for row in measured.rows}
    for dtype, m, n, k in sorted(shapes, key=str):
        sizes = " x ".join("?" if size is None else str(size) for size in (m, n, k))
        yield f"matrices: {brief(dtype) or 'type not told'}, m x n x k {sizes}"
    planned = "" if measured.gpus_planned is None else f" of {measured.gpus_planned}"
    yield f"GPUs: {len(measured.gpus)}{planned}, {len(measured.rows)} samples"
    if not measured.gpus:
        return
    yield from tabulated(
        ["pod", "GPU", "uuid", "samples", "slowest (TFLOP/s)", "wrong"],
        [
            [
                gpu.pod,
                str(gpu.gpu),
                gpu.uuid or "-",
                str(gpu.samples),
                "-" if gpu.tflops is None else f"{gpu.tflops:.4g}",
                "-" if gpu.wrong is None else str(gpu.wrong),
            ]
            for gpu in measured.gpus[:ROWS_SHOWN]
        ],
        left=[0, 2],
    )
    if measured.min_tflops is not None:
        yield f"slowest GPU {measured.min_tflops:.4g} TFLOP/s"
    if measured.spread is not None:
        yield f"which is {measured.spread * 100:.2f} % below the median GPU"


def diagnostic_lines(measured: DiagnosticMeasurement) -> Iterator[str]:
    """Yield the diagnostics: a line per test and outcome, with the GPUs and what was said."""
    if measured.failure:
        yield f"failure: {brief(measured.failure)}"
    planned = "" if measured.gpus_planned is None else f" of {measured.gpus_planned}"
    versions = [
        f"{name} {brief(version)}"
        for name, version in (
            ("DCGM", measured.dcgm_version),
            ("driver", measured.driver_version),
        )
        if version
    ]
    yield ", ".join([f"GPUs: {len(measured.gpus)}{planned}", *versions])
    if not measured.results:
        return
    outcomes: dict[tuple[str, str, str], list[DiagnosticResult]] = {}
    for each in measured.results:
        outcomes.setdefault((each.pod, each.test, each.status), []).append(each)
    yield from tabulated(
        ["pod", "test", "result", "where", "said"],
        [
            [pod, test, status, entities_words(found), "; ".join(found[0].messages) or "-"]
            for (pod, test, status), found in list(outcomes.items())[:ROWS_SHOWN]
        ],
        left=[0, 1, 2, 3, 4],
    )


def entities_words(results: list[DiagnosticResult]) -> str:
    """Return where results are: `GPU 0, 3`, or the names of other entities."""
    gpus = [str(each.gpu) for each in results if each.gpu is not None]
    others = [each.entity for each in results if each.gpu is None]
    return ", ".join([*([f"GPU {', '.join(gpus)}"] if gpus else []), *dict.fromkeys(others)])
