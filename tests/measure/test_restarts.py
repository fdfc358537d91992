"""Several lives of one workload in one ledger: every second of a restart is charged, by hand."""

from dataclasses import replace

import pytest

from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.evidence.model import GroupEvidence, JobFacts, LogStream, PodFacts, Problem, Restart
from pytest_cre.measure.measurement import measure_group

ZERO_S = 1_767_571_200  # 2026-01-05T00:00:00Z
SECOND_NS = 10**9


def at(seconds):
    return f"2026-01-05T00:{seconds // 60:02}:{seconds % 60:02}.000000"


def line(seconds, text):
    return f"{at(seconds)}000Z {text}\n"


def step(seconds, number):
    return line(
        seconds,
        f" [{at(seconds)}] iteration {number:8d}/     100 | consumed samples:          100 | "
        "elapsed time per iteration (ms): 1000.0 | throughput per GPU (TFLOP/s/GPU): 400.0 | "
        "learning rate: 1.0E-04 | global batch size:    16 | lm loss: 2.0E+00 |",
    )


def save(seconds, number):
    """Save synchronously, for two seconds."""
    return line(
        seconds, f"[{at(seconds)}] saving checkpoint at iteration {number:7d} to /c in torch format"
    ) + line(
        seconds + 2, f"  successfully saved checkpoint from iteration {number:7d} to /c [ t 1/1 ]"
    )


def ready(seconds):
    return line(seconds, f"[before the start of training step] datetime: {at(seconds)[:19]} ")


# Starts at 0, ready at 5, a step a second, 40 steps saved at 45 to 47, 10 more, silence from 57 on.
FIRST = (
    ready(5)
    + "".join(step(5 + n, n) for n in range(1, 41))
    + save(45, 40)
    + "".join(step(47 + n, 40 + n) for n in range(1, 11))
)
# Starts at 90, loads from 92 to 95, goes on from step 40 to 100 at 155, ends at 156.
SECOND = (
    line(92, " loading checkpoint from /c at iteration 40")
    + line(95, "  successfully loaded checkpoint from /c [ t 1/1 ] at iteration 40")
    + ready(95)
    + "".join(step(95 + n, 40 + n) for n in range(1, 61))
    + line(156, f"[after training is done] datetime: {at(156)[:19]} ")
)


def pod(attempt, started_s, finished_s, exit_code):
    return PodFacts(
        name=f"j-0-{attempt}",
        uid=f"p{attempt}",
        node="n1",
        completion_index=0,
        attempt=attempt,
        phase="Failed" if exit_code else "Succeeded",
        exit_code=exit_code,
        started_ns=(ZERO_S + started_s) * SECOND_NS,
        finished_ns=(ZERO_S + finished_s) * SECOND_NS,
    )


def job(uid, terminal, ended_s):
    return JobFacts(
        kind="Job",
        name="j",
        uid=uid,
        terminal=terminal,
        terminal_ns=(ZERO_S + ended_s) * SECOND_NS,
    )


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(suites=(shipped_suites(),), profiles=(shipped_profiles(),))


@pytest.fixture
def lived_twice():
    """A life that ends at 60 and one from 90 to 156; `how` says what the first one's end was."""

    def make(code, exit_code=1, ended_s=60, **of_log):
        first = replace(
            LogStream(pod="j-0-0", data=FIRST.encode(), attempt=0, completion_index=0),
            **of_log,
        )
        second = LogStream(
            pod="j-0-1", data=SECOND.encode(), attempt=1, completion_index=0, is_complete=True
        )
        return GroupEvidence(
            entry="training/nemotron5-8b",
            scale="full-scale",
            group="group-0",
            attempt=0,
            nodes=("n1",),
            gpus_per_node=8,
            ranks_planned=8,
            architecture="h100",
            is_simulated=True,
            job=job("second", "succeeded", 157),
            pods=(pod(0, 0, ended_s, exit_code), pod(1, 90, 156, 0)),
            logs=(first, second),
            restarts=(
                Restart(
                    job=job("first", "failed", 61),
                    problems=(Problem(code=code, message="it ended"),),
                    step=40,
                    last_attempt=0,
                ),
            ),
        )

    return make


def ledger(measured):
    return {name: value for name, value in measured.training.ledger_s.items() if value}


def test_crash_after_a_save_charges_lost_steps_restart_and_load_to_the_second(lived_twice, catalog):
    evidence = lived_twice("job-failed", is_complete=True)

    measured = measure_group(evidence, catalog.log_profiles["megatron-training"])

    assert (measured.status, measured.training.attempts) == ("complete", 2)
    assert measured.training.summary.interruptions == 1
    assert measured.training.window_s == 157
    assert ledger(measured) == pytest.approx(
        {
            "init": 5 + 2,  # to the first step's start; from the second process to its load
            "useful": 40 + 60,
            "checkpoint_blocking": 2,
            # Steps 41 to 50 are done again. A line comes every ten steps, so the three seconds from 57
            # to 60 may have been three more.
            "rework": 10 + 3,
            "reschedule": 30,  # from 60 to 90
            "load": 3,
            "other": 2,  # after the last step
        }
    )
    # Of 157 s the lost work, the start-ups, the restart and the save; the restart is not in the whole.
    assert measured.training.ratios["goodput"] == pytest.approx((157 - 13 - 10 - 30 - 2) / 127)
    assert measured.training.ratios["ledger"] == pytest.approx(100 / 157)


def test_stall_that_the_run_ended_is_a_hang_up_to_that_moment(lived_twice, catalog):
    evidence = lived_twice("stalled", exit_code=143, ended_s=85, is_cut=True)

    measured = measure_group(evidence, catalog.log_profiles["megatron-training"])

    assert measured.status == "complete"
    found = ledger(measured)
    # Of the 28 s from 57 to 85 ten may have been steps under way.
    assert (found["rework"], found["hang"], found["reschedule"]) == pytest.approx((20, 18, 5))


def test_log_of_a_life_that_was_not_read_to_its_end_is_incomplete(lived_twice, catalog):
    evidence = lived_twice("vanished")

    measured = measure_group(evidence, catalog.log_profiles["megatron-training"])

    assert measured.status == "incomplete"
    assert "log-incomplete" in measured.reasons


def test_checkpoint_of_the_first_life_is_what_a_restart_may_rest_on(lived_twice, catalog):
    evidence = lived_twice("job-failed", is_complete=True)
    first = replace(
        evidence,
        job=job("first", "failed", 61),
        pods=evidence.pods[:1],
        logs=evidence.logs[:1],
        restarts=(),
    )
    profile = catalog.log_profiles["megatron-training"]

    assert measure_group(first, profile).training.durable_step == 40
    unsaved = replace(first.logs[0], data=FIRST.partition("  successfully")[0].encode())
    assert measure_group(replace(first, logs=(unsaved,)), profile).training.durable_step == 0
