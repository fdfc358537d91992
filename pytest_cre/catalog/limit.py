"""Limits that measurements are judged by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Metric = Literal[
    "busbw",
    "algbw",
    "latency",
    "dip",
    "goodput",
    "step_time",
    "tflops_per_gpu",
    "ledger_time",
    "ledger_share",
    "gemm_tflops",
    "gemm_spread",
    "dcgm_failed_tests",
]
Operator = Literal[">=", "<=", ">", "<"]
Tier = Literal["given", "site", "published", "physics", "simulated"]
Confidence = Literal["high", "medium", "low"]
Statistic = Literal["max", "at-size", "plateau", "value"]
Fabric = Literal["infiniband", "roce", "efa", "tcpxo", "socket", "nvlink"]

UNITS: Mapping[Metric, str] = {
    "busbw": "GB/s",
    "algbw": "GB/s",
    "latency": "us",
    "dip": "ratio",
    "goodput": "ratio",
    "step_time": "s",
    "tflops_per_gpu": "TFLOP/s",
    "ledger_time": "s",
    "ledger_share": "ratio",
    "gemm_tflops": "TFLOP/s",
    "gemm_spread": "ratio",
    "dcgm_failed_tests": "count",
}
STATISTICS: Mapping[Metric, tuple[Statistic, ...]] = {
    "busbw": ("max", "at-size", "plateau"),
    "algbw": ("max", "at-size", "plateau"),
    "latency": ("at-size",),
}
BANDWIDTH_METRICS: tuple[Metric, ...] = ("busbw", "algbw", "latency", "dip")
TRAINING_METRICS: tuple[Metric, ...] = (
    *("goodput", "step_time", "tflops_per_gpu"),
    *("ledger_time", "ledger_share"),
)
GEMM_METRICS: tuple[Metric, ...] = ("gemm_tflops", "gemm_spread")
DIAGNOSTIC_METRICS: tuple[Metric, ...] = ("dcgm_failed_tests",)
LESS_IS_BETTER: frozenset[Metric] = frozenset(
    ("latency", "dip", "step_time", "gemm_spread", "dcgm_failed_tests")
)
NO_DATE = "-"  # what a limit has whose source has none
LEDGER_METRICS: tuple[Metric, ...] = ("ledger_time", "ledger_share")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit, with where it applies and where it comes from.

    It applies to entries whose name matches `entry` (a shell pattern) and that run `collective`
    (None: any), at `scale` (None: any), to groups of `min_nodes` to `max_nodes` nodes (None: open),
    on `fabric` (None: any). `statistic` says which number of a measurement is judged: the maximum
    over all sizes (`max`), the row of `size_bytes` (`at-size`), the median of the largest sizes
    (`plateau`), or the only one there is (`value`). For bandwidth the judged number of a row is the
    smaller of its out-of-place and in-place figures, for latency the larger. `category` names the
    part of the ledger for the two ledger metrics.

    `expression` is a CEL expression over `value` that no single number says; `value` is None then.
    """

    metric: Metric
    operator: Operator
    value: float | None
    unit: str
    entry: str
    tier: Tier
    statistic: Statistic
    source: str
    date: str
    architecture: str | None = None
    collective: str | None = None
    scale: str | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    fabric: Fabric | None = None
    size_bytes: int | None = None
    category: str | None = None
    expression: str = ""
    confidence: Confidence = "medium"
    versions: str = ""  # software that the source measured with
    note: str = ""  # how the value was derived, and why it applies where it does
    place: str = ""

    @property
    def known_date(self) -> str | None:
        """Return the date of the source, or None where it has none."""
        return self.date if self.date not in ("", NO_DATE) else None

    @property
    def is_guard(self) -> bool:
        """Return whether the limit can only fail: meeting it shows no speed.

        Bounds of physics, dips of a curve, differences between GPUs and ceilings on lost time are met
        by slow hardware, too.
        """
        has_no_speed = self.metric in ("dip", "gemm_spread") or (
            self.metric in LEDGER_METRICS and self.operator in ("<=", "<")
        )
        return self.tier == "physics" or has_no_speed

    @property
    def demands_speed(self) -> bool:
        """Return whether slow hardware misses it: no guard, nor a ceiling on a speed.

        An expression is taken as one that does: nobody knows its sides.
        """
        if self.is_guard or self.expression or self.metric in LEDGER_METRICS:
            return not self.is_guard
        return (self.operator in ("<=", "<")) == (self.metric in LESS_IS_BETTER)
