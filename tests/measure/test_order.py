"""The order of lines: as written, except where their times prove that a log lost it."""

import random

import pytest

from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.events import TrainingEvent
from pytest_cre.measure.goodput import account
from tests.measure.megatron import EPOCH_NS, step_line
from tests.measure.reading import measured
from tests.measure.tables import stamped, text

SECOND = 10**9


def lines(times_s, total=999):
    return [
        step_line(n, EPOCH_NS + round(t_s * SECOND), SECOND, total=total)
        for n, t_s in enumerate(times_s, start=1)
    ]


def event(kind, t_s, seq, **more):
    return TrainingEvent(kind=kind, t_ns=round(t_s * SECOND), seq=seq, stream="pod", **more)


def ledger(measurement):
    return {name: seconds for name, seconds in measurement.training.ledger_s.items() if seconds}


USUAL = lines(range(1, 61), total=60)


@pytest.mark.parametrize("disorder", ["two lines", "a stretch", "all reversed", "all shuffled"])
def test_lines_that_lost_their_order_are_put_back_by_their_times(disorder):
    moved = list(USUAL)
    if disorder == "two lines":
        moved[20], moved[21] = moved[21], moved[20]
    elif disorder == "a stretch":
        moved = [*moved[:10], *moved[30:40], *moved[10:30], *moved[40:]]
    elif disorder == "all reversed":
        moved.reverse()
    else:
        random.Random(7).shuffle(moved)
    found, usual = measured(text(moved)).training, measured(text(USUAL)).training
    assert found.attempts == 1
    assert found.ledger_s["useful"] == usual.ledger_s["useful"] == 60
    assert "implicit_restart" not in found.flags


def test_clock_that_is_set_back_once_restarts_nothing():
    times = [*range(1, 51), *range(46, 96)]
    run = measured(text(lines(times, total=100))).training
    assert (run.attempts, run.summary.interruptions) == (1, 0)
    steps = sum(run.ledger_s[name] for name in ("useful", "straggler", "warmup"))
    assert steps == pytest.approx(run.window_s) == pytest.approx(95)
    assert "clamped" in run.flags


def test_clock_that_runs_backwards_restarts_nothing_and_gives_no_goodput():
    run = measured(text(lines(range(100, 0, -1), total=100))).training
    assert (run.attempts, run.summary.interruptions) == (1, 0)
    assert run.ledger_s["useful"] <= 1
    assert "clamped" in run.flags


@pytest.mark.parametrize(
    ("told_s", "is_doubtful"),
    [(8, False), (8.3, False), (8.1, True), (7, True)],
)
def test_time_in_whole_seconds_may_be_one_more_behind_the_line_before_it(told_s, is_doubtful):
    events = [
        event("proc_start", 5, 1),
        event("load_end", 9.2, 2, step=0),
        event("train_ready", told_s, 3),
        *(event("step", 10 + n, 3 + n, step=n) for n in range(1, 11)),
        event("end", 20, 300),
    ]
    run = account(events, LedgerParams(reference_step_s=1))
    assert run.clamped == 1
    assert ("clamped" in run.flags) is is_doubtful


def test_lines_of_one_instant_keep_their_order_within_a_stream():
    kinds = ["abort", "proc_start", "load_start"]
    at_once = [event(kind, 20, 100 + at) for at, kind in enumerate(kinds)]
    events = [
        event("proc_start", 0, 1),
        event("load_end", 0, 2, step=0),
        *(event("step", n, 2 + n, step=n) for n in range(1, 21)),
        *at_once,
        event("load_end", 25, 200, step=20),
        *(event("step", 25 + n, 200 + n, step=20 + n) for n in range(1, 11)),
        event("end", 35, 300),
    ]
    run = account(events, LedgerParams(reference_step_s=1))
    assert {k: v / SECOND for k, v in run.ledger_ns.items() if v} == {"useful": 30, "load": 5}
    assert (len(run.attempts), run.interruptions, run.flags) == (2, 1, ())


@pytest.mark.parametrize("year", [1970, 2117, 2199])
def test_run_in_any_year_that_nanoseconds_hold_is_accounted_for(year):
    log = text(stamped(USUAL)).replace(b"2026-01-05", b"%d-12-31" % year)
    assert ledger(measured(log)) == {"useful": 60}


def test_lines_without_a_time_take_that_of_the_line_before_them():
    words = [*lines(range(1, 101))]
    words.insert(50, "Worker group FAILED. 3/3 attempts left; will restart worker group")
    words.insert(51, "using world size: 8, data-parallel size: 8, context-parallel size: 1")
    words.insert(52, "  successfully loaded checkpoint from /c [ t 1/1, p 1/1 ] at iteration 50")
    run = measured(text(words)).training
    assert (run.attempts, run.summary.interruptions) == (2, 1)
    assert run.ledger_s["useful"] == 100
    assert "no_timestamps" in run.flags


def test_rounding_of_the_first_line_makes_no_straggler():
    # Lines say whole seconds; the first one was printed up to a second later than it says.
    events = [
        TrainingEvent(kind="step", t_ns=t_s * SECOND, step=number, step_time_s=0.23)
        for number, t_s in ((20, 10), (40, 15), (60, 20), (80, 24), (100, 29))
    ]
    run = account(events, LedgerParams())
    assert run.reference_step_s == pytest.approx(0.23)
    assert run.ledger_ns["straggler"] == 0
