"""Limits that measurements are judged by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Metric = Literal["busbw", "goodput", "step_time", "tflops_per_gpu"]
Operator = Literal[">=", "<="]
Tier = Literal["published", "site", "physics", "simulated"]
Statistic = Literal["max", "at-size", "value"]
Fabric = Literal["infiniband", "roce", "efa", "tcpxo", "socket", "nvlink"]

UNITS: Mapping[Metric, str] = {
    "busbw": "GB/s",
    "goodput": "ratio",
    "step_time": "s",
    "tflops_per_gpu": "TFLOP/s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit, with where it applies and where it comes from.

    It applies to entries whose name matches `entry` (a shell pattern), at `scale` (None: any), to
    groups of `min_nodes` to `max_nodes` nodes (None: open), on `fabric` (None: any).
    `statistic` says which number of a measurement is judged: the maximum over all sizes (`max`),
    the row of `size_bytes` (`at-size`), or the only one there is (`value`). For bus bandwidth the
    judged number of a row is the smaller of its out-of-place and in-place figures.
    """

    metric: Metric
    operator: Operator
    value: float
    unit: str
    entry: str
    tier: Tier
    statistic: Statistic
    source: str
    date: str
    architecture: str | None = None
    scale: str | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    fabric: Fabric | None = None
    size_bytes: int | None = None
    note: str = ""  # how the value was derived, and why it applies where it does
    place: str = ""
