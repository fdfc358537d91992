"""Goodput: events in, every instant accounted for, several ratios with explicit names out."""

from collections.abc import Mapping, Sequence

from pytest_cre.measure.account import AttemptRow, LedgerParams, TrainingAccount
from pytest_cre.measure.attempts import history_of
from pytest_cre.measure.events import StepRun, TrainingEvent
from pytest_cre.measure.formula import formula_ratio, formula_terms
from pytest_cre.measure.history import History
from pytest_cre.measure.instants import SECOND_NS
from pytest_cre.measure.ledger import durable_at_end, lay_out, survival_limits
from pytest_cre.measure.lives import Life, Rules, exit_of, settle
from pytest_cre.measure.model import RATIOS
from pytest_cre.measure.partition import OTHER, Partition
from pytest_cre.measure.pauses import pauses_of
from pytest_cre.measure.reference import Reference, reference_of
from pytest_cre.measure.resources import gpu_hours_of, productivity_of
from pytest_cre.measure.summary import checkpointing_of, summary_of
from pytest_cre.measure.windows import Window, rolling_windows, window_ratios

__all__ = [
    "LedgerParams",
    "TrainingAccount",
    "Window",
    "account",
    "formula_ratio",
    "formula_terms",
    "rolling_windows",
    "window_ratios",
]


def account(events: Sequence[TrainingEvent | StepRun], params: LedgerParams) -> TrainingAccount:
    """Account for a run: a pure function of the set of events.

    The window opens at window_open, else at the first sign of a process; it closes at window_close, else at
    the last exit. A run without window_close is provisional, and so is one whose outcome nobody knows.
    """
    history = history_of(events, round(params.tolerance_s * SECOND_NS))
    lives, reference = _lives(history, params)
    failed = bool(lives) and lives[-1].exit == "abort"
    limits = survival_limits(lives, durable_only=failed)
    durable = survival_limits(lives, durable_only=True)
    start_ns = (
        history.opened_ns if history.opened_ns is not None or not lives else lives[0].start_ns
    )
    end_ns = history.closed_ns if history.closed_ns is not None or not lives else lives[-1].exit_ns
    has_steps = any(life.numbers for life in lives)
    order_only = not has_steps and bool(history.untimed.numbers)

    if start_ns is None or end_ns is None or end_ns <= start_ns:
        line = strict = Partition(start_ns or 0)
    elif order_only or not lives:
        line = strict = Partition(start_ns)
        line.extend(OTHER, end_ns)
    else:
        awaits = failed and params.succeeded is None

        def laid(cut: Sequence[int]) -> Partition:
            return lay_out(
                lives,
                cut,
                reference,
                opened_ns=start_ns,
                closed_ns=end_ns,
                gaps=history.gaps,
                awaits_restart=awaits,
            )

        line = laid(limits)
        strict = line if not _cuts_deeper(lives, limits, durable) else laid(durable)

    ledger_ns, window_ns = line.totals_ns(), line.end_ns - line.bounds_ns[0]
    strict_ns = ledger_ns if strict is line else strict.totals_ns()
    executed = sum(life.executed_steps for life in lives)
    lost = sum(life.lost_steps(limit) for life, limit in zip(lives, limits, strict=True))
    known = _is_window_known(history)
    if order_only or window_ns == 0 or not (has_steps or known):
        ratios: Mapping[str, float | None] = dict.fromkeys(RATIOS)
    else:
        ratios = _ratios(ledger_ns, window_ns, strict_ns["useful"], executed, reference.step_ns)
    is_provisional = params.succeeded is None and not (lives and lives[-1].exit == "end")
    _flag(history, lives, reference, params)
    summary = summary_of(history, lives, params.warmup_steps)
    queued_ns = window_ns + round(params.queue_s * SECOND_NS)
    runtime_ns = ledger_ns["useful"] + ledger_ns["straggler"]
    return TrainingAccount(
        start_ns=start_ns,
        end_ns=end_ns,
        window_ns=window_ns,
        ledger_ns=ledger_ns,
        terms=formula_terms(ledger_ns),
        ratios=ratios,
        flags=tuple(sorted(history.flags)),
        attempts=_rows(lives, limits),
        interruptions=summary.interruptions,
        executed_steps=executed,
        useful_steps=executed - lost,
        durable_step=max(0, durable_at_end(lives)),
        skipped_steps=history.skipped_steps,
        consumed_samples=history.samples,
        summary=summary,
        checkpointing=checkpointing_of(lives, ledger_ns, summary.interruptions),
        reference_step_s=None if reference.step_ns is None else reference.step_ns / SECOND_NS,
        reference_source=reference.source,
        log_interval=reference.interval,
        ettr_with_queue=None if ratios["runtime"] is None else runtime_ns / queued_ns,
        productivity=productivity_of(ledger_ns, window_ns, ratios, summary, params),
        gpu_hours=gpu_hours_of(line, history, params),
        is_provisional=is_provisional,
        clamped=history.clamped,
        copies=history.copies,
        after_close=history.after_close,
        line=line,
        durable_line=strict,
    )


def _ratios(
    ledger_ns: Mapping[str, int],
    window_ns: int,
    durable_ns: int,
    executed: int,
    step_ns: float | None,
) -> dict[str, float | None]:
    useful_ns = ledger_ns["useful"]
    # Time left unclassified must not read as goodput where not one step was seen.
    goodput = formula_ratio(formula_terms(ledger_ns)) if executed else 0.0
    throughput = None if step_ns is None and executed else executed * (step_ns or 0.0) / window_ns
    return {
        "goodput": goodput,
        "ledger": useful_ns / window_ns,
        "runtime": (useful_ns + ledger_ns["straggler"]) / window_ns,
        "strict_durable": durable_ns / window_ns,
        "throughput_fraction": throughput,
    }


def _lives(history: History, params: LedgerParams) -> tuple[list[Life], Reference]:
    attempts = history.attempts
    rules = Rules(succeeded=params.succeeded, counter_is_local=params.step_counter == "local")
    exits = [
        exit_of(a, is_last=a is attempts[-1], closed_ns=history.closed_ns, rules=rules)
        for a in attempts
    ]
    if any(
        a.exit_ns is None and (a is not attempts[-1] or history.closed_ns is None) for a in attempts
    ):
        history.flags.add("exit_unknown")
    has_commits = any(e.kind == "save_commit" for a in attempts for e in a.saves)
    if not has_commits and any(a.saves for a in attempts):
        history.flags.add("commit_unseen")

    # Twice: an estimated reference leaves pauses out, and a pause without an end is measured by it.
    reference: Reference | None = None
    while True:
        pauses = [
            pauses_of(
                attempt,
                exit_ns,
                step_ns=reference.step_ns if reference else None,
                has_commit_lines=has_commits,
            )
            for attempt, (exit_ns, _) in zip(attempts, exits, strict=True)
        ]
        if reference is not None:
            break
        reference = reference_of(
            attempts,
            [paused.spans for paused in pauses],
            given_s=params.reference_step_s,
            interval=params.log_interval,
        )
    lives = settle(history, attempts, exits, pauses, rules=rules, reference=reference)
    return lives, reference


def _cuts_deeper(lives: Sequence[Life], limits: Sequence[int], durable: Sequence[int]) -> bool:
    return any(
        life.lost_steps(limit) != life.lost_steps(strict)
        for life, limit, strict in zip(lives, limits, durable, strict=True)
    )


def _is_window_known(history: History) -> bool:
    """Return whether a start and an end of the time held were seen, not only lines between."""
    starts = history.opened_ns is not None or any(a.start_ns is not None for a in history.attempts)
    ends = history.closed_ns is not None or any(a.exit_ns is not None for a in history.attempts)
    return starts and ends


def _flag(
    history: History, lives: Sequence[Life], reference: Reference, params: LedgerParams
) -> None:
    flags = history.flags
    if any(life.numbers for life in lives):
        if reference.source != "given":
            flags.add("reference_estimated" if reference.source else "reference_unknown")
        saves = any(attempt.saves for attempt in history.attempts)
        if saves and lives[-1].exit == "end" and durable_at_end(lives) < lives[-1].last_step:
            flags.add("last_steps_not_durable")
    if any(life.pauses.has_unconfirmed_save for life in lives):
        flags.add("save_unconfirmed")
    if len({gpus for _, gpus in history.gpus}) > 1:
        flags.add("gpus_changed")
    if history.after_close:
        flags.add("events_after_end")
    if params.succeeded and lives and not any(life.numbers for life in lives):
        flags.add("no_steps")


def _rows(lives: Sequence[Life], limits: Sequence[int]) -> tuple[AttemptRow, ...]:
    return tuple(
        AttemptRow(
            number=number,
            start_ns=life.start_ns,
            ready_ns=life.ready_ns,
            resume_step=life.resumed,
            last_step=life.numbers[-1] if life.numbers else None,
            exit_ns=life.exit_ns,
            reason=life.reason,
            executed_steps=life.executed_steps,
            lost_steps=life.lost_steps(limit),
        )
        for number, (life, limit) in enumerate(zip(lives, limits, strict=True))
    )
