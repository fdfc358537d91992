"""Goodput of a part of a run, and of consecutive windows along it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_cre.measure.account import TrainingAccount
from pytest_cre.measure.formula import formula_ratio, formula_terms
from pytest_cre.measure.instants import SECOND_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The ledger of a stretch of the run, and its ratios: goodput, ledger, runtime, strict_durable.

    A ratio is None where the stretch has no length or the run has no ratio. A provisional window is so
    near to the end of a run that goes on that its steps may still be lost.
    """

    start_ns: int
    end_ns: int
    ledger_ns: Mapping[str, int]
    ratios: Mapping[str, float | None]
    is_provisional: bool


def window_ratios(account: TrainingAccount, start_ns: int, end_ns: int) -> Window:
    """Return the account of what lies between two instants, cut to the run.

    Ratios are over wall time, so a window inside a hang reads 0. A window knows the whole run: steps that
    were lost later are not useful in it.
    """
    part = account.line.clipped(start_ns, end_ns)
    ledger_ns = part.totals_ns()
    lasted_ns = sum(ledger_ns.values())
    ratios: dict[str, float | None]
    if lasted_ns == 0 or account.ratios["ledger"] is None:
        ratios = dict.fromkeys(("goodput", "ledger", "runtime", "strict_durable"))
    else:
        durable_ns = account.durable_line.clipped(start_ns, end_ns).totals_ns()["useful"]
        ratios = {
            "goodput": formula_ratio(formula_terms(ledger_ns)) if account.executed_steps else 0.0,
            "ledger": ledger_ns["useful"] / lasted_ns,
            "runtime": (ledger_ns["useful"] + ledger_ns["straggler"]) / lasted_ns,
            "strict_durable": durable_ns / lasted_ns,
        }
    return Window(
        start_ns=part.bounds_ns[0],
        end_ns=part.end_ns,
        ledger_ns=ledger_ns,
        ratios=ratios,
        is_provisional=_is_provisional(account, part.end_ns),
    )


def rolling_windows(account: TrainingAccount, width_ns: int) -> tuple[Window, ...]:
    """Return windows of a width from the start of the run on, the last one cut to its end."""
    if width_ns <= 0:
        raise ValueError(f"width_ns must be above 0, got {width_ns}")
    first, end_ns = account.line.bounds_ns[0], account.line.end_ns
    return tuple(
        window_ratios(account, start_ns, start_ns + width_ns)
        for start_ns in range(first, end_ns, width_ns)
    )


def _is_provisional(account: TrainingAccount, end_ns: int) -> bool:
    """Return whether a window ends less than one checkpoint interval before the end of an open run."""
    if not account.is_provisional:
        return False
    interval_s = account.checkpointing.interval_s
    return interval_s is None or end_ns > account.line.end_ns - interval_s * SECOND_NS
