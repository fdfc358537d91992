"""What measurements of single GPUs say: figures by name, and what is wrong with which GPU."""

from collections.abc import Iterable, Mapping

from pytest_cre.measure.model import (
    DiagnosticMeasurement,
    DiagnosticResult,
    DiagnosticStatus,
    GemmGpu,
    GemmMeasurement,
)

NAMED = 4  # GPUs and tests named in a reason; the figures and the log have them all

DEVICE_UNITS: Mapping[str, str] = {
    "gemm_tflops": "TFLOP/s",
    "gemm_spread": "ratio",
    "dcgm_failed_tests": "count",
    "dcgm_passed_tests": "count",
    "dcgm_skipped_tests": "count",
    "gpus_measured": "count",
}


def gemm_figures(gemm: GemmMeasurement) -> dict[str, float | None]:
    """Return the figures of a burn-in, and that of each GPU as `gemm_tflops.gpu-3`."""
    wrong = [gpu.wrong for gpu in gemm.gpus if gpu.wrong is not None]
    figures: dict[str, float | None] = {
        "gemm_tflops": gemm.min_tflops,
        "gemm_spread": gemm.spread,
        "gpus_measured": len(gemm.gpus),
        "wrong_elements": sum(wrong) if wrong else None,
    }
    pods = sorted({gpu.pod for gpu in gemm.gpus})
    for gpu in gemm.gpus:
        pod = f"pod-{pods.index(gpu.pod)}." if len(pods) > 1 else ""
        figures[f"gemm_tflops.{pod}gpu-{gpu.gpu}"] = gpu.tflops
    return figures


def diagnostic_figures(diagnostics: DiagnosticMeasurement) -> dict[str, float | None]:
    """Return the figures of diagnostics; none where no test ran."""
    if not diagnostics.results:
        return {}

    def count(status: DiagnosticStatus) -> int:
        return sum(each.status == status for each in diagnostics.results)

    return {
        "dcgm_failed_tests": count("fail"),
        "dcgm_passed_tests": count("pass"),
        "dcgm_skipped_tests": count("skip"),
        "gpus_measured": len(diagnostics.gpus),
    }


def gemm_wrong_words(gemm: GemmMeasurement) -> list[str]:
    """Return which GPUs computed wrong values, and what else failed."""
    wrong = [gpu for gpu in gemm.gpus if gpu.wrong]
    words = []
    if wrong:
        named = ", ".join(f"{gpu.wrong} on {_gpu_words(gpu)}" for gpu in wrong[:NAMED])
        words.append(f"wrong values: {named}{_more(len(wrong), 'GPUs')}")
    elif gemm.failure:
        words.append(f"the burn-in failed: {gemm.failure}")
    return words


def diagnostic_wrong_words(diagnostics: DiagnosticMeasurement) -> list[str]:
    """Return each failed test with its GPUs and what DCGM says of it."""
    tests = _by_test(diagnostics.failed)
    words = [
        f"DCGM test {name} failed on {_where(found)}{_said(found)}"
        for name, found in list(tests.items())[:NAMED]
    ]
    if len(tests) > NAMED:
        words.append(f"{len(tests) - NAMED} more DCGM tests failed")
    if diagnostics.failure and not words:
        words.append(f"the diagnostics failed: {diagnostics.failure}")
    return words


def diagnostic_warnings(diagnostics: DiagnosticMeasurement) -> list[str]:
    """Return what DCGM warned of, and which tests it passed over."""
    warned = [each for each in diagnostics.results if each.status == "warn"]
    skipped = [each for each in diagnostics.results if each.status == "skip"]
    words = [
        f"DCGM test {name} warns on {_where(found)}{_said(found)}"
        for name, found in _by_test(warned).items()
    ]
    words += [
        f"DCGM skipped {name} on {_where(found)}{_said(found)}"
        for name, found in _by_test(skipped).items()
    ]
    return words


def fewer_gpus_words(measured: GemmMeasurement | DiagnosticMeasurement, planned: int) -> str:
    """Return how many GPUs are missing, and which are there."""
    there = ", ".join(str(gpu.gpu) for gpu in measured.gpus[:16])
    present = f" (GPU {there})" if there else ""
    return f"{len(measured.gpus)} GPUs were measured{present}, {planned} were planned"


def _by_test(results: Iterable[DiagnosticResult]) -> dict[str, list[DiagnosticResult]]:
    found: dict[str, list[DiagnosticResult]] = {}
    for each in results:
        found.setdefault(each.test, []).append(each)
    return found


def _where(results: list[DiagnosticResult]) -> str:
    """Return `GPU 0, 3`, with the names of other entities after it."""
    pods = {each.pod for each in results}
    gpus = [
        f"{each.gpu} of {each.pod}" if len(pods) > 1 else str(each.gpu)
        for each in results
        if each.gpu is not None
    ]
    others = [f"the {each.entity}" for each in results if each.gpu is None]
    return ", ".join([*([f"GPU {', '.join(gpus)}"] if gpus else []), *dict.fromkeys(others)])


def _said(results: list[DiagnosticResult]) -> str:
    said = next((each.messages[0] for each in results if each.messages), None)
    return f": {said}" if said else ""


def _gpu_words(gpu: GemmGpu) -> str:
    return f"GPU {gpu.gpu}" + (f" ({gpu.uuid})" if gpu.uuid else "")


def _more(count: int, noun: str) -> str:
    return f"; {count - NAMED} more {noun}" if count > NAMED else ""
