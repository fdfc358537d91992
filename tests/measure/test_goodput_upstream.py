"""NVIDIA's controller on the same facts: where its figure is ours, and where it is a trap.

Times are seconds after 10:00:00; training is ready when upstream sees its first step.
"""

from dataclasses import replace

import pytest

from pytest_cre.evidence.model import JobFacts
from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.goodput import account
from pytest_cre.measure.lifecycle import goodput_status
from tests.measure.histories import events_of, ledger_s, measured, ns

JOB = JobFacts(kind="Job", name="train", uid="uid-1", terminal="succeeded", started_ns=0)


def status(script, *, ended_s, terminal="succeeded", now_s=None):
    job = replace(JOB, terminal=terminal, terminal_ns=ns(ended_s))
    now_ns = ns(ended_s if now_s is None else now_s)
    return goodput_status(job, events_of(script), LedgerParams(reference_step_s=1), now_ns=now_ns)


def test_interruption_and_checkpoint_overheads_give_upstreams_ratio():
    lost = "open; start; pass 70; ready 0; run 6630; save 45; run 900; crash; pass 150; start; ready 6630;"
    run = measured(lost + "run 6605; end")
    assert run.window_ns == ns(14400)
    assert run.ratios["goodput"] == pytest.approx(0.928772, abs=1e-6)
    saves = measured("open; start; ready 0; run 3240; save 360; end")
    assert saves.ratios["goodput"] == pytest.approx(0.9, abs=1e-9)


@pytest.mark.parametrize("now_s", [700, 760, 5000])
def test_result_does_not_depend_on_when_it_was_sampled(now_s):
    # Upstream: 0.833333, 0.850746 or 0.750000, by the time of its first sample.
    found = status("start; pass 100; ready 0; run 600", ended_s=700, now_s=now_s)
    assert found.fields["result"] == "0.857143"


def test_restart_keeps_the_start_of_the_window():
    # Upstream: 0.885965 where it keeps the start, 0.821918 where its Job controller moves it.
    found = status(
        "start; ready 0; run 900; run 300; crash; pass 180; start; pass 90; ready 900; run 2130",
        ended_s=3600,
    )
    assert found.fields["result"] == "0.885965"
    assert found.fields["lostWorkTimeSec"] == "300.000000"
    assert found.fields["rescheduleTimeSec"] == "180.000000"
    assert found.fields["resumeTimeSec"] == "90.000000"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("start; ready 0; run 600; crash", "0.000000"),  # upstream, without a checkpoint: 1.000000
        ("start; ready 0; run 300; save 0; run 300; crash", "0.500000"),  # upstream too
        # A restart that never came, then the failure. Upstream counts the same loss twice: 0.000000
        ("start; ready 0; run 300; save 0; run 300; crash; start; crash", "0.500000"),
    ],
)
def test_failed_job_keeps_what_was_durable(script, expected):
    assert status(script, ended_s=600, terminal="failed").fields["result"] == expected


def test_every_save_counts_once_also_several_in_a_minute_and_again_after_a_rollback():
    # Upstream: 12 of the first two, none of the third.
    run = measured(
        "open; start; ready 0; run 100; save 10; run 100; save 12; crash; start; ready 100; run 50;"
        "save 9; end"
    )
    assert ledger_s(run)["checkpoint_blocking"] == 31


def test_lines_never_go_back_behind_what_was_seen():
    whole = status("start; ready 0; run 100", ended_s=100)
    assert (whole.fields["currentStep"], whole.fields["highestStep"]) == (100, 100)
    back = status("start; ready 0; run 100; save 1; crash; start; ready 80; run 10", ended_s=111)
    assert (back.fields["currentStep"], back.fields["highestStep"]) == (90, 100)


def test_line_after_the_terminal_time_is_no_step():
    found = status("start; ready 0; run 10 x 59; pass 1; run 1 x 10", ended_s=600)
    assert found.fields["currentStep"] == 10


def test_clock_that_puts_the_new_process_before_the_exit_costs_nothing():
    events = events_of(
        "open; start; ready 0; run 20; save 1; crash; start; pass 5; ready 20; run 20; end"
    )
    early = [
        replace(e, t_ns=e.t_ns - ns(0.5)) if e.kind == "proc_start" and e.t_ns else e
        for e in events
    ]
    run = account(early, LedgerParams(reference_step_s=1))
    assert ledger_s(run) == {"useful": 40, "checkpoint_blocking": 1, "init": 5}
    assert run.ratios["goodput"] <= 1
