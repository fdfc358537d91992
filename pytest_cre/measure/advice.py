"""Checkpoint intervals and expected ratios from measured costs: textbook formulas, with their limits."""

from dataclasses import dataclass
from math import sqrt

from pytest_cre.measure.account import TrainingAccount
from pytest_cre.measure.instants import SECOND_NS

MINIMUM_INTERRUPTIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointAdvice:
    """What the measured costs say about the checkpoint interval. `expected_ettr` is for Young's interval."""

    mtbf_s: float
    blocking_s: float
    interval_s: float | None
    young_interval_s: float
    daly_interval_s: float
    expected_ettr: float

    def line(self) -> str:
        """Return the advice in one line."""
        now = "unknown" if self.interval_s is None else f"{self.interval_s:.0f} s"
        return (
            f"checkpoint interval {now}; with {self.blocking_s:.1f} s blocked per save and a failure every "
            f"{self.mtbf_s:.0f} s Young's interval is {self.young_interval_s:.0f} s, "
            f"expected ETTR {self.expected_ettr:.3f}"
        )


def advice_of(account: TrainingAccount) -> CheckpointAdvice | None:
    """Return advice, None with fewer than three interruptions or without a blocking save: it would be noise."""
    costs = account.checkpointing
    if account.interruptions < MINIMUM_INTERRUPTIONS or not costs.mean_blocking_s:
        return None
    mtbf_s = account.window_ns / SECOND_NS / account.interruptions
    young_s = young_interval_s(costs.mean_blocking_s, mtbf_s)
    return CheckpointAdvice(
        mtbf_s=mtbf_s,
        blocking_s=costs.mean_blocking_s,
        interval_s=costs.interval_s,
        young_interval_s=young_s,
        daly_interval_s=daly_interval_s(costs.mean_blocking_s, mtbf_s),
        expected_ettr=expected_ettr(
            mtbf_s=mtbf_s,
            restart_s=costs.mean_restart_s or 0.0,
            interval_s=young_s,
            blocking_s=costs.mean_blocking_s,
        ),
    )


def young_interval_s(blocking_s: float, mtbf_s: float) -> float:
    """Return Young's interval, `sqrt(2 C M)`: the least expected loss to first order."""
    return sqrt(2 * blocking_s * mtbf_s)


def daly_interval_s(blocking_s: float, mtbf_s: float) -> float:
    """Return Daly's higher-order interval; M itself where a save costs 2 M or more."""
    if blocking_s >= 2 * mtbf_s:
        return mtbf_s
    part = blocking_s / (2 * mtbf_s)
    return sqrt(2 * blocking_s * mtbf_s) * (1 + sqrt(part) / 3 + part / 9) - blocking_s


def expected_ettr(
    *, mtbf_s: float, restart_s: float, interval_s: float, blocking_s: float
) -> float:
    """Return `(1 - (u0 + dt/2) / M) / (1 + w/dt)`, at least 0: small losses, detection time left out."""
    return max(0.0, 1 - (restart_s + interval_s / 2) / mtbf_s) / (1 + blocking_s / interval_s)


def wasted_per_failure_s(*, blocking_s: float, interval_s: float, retrieval_s: float) -> float:
    """Return the time lost per failure: the write, half an interval of work and reading back."""
    return blocking_s + interval_s / 2 + retrieval_s
