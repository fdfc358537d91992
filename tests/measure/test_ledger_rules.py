"""How doubts are settled: attempts, exits, resumes, saves, clocks."""

from dataclasses import replace

import pytest

from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.events import TrainingEvent
from pytest_cre.measure.goodput import account
from tests.measure.histories import SECOND, events_of, ledger_s, measured, ns

RESUMED = {"useful": 200, "rework": 50, "checkpoint_blocking": 20, "reschedule": 40, "init": 20}
CRASH = "open; start; ready 0; run 100; save 10; run 50; crash; pass 40; start; pass 20; ready 100; run 100; save 10; end"


def event(kind, t_s, **more):
    return TrainingEvent(kind=kind, t_ns=ns(t_s), **more)


def accounted(events, **params):
    return account(events, LedgerParams(**{"reference_step_s": 1.0, **params}))


def in_stream(script, stream):
    return [replace(each, stream=stream) for each in events_of(script)]


# Attempts


def test_attempts_have_a_row_each():
    rows = measured(CRASH).attempts
    assert [(r.start_ns, r.ready_ns, r.exit_ns) for r in rows] == [
        (0, 0, 160 * SECOND),
        (200 * SECOND, 220 * SECOND, 330 * SECOND),
    ]
    assert [(r.resume_step, r.last_step, r.executed_steps, r.lost_steps) for r in rows] == [
        (0, 150, 150, 50),
        (100, 200, 100, 0),
    ]
    assert [r.reason for r in rows] == ["unknown", "succeeded"]


def test_pods_that_start_and_end_one_after_another_are_one_attempt():
    events = [
        *[event("proc_start", t, stream=pod) for pod, t in (("a", 0), ("b", 3))],
        *in_stream("pass 10; ready 0; run 50", "a"),
        *[event("abort", t, stream=pod) for pod, t in (("a", 60), ("b", 65))],
        *[event("proc_start", t, stream=pod) for pod, t in (("a", 63), ("b", 70))],
        *in_stream("pass 80; ready 0; run 20; end", "a"),
    ]
    run = accounted(events)
    assert run.interruptions == 1
    assert ledger_s(run) == {"init": 25, "rework": 51, "hang": 4, "useful": 20}
    assert [row.exit_ns for row in run.attempts] == [65 * SECOND, 100 * SECOND]


def test_process_that_dies_twice_in_start_up_is_two_attempts_even_without_exits():
    run = measured("start; pass 30; start; pass 30; start; pass 10; ready 0; run 10; end")
    assert run.interruptions == 2
    assert ledger_s(run) == {"reschedule": 60, "init": 10, "useful": 10}
    assert run.flags == ("exit_unknown",)


def test_counter_that_goes_back_without_a_start_is_a_restart():
    run = measured("start; ready 0; run 100; save 10; run 50; pass 30; at 100; run 100; end")
    # The steps from 101 on begin a second before their first line; what lies before is the restart.
    assert ledger_s(run) == {
        "useful": 200,
        "rework": 50,
        "checkpoint_blocking": 10,
        "reschedule": 30,
    }
    assert run.flags == (
        "exit_unknown",
        "implicit_restart",
        "last_steps_not_durable",
        "resume_inferred",
    )


def test_load_after_steps_in_one_stream_is_a_restart_even_if_no_step_repeats():
    run = measured("start; ready 0; run 100; save 10; load 20 100; run 50; save 10; end")
    assert ledger_s(run) == {"useful": 150, "checkpoint_blocking": 20, "load": 20}
    assert run.interruptions == 1
    assert run.flags == ("exit_unknown", "implicit_restart")


def test_attempts_in_two_files_are_told_apart_without_any_start():
    first = in_stream("run 100; save 10; run 50", "a.log")
    second = in_stream("pass 220; at 100; run 100; save 10", "b.log")
    run = accounted([*first, *second])
    assert ledger_s(run) == {
        "useful": 200,
        "rework": 50,
        "checkpoint_blocking": 20,
        "reschedule": 60,
    }
    assert len(run.attempts) == 2


def test_late_copies_of_a_rank_that_is_still_written_are_copies():
    events = in_stream("start; ready 0; run 20; end", "rank-0")
    late = [
        replace(each, t_ns=each.t_ns + ns(5), stream="rank-1")
        for each in events
        if each.kind == "step" and each.step < 12
    ]
    run = accounted([*events, *late])
    assert (len(run.attempts), run.copies, run.summary.step_records) == (1, 11, 20)
    assert ledger_s(run) == {"useful": 20}


def test_steps_without_a_start_after_an_exit_are_a_new_attempt():
    run = measured("start; ready 0; run 100; save 10; crash; pass 30; run 50; end")
    assert run.interruptions == 1
    assert ledger_s(run) == {"useful": 150, "checkpoint_blocking": 10, "reschedule": 30}


def test_line_within_the_tolerance_after_an_exit_belongs_before_it():
    events = [*events_of("start; ready 0; run 10"), event("abort", 9.5, t_source="api")]
    assert len(accounted(events).attempts) == 1
    assert accounted(events).attempts[0].exit_ns == 10 * SECOND
    assert len(accounted([*events[:-1], event("abort", 8.5)], tolerance_s=0.4).attempts) == 2


def test_named_attempts_are_trusted():
    events = [replace(each, attempt=3) for each in events_of("start; ready 0; run 10; crash")]
    more = events_of("pass 12; start; ready 5; run 10; end")
    run = accounted([*events, *[replace(each, attempt=4) for each in more]])
    assert ledger_s(run) == {"useful": 15, "rework": 5, "reschedule": 2}


# Exits and the end of the window


def test_exit_of_the_last_attempt_is_the_end_of_a_failed_job():
    run = measured("open; start; ready 0; run 50; pass 100; close", succeeded=False)
    assert ledger_s(run) == {"rework": 51, "hang": 99}
    assert run.flags == ()
    assert run.interruptions == 1


def test_success_of_the_job_outweighs_a_killed_pod():
    run = measured("open; start; ready 0; run 50; pass 5; crash; close", succeeded=True)
    assert ledger_s(run) == {"useful": 50, "other": 5}
    assert run.interruptions == 0


def test_log_that_just_ends_books_no_hang():
    run = measured("start; ready 0; run 100; async 2 32")
    assert ledger_s(run) == {"useful": 100, "checkpoint_blocking": 2, "other": 30}
    assert run.flags == ("exit_unknown",)
    assert run.is_provisional


def test_time_after_an_abort_is_reschedule_while_the_job_goes_on_and_other_once_it_failed():
    script = "open; start; ready 0; run 50; save 10; crash; pass 40; close"
    assert ledger_s(measured(script)) == {"useful": 50, "checkpoint_blocking": 10, "reschedule": 40}
    assert ledger_s(measured(script, succeeded=False))["other"] == 40


def test_events_after_the_end_of_the_window_are_dropped_and_counted():
    events = [*events_of("open; start; ready 0; run 100"), event("window_close", 60)]
    run = accounted(events, succeeded=True)
    assert (run.window_ns, run.after_close, run.summary.last_step) == (60 * SECOND, 40, 60)
    assert ledger_s(run) == {"useful": 60}
    assert run.flags == ("events_after_end",)


@pytest.mark.parametrize("pass_s", [0.53, 1.03, 1.33, 1.48])
def test_window_that_ends_on_a_whole_second_leaves_the_pace_of_the_last_steps_as_it_was(pass_s):
    script = f"open; start; pass {pass_s}; ready 0; run 50 x 0.05 every 10; end"
    ended = int(pass_s + 2.5)  # seconds, as the API has it: up to two lines are later
    events = [each for each in events_of(script) if each.kind != "end"]
    events += [event("end", ended), event("window_close", ended)]
    run = account(events, LedgerParams(succeeded=True))
    assert run.reference_step_s == pytest.approx(0.05)
    assert (run.window_ns, run.summary.last_step) == (ended * SECOND, 50)
    assert ledger_s(run) == {
        "init": pytest.approx(pass_s),
        "useful": pytest.approx(ended - pass_s),
    }


def test_window_that_opens_late_cuts_the_ledger():
    run = accounted([*events_of("start; pass 10; ready 0; run 50; end"), event("window_open", 30)])
    assert ledger_s(run) == {"useful": 30}


# Resume and readiness


def test_load_that_ends_without_a_line_lasts_until_the_first_step_began():
    run = measured("start; pass 5; loading; pass 20; at 0; run 50; end")
    assert ledger_s(run) == {"init": 5, "load": 20, "useful": 50}


def test_ready_line_after_the_load_ends_the_start_up():
    events = [*events_of("start; load 10 0; pass 15; run 20; end"), event("train_ready", 25)]
    assert ledger_s(accounted(events)) == {"load": 10, "init": 15, "useful": 20}


def test_first_step_too_far_to_have_been_reached_means_an_older_run():
    # 5,000 steps of 1 s do not fit into 30 s: the job came from a checkpoint that no line names.
    run = measured("start; pass 29; at 5000; run 100; end")
    assert ledger_s(run) == {"init": 29, "useful": 100}
    assert run.executed_steps == 100
    assert run.flags == ("resume_inferred", "starts_midway")


def test_log_that_was_rotated_away_is_credited_where_the_steps_fit():
    run = measured("start; pass 5000; at 5000; run 100; end")
    assert ledger_s(run) == {"useful": 5100}
    assert run.flags == ("resume_inferred", "start_unseen")


@pytest.mark.parametrize(
    ("script", "is_unseen"),
    [
        ("start; ready 0; run 50 every 10; end", False),
        ("start; ready 0; pass 10; at 10; run 40 every 10; end", True),
        ("start; ready 95; run 25 every 10 first; end", False),
        ("start; ready 95; run 25 every 10; end", False),
        ("start; ready 95; pass 5; at 100; run 20 every 10; end", True),
        ("start; ready 0; run 100; save 10; crash; start; at 100; run 50; end", False),
        ("start; ready 0; run 100; save 10; crash; start; pass 5; at 105; run 50; end", True),
        # Where steps are counted from 0, the one that was loaded is done first.
        ("start; ready 100; at 99; run 50; end", False),
        # One line only: nothing tells how often steps are printed.
        ("start; ready 0; run 10 every 10; end", True),
    ],
)
def test_lines_of_the_first_steps_that_are_missing_are_told(script, is_unseen):
    assert ("start_unseen" in measured(script).flags) == is_unseen


def test_printed_step_time_tells_when_the_first_step_began():
    events = events_of("start; pass 31; run 1; run 50; end")
    first = next(at for at, each in enumerate(events) if each.kind == "step")
    events[first] = replace(events[first], step_time_s=25.0)
    assert ledger_s(accounted(events)) == {"init": 7, "warmup": 24, "useful": 51}


def test_counter_behind_the_loaded_step_is_never_shifted_by_guess():
    run = measured("start; ready 0; run 100; save 10; crash; start; ready 100; at 0; run 50; end")
    assert run.attempts[1].resume_step == 0
    assert ledger_s(run) == {"rework": 100, "checkpoint_blocking": 10, "useful": 50}
    assert "counter_restarted" in run.flags


def test_checkpoint_in_memory_keeps_steps_that_no_line_saved():
    run = measured("start; ready 0; run 100; crash; start; pass 5; ready 98; run 50; end")
    assert ledger_s(run) == {"useful": 148, "rework": 2, "init": 5}


def test_checkpoint_that_was_gone_behind_does_not_save_the_end():
    # 200 was saved but 100 resumed: at the final failure only 100 counts, whatever the number 200 says.
    run = measured("start; ready 0; 2 * (run 100; save 10); crash; start; ready 100; run 50; crash")
    assert ledger_s(run) == {"useful": 100, "rework": 150, "checkpoint_blocking": 20}


# Saves and evaluations


def test_asynchronous_save_blocks_until_it_is_scheduled():
    run = measured("start; ready 0; run 100; async 2 32; run 100; end")
    assert ledger_s(run) == {"useful": 200, "checkpoint_blocking": 2}


def test_asynchronous_save_without_an_unblock_line_blocks_for_what_the_step_lasted_longer():
    events = [
        e
        for e in events_of("start; ready 0; run 100; async 2 32; run 100; end")
        if e.kind != "save_unblock"
    ]
    assert ledger_s(accounted(events)) == {"useful": 200, "checkpoint_blocking": 2}


def test_save_without_any_end_blocks_until_the_next_step_began_or_the_exit():
    script = "start; ready 0; run 100; async 2; run 100; async 5; crash"
    events = [e for e in events_of(script) if e.kind != "save_unblock"]
    run = accounted(events)
    # The crash comes with the second save open; its start shows that the first was safe.
    assert ledger_s(run) == {"useful": 100, "rework": 100, "checkpoint_blocking": 7}


def test_save_in_a_log_that_never_confirms_is_durable_once_the_next_one_starts():
    run = measured("start; ready 0; run 100; async 2; run 100; async 2; run 50; crash")
    assert ledger_s(run) == {"useful": 100, "rework": 150, "checkpoint_blocking": 4}
    assert "commit_unseen" in run.flags


def test_saves_of_ranks_are_one_pause_and_one_save():
    events = events_of("start; ready 0; run 100; save 10; run 100; end")
    ranks = [
        replace(each, t_ns=each.t_ns + ns(shift), stream=f"rank-{shift}")
        for each in events
        for shift in (0.25, 0.5)
        if each.kind.startswith("save")
    ]
    run = accounted([*events, *ranks])
    assert run.checkpointing.saves == 1
    # The last rank goes on half a second later, within the second of the next step.
    assert ledger_s(run) == {"useful": 199.5, "checkpoint_blocking": 10.5}


def test_save_line_that_tells_its_duration_blocked_before_it():
    events = events_of("start; ready 0; run 100; pass 10; run 100; end")
    line = event("save_commit", 110, step=100, duration_s=10.0)
    assert ledger_s(accounted([*events, line])) == {"useful": 200, "checkpoint_blocking": 10}


def test_save_lines_without_a_step_are_of_the_step_just_done():
    events = [
        replace(each, step=None) if each.kind.startswith("save") else each
        for each in events_of(CRASH)
    ]
    assert ledger_s(accounted(events)) == RESUMED
    assert accounted(events).durable_step == 200


def test_evaluation_inside_a_save_counts_once():
    events = [*events_of("start; ready 0; run 10; save 10; run 10; end")]
    overlapping = [event("eval_start", 5.0), event("eval_end", 12.0)]
    assert ledger_s(accounted([*events, *overlapping])) == {
        "useful": 15,
        "eval": 5,
        "checkpoint_blocking": 10,
    }


def test_evaluation_without_an_end_lasts_until_the_next_step_began():
    events = [
        e for e in events_of("start; ready 0; run 10; eval 7; run 10; end") if e.kind != "eval_end"
    ]
    assert ledger_s(accounted(events)) == {"useful": 20, "eval": 7}


def test_save_inside_a_sparse_segment_is_cut_out_of_it():
    run = measured(
        "start; ready 0; run 45 every 30; save 10; run 45 every 30; end", log_interval=30
    )
    assert ledger_s(run) == {"useful": 90, "checkpoint_blocking": 10}


# Reference, clocks, gaps


def test_reference_needs_twenty_steps():
    few, enough = ("start; ready 0; run 20 x 2; end", "start; ready 0; run 21 x 2; end")
    assert measured(few, reference_step_s=None).reference_step_s is None
    assert measured(few, reference_step_s=None).ratios["throughput_fraction"] is None
    assert "reference_unknown" in measured(few, reference_step_s=None).flags
    run = measured(enough, reference_step_s=None)
    assert (run.reference_step_s, run.reference_source) == (2, "estimated")
    assert "reference_estimated" in run.flags


def test_reference_leaves_first_steps_pauses_and_stalls_out():
    script = (
        "start; ready 0; run 1 x 60; run 40 x 2; save 10; run 40 x 2; run 1 x 90; run 9 x 2; end"
    )
    run = measured(script, reference_step_s=None)
    assert run.reference_step_s == 2
    assert ledger_s(run) == {
        "useful": 182,
        "warmup": 58,
        "straggler": 88,
        "checkpoint_blocking": 10,
    }


def test_timestamps_in_whole_seconds_invent_no_stragglers():
    events = events_of("start; ready 0; run 100 x 0.4; end")
    whole = [
        replace(each, t_ns=each.t_ns // SECOND * SECOND, step_time_s=0.4)
        if each.kind == "step"
        else each
        for each in events
    ]
    run = accounted(whole, reference_step_s=None)
    assert run.reference_step_s == pytest.approx(0.4)
    assert ledger_s(run) == {"useful": 40}


def test_gap_before_an_exit_is_not_a_hang():
    events = events_of("start; ready 0; run 10; pass 100; crash; start; ready 10; run 5; end")
    gap = event("gap", 20, until_ns=ns(110))
    assert ledger_s(accounted([*events, gap])) == {
        "useful": 15,
        "rework": 1,
        "hang": 9,
        "other": 90,
    }


def test_load_line_that_a_late_clock_puts_after_the_first_step_is_clamped():
    events = in_stream("start; pass 10; run 20; end", "last")
    load = event("load_end", 12.5, step=0, stream="first")
    run = accounted([*events, load])
    assert ledger_s(run) == {"init": 11, "useful": 19}
    assert (run.clamped, run.flags) == (1, ("clamped",))
