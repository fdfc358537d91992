"""Bounds of physics: what no link and no GPU can exceed, whatever a table says."""

import math

from pytest_cre.catalog.architecture import Architecture, Precision
from pytest_cre.catalog.limit import Limit
from pytest_cre.catalog.wire import busbw_bound
from pytest_cre.evidence.model import GroupEvidence
from pytest_cre.measure.model import BandwidthMeasurement, Measurement

_TRAINED_IN: tuple[Precision, ...] = (
    "fp8",
    "bf16",
    "fp16",
)  # a log does not tell the precision, so the fastest bounds


def physics_limits(
    architecture: Architecture | None, evidence: GroupEvidence, measurement: Measurement
) -> tuple[Limit, ...]:
    """Return the ceilings of one group: bus bandwidth above the wire, more than peak FLOP/s.

    A figure above its ceiling was not measured right. Simulated nodes have no physics.
    """
    if architecture is None or evidence.is_simulated:
        return ()
    limits = []
    bandwidth = measurement.bandwidth
    busbw = _busbw_bound(architecture, evidence, bandwidth) if bandwidth is not None else None
    if busbw is not None:
        note = "1.02 x the wire, with in-switch reduction where the log does not rule it out"
        source = architecture.rates_source
        limits.append(_ceiling(architecture, evidence, "busbw", busbw, source, note))
    peaks = [architecture.peaks[name] for name in _TRAINED_IN if name in architecture.peaks]
    if measurement.training is not None and peaks:
        peak = max(peaks, key=lambda each: each.tflops)
        note = "peak rate of the fastest precision that trains"
        limits.append(
            _ceiling(architecture, evidence, "tflops_per_gpu", peak.tflops, peak.source, note)
        )
    return tuple(limits)


def _ceiling(
    architecture: Architecture,
    evidence: GroupEvidence,
    metric: str,
    value: float,
    source: str,
    note: str,
) -> Limit:
    is_bandwidth = metric == "busbw"
    return Limit(
        metric="busbw" if is_bandwidth else "tflops_per_gpu",
        operator="<=",
        value=round(value, 1),
        unit="GB/s" if is_bandwidth else "TFLOP/s",
        entry=evidence.entry,
        tier="physics",
        statistic="max" if is_bandwidth else "value",
        source=source,
        date="-",
        architecture=architecture.name,
        confidence="high",
        note=note,
        place=architecture.place,
    )


def _busbw_bound(
    architecture: Architecture, evidence: GroupEvidence, bandwidth: BandwidthMeasurement
) -> float | None:
    """Return the bound of a group; what a log does not tell of the paths may have happened."""
    tables, paths = bandwidth.tables, bandwidth.paths
    if len(tables) != 1 or tables[0].test is None:
        return None
    return busbw_bound(
        architecture,
        tables[0].test,
        ranks=evidence.ranks_planned,
        domains=_domains(architecture, evidence),
        may_reduce_on_nvlink=not paths or "NVLS" in paths,
        may_reduce_in_network=not paths or "COLLNET" in paths,
    )


def _domains(architecture: Architecture, evidence: GroupEvidence) -> int:
    """Return the fewest NVLink domains that the group can be spread over."""
    if evidence.fabrics == ("nvlink",):
        return 1
    if not architecture.has_rack_nvlink:
        return len(evidence.nodes)
    return max(1, math.ceil(evidence.ranks_planned / architecture.domain_gpus))
