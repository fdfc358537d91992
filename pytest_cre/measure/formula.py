"""The goodput formula, with the ledger's exact intervals as its terms."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaTerms:
    """The terms of `(t_w - t_ch - t_rm - t_re - t_save) / (t_w - t_re)`, in nanoseconds.

    Lost work and hang, start-up inside a process, time without a process, blocking saves.
    """

    t_w: int
    t_ch: int
    t_rm: int
    t_re: int
    t_save: int


def formula_terms(ledger_ns: Mapping[str, int]) -> FormulaTerms:
    """Return the seed's terms with the exact intervals of a ledger."""
    return FormulaTerms(
        t_w=sum(ledger_ns.values()),
        t_ch=ledger_ns["rework"] + ledger_ns["hang"],
        t_rm=ledger_ns["schedule"] + ledger_ns["init"] + ledger_ns["load"] + ledger_ns["warmup"],
        t_re=ledger_ns["reschedule"],
        t_save=ledger_ns["checkpoint_blocking"],
    )


def formula_ratio(terms: FormulaTerms) -> float | None:
    """Return `(t_w - t_ch - t_rm - t_re - t_save) / (t_w - t_re)`, 0 where it is not above 0.

    None for a window of no length: nothing was measured.
    """
    if terms.t_w <= 0:
        return None
    kept = terms.t_w - terms.t_ch - terms.t_rm - terms.t_re - terms.t_save
    held = terms.t_w - terms.t_re
    return kept / held if held > 0 and kept > 0 else 0.0
