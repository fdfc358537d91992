"""Averages, resources and advice beside the ledger."""

from dataclasses import replace

import pytest

from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.advice import advice_of
from pytest_cre.measure.events import TrainingEvent
from pytest_cre.measure.goodput import account, rolling_windows, window_ratios
from tests.measure.histories import SECOND, events_of, measured, ns


def step(number, t_s=None, *, seconds=None, tflops=None, **more):
    return TrainingEvent(
        kind="step",
        t_ns=None if t_s is None else ns(t_s),
        step=number,
        step_time_s=seconds,
        tflops_per_gpu=tflops,
        **more,
    )


START = TrainingEvent(kind="proc_start", t_ns=0)


def summary(events, **params):
    return account(events, LedgerParams(**params)).summary


def test_averages_leave_warmup_out_and_say_how_much():
    events = [
        START,
        step(1, 30, seconds=30, tflops=40),
        step(2, 34, seconds=4, tflops=500),
        step(3, 39, seconds=5),
    ]
    found = summary(events, warmup_steps=1)
    assert (found.avg_step_time_s, found.avg_tflops_per_gpu, found.warmup_records) == (4.5, 500, 1)


def test_averages_of_a_sparse_log_are_over_the_run_without_its_first_steps():
    timings = [49.3948, 34.5954, 35.5885, 34.3799, 34.3852, 34.3565]
    tflops = [371.8, 530.9, 516.1, 534.2, 534.1, 534.6]
    events = [START, step(1, 200, seconds=184.5985, tflops=99.5)]
    for at, (seconds, rate) in enumerate(zip(timings, tflops, strict=True), start=1):
        events.append(step(at * 10, 200 + at * 350, seconds=seconds, tflops=rate))
    found = summary(events, warmup_steps=10)
    assert found.avg_step_time_s == pytest.approx(34.6611)
    assert found.avg_tflops_per_gpu == pytest.approx(529.98)
    assert (found.first_step, found.last_step, found.step_records, found.warmup_records) == (
        1,
        60,
        7,
        2,
    )


def test_averages_without_printed_times_are_between_lines_without_pauses():
    events = [START, step(10, 100), step(20, 150), step(30, 190)]
    assert summary(events).avg_step_time_s == pytest.approx(4.5)
    pause = [
        TrainingEvent(kind="save_start", t_ns=ns(150), step=20),
        TrainingEvent(kind="save_commit", t_ns=ns(170), step=20),
    ]
    assert summary([*events, *pause]).avg_step_time_s == pytest.approx(3.5)


def test_averages_of_nothing_but_warmup_are_absent():
    assert summary([START, step(1, 30, seconds=30)], warmup_steps=5).avg_step_time_s is None


def test_averages_are_over_every_attempt():
    lines = [step(n, n, seconds=1.0) for n in range(1, 11)]
    again = [step(n, 100 + 2 * n, seconds=2.0) for n in range(1, 11)]
    exits = [TrainingEvent(kind="abort", t_ns=ns(20)), replace(START, t_ns=ns(100))]
    found = summary([START, *lines, *exits, *again])
    assert (found.avg_step_time_s, found.interruptions, found.highest_step) == (1.5, 1, 10)


def test_excerpt_of_a_log_keeps_its_first_record_in_the_averages():
    events = [step(n, n, seconds=2.0, tflops=80.0 + n) for n in (40, 60, 80)]
    run = account(events, LedgerParams())
    assert run.summary.avg_tflops_per_gpu == 140
    assert run.summary.warmup_records == 0
    assert "starts_midway" in run.flags
    assert run.executed_steps == 60


def test_steps_without_times_are_counted_and_give_no_ratio():
    facts = [START, TrainingEvent(kind="window_close", t_ns=ns(500))]
    untimed = [step(n, seq=n, seconds=0.5) for n in (10, 20, 30)]
    run = account([*facts, *untimed], LedgerParams(succeeded=True))
    assert set(run.ratios.values()) == {None}
    assert (run.summary.step_records, run.summary.last_step) == (3, 30)
    assert run.summary.avg_step_time_s == 0.5
    assert "no_timestamps" in run.flags
    assert sum(run.ledger_ns.values()) == run.window_ns == ns(500)


def test_no_step_gives_zero_in_a_known_window_and_nothing_in_an_unknown_one():
    known = measured("open; start; pass 100; end; close", succeeded=True)
    assert set(known.ratios.values()) == {0}
    unknown = measured("start; pass 100; loading")
    assert set(unknown.ratios.values()) == {None}
    ready = measured("open; start; ready 0; pass 100; end", succeeded=True)
    assert ready.ratios["goodput"] == 0
    assert "no_steps" in ready.flags


def test_window_of_no_length_gives_no_ratio():
    run = account(
        [TrainingEvent(kind="window_open", t_ns=5), TrainingEvent(kind="window_close", t_ns=5)],
        LedgerParams(),
    )
    assert run.window_ns == 0
    assert set(run.ratios.values()) == {None}
    assert set(account([], LedgerParams()).ratios.values()) == {None}


def test_gpu_hours_weigh_each_interval_with_the_gpus_held():
    events = events_of(
        "start; ready 0; run 3600; crash; pass 3600; start; ready 3600; run 3600; end"
    )
    starts = [at for at, event in enumerate(events) if event.kind == "proc_start"]
    events[starts[0]] = replace(events[starts[0]], gpus=64)
    events[starts[1]] = replace(events[starts[1]], gpus=32)
    run = account(events, LedgerParams(reference_step_s=1))
    assert {name: hours for name, hours in run.gpu_hours.items() if hours} == {
        "useful": 96,
        "reschedule": 64,
    }
    assert run.flags == ("gpus_changed",)


def test_productivity_is_scheduling_times_runtime_times_program():
    events = [
        replace(event, tflops_per_gpu=495.0) if event.kind == "step" else event
        for event in events_of("open; pass 100; start; pass 50; ready 0; run 100; save 50; end")
    ]
    run = account(events, LedgerParams(reference_step_s=1, peak_tflops_per_gpu=990))
    assert run.productivity is not None
    assert run.productivity.scheduling == pytest.approx(200 / 300)
    assert run.productivity.runtime == pytest.approx(100 / 200)
    assert run.productivity.program == pytest.approx(0.5)
    assert run.productivity.product == pytest.approx(100 / 300 / 2)
    assert account(events, LedgerParams()).productivity is None


def test_windows_near_the_end_of_an_open_run_are_provisional():
    script = "open; start; ready 0; 4 * (run 100; save 10); run 50"
    running = measured(script + "; close")
    assert [w.is_provisional for w in rolling_windows(running, ns(100))] == [False] * 3 + [True] * 2
    assert window_ratios(running, 0, ns(380)).is_provisional is False
    assert window_ratios(running, 0, ns(381)).is_provisional is True
    over = measured(script + "; end")
    assert not any(window.is_provisional for window in rolling_windows(over, ns(100)))


def test_windows_of_no_width_are_refused():
    with pytest.raises(ValueError, match="width_ns must be above 0, got 0"):
        rolling_windows(measured("start; ready 0; run 5; end"), 0)


def test_window_outside_the_run_has_no_ratio():
    run = measured("start; ready 0; run 5; end")
    assert set(window_ratios(run, ns(10), ns(20)).ratios.values()) == {None}


def test_window_of_a_provisional_run_reads_higher_before_the_crash_is_known():
    script = "open; start; ready 0; 2 * (run 100; save 10); run 50; pass 30; close"
    assert measured(script).ratios["ledger"] == pytest.approx(250 / 300)
    with_crash = "open; start; ready 0; 2 * (run 100; save 10); run 50; crash; pass 30; close"
    assert measured(with_crash).ratios["ledger"] == pytest.approx(200 / 300)


CRASHES = "open; start; ready 0; 3 * (run 100; save 10; run 50; crash; pass 30; start; pass 30; ready 100)"


def test_advice_needs_three_interruptions_and_a_blocking_save():
    run = measured(CRASHES + "; run 100; end")
    advice = advice_of(run)
    assert advice is not None
    mtbf_s = run.window_ns / SECOND / 3
    assert advice.mtbf_s == pytest.approx(mtbf_s)
    assert advice.blocking_s == 10
    assert advice.young_interval_s == pytest.approx((2 * 10 * mtbf_s) ** 0.5)
    assert run.checkpointing.mean_restart_s == 60
    assert 0 < advice.expected_ettr < 1
    assert "Young's interval is" in advice.line()
    assert advice_of(measured(CRASHES.replace("3 *", "2 *") + "; run 100; end")) is None
    assert advice_of(measured(CRASHES.replace("save 10; ", "") + "; run 100; end")) is None


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"reference_step_s": 0.0}, "reference_step_s must be a number above 0, got 0.0"),
        ({"reference_step_s": float("nan")}, "reference_step_s must be a number above 0, got nan"),
        ({"gpus": -1}, "gpus must be a number of at least 0, got -1"),
        ({"step_counter": "both"}, "step_counter must be global or local, got 'both'"),
    ],
)
def test_params_that_cannot_be_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        LedgerParams(**params)
