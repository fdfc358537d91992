"""What held resources gave: GPU-hours by category, and the three owners' shares of goodput."""

from collections.abc import Mapping

from pytest_cre.measure.account import LedgerParams, ProductivityGoodput
from pytest_cre.measure.history import History
from pytest_cre.measure.instants import SECOND_NS
from pytest_cre.measure.model import TrainingSummary
from pytest_cre.measure.partition import Partition

_HOUR_NS = 3600 * SECOND_NS


def productivity_of(
    ledger_ns: Mapping[str, int],
    window_ns: int,
    ratios: Mapping[str, float | None],
    summary: TrainingSummary,
    params: LedgerParams,
) -> ProductivityGoodput | None:
    """Return the three factors, None unless peak and achieved FLOP/s are known and there is a ratio."""
    if params.peak_tflops_per_gpu is None or summary.avg_tflops_per_gpu is None:
        return None
    if ratios["runtime"] is None:
        return None
    available_ns = window_ns - ledger_ns["schedule"] - ledger_ns["reschedule"]
    productive_ns = ledger_ns["useful"] + ledger_ns["straggler"]
    return ProductivityGoodput(
        scheduling=available_ns / window_ns,
        runtime=productive_ns / available_ns if available_ns else 0.0,
        program=summary.avg_tflops_per_gpu / params.peak_tflops_per_gpu,
    )


def gpu_hours_of(
    line: Partition, history: History, params: LedgerParams
) -> Mapping[str, float] | None:
    """Weigh each stretch with the GPUs held in it; the first number told holds from the start."""
    held = [(line.bounds_ns[0], params.gpus)] if params.gpus is not None else []
    held.extend(sorted(history.gpus))
    if not held:
        return None
    weighed = dict.fromkeys(line.totals_ns(), 0)
    ends = [since for since, _ in held[1:]] + [line.end_ns]
    for at, ((since, gpus), until) in enumerate(zip(held, ends, strict=True)):
        since_ns = line.bounds_ns[0] if at == 0 else max(since, line.bounds_ns[0])
        if until <= since_ns:
            continue
        for category, lasted_ns in line.clipped(since_ns, until).totals_ns().items():
            weighed[category] += lasted_ns * gpus
    return {category: gpu_ns / _HOUR_NS for category, gpu_ns in weighed.items()}
