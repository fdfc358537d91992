"""Logs as a person would keep them, and the ledgers that a person writes down beside them."""

from fractions import Fraction

import pytest

from pytest_cre.measure.instants import parse_rfc3339
from tests.measure import diary
from tests.measure.diary import (
    crashes,
    ends,
    evaluates,
    fresh,
    is_step,
    kubelet,
    loads,
    log,
    ready,
    saves,
    saves_async,
    starts,
    steps,
    watchdog,
)
from tests.measure.reading import measured

BEGUN = [*starts(0), *fresh(30), *ready(40)]

CRASH_AFTER_THE_LAST_SAVE = [
    *[*BEGUN, *steps(1, 100, 40, of=200), *saves(100, 240, 12), *steps(101, 130, 252, of=200)],
    *[*crashes(320), *starts(355), *loads(100, 360, 10), *ready(375)],
    *[*steps(101, 200, 375, of=200), *saves(200, 575, 12), *ends(587)],
]
ASYNC_NEVER_COMMITTED = [
    *[*BEGUN, *steps(1, 100, 40, of=400), *saves_async(100, 240, 3, 40)],
    *[*steps(101, 200, 243, of=400), *saves_async(200, 443, 3), *steps(201, 230, 446, of=400)],
    *[*crashes(510), *starts(540), *loads(100, 545, 10), *steps(101, 400, 555, of=400)],
    *[*saves_async(400, 1155, 3, 30), *ends(1190)],
]
OLDER_CHECKPOINT = [
    *[*BEGUN, *steps(1, 100, 40, of=300), *saves(100, 240, 12), *steps(101, 200, 252, of=300)],
    *[*saves(200, 452, 12), *steps(201, 250, 464, of=300), *crashes(564), *starts(600)],
    *[*loads(100, 605, 10), *steps(101, 300, 615, of=300), *saves(300, 1015, 12), *ends(1027)],
]
HANG = [
    *[*BEGUN, *steps(1, 100, 40, of=200), *saves(100, 240, 12), *steps(101, 150, 252, of=200)],
    *[*watchdog(952), *starts(1000), *loads(100, 1005, 10), *steps(101, 200, 1015, of=200)],
    *[*saves(200, 1215, 12), *ends(1227)],
]
DIARIES = {
    # 101 to 130 are lost, and 8 s of steps that no line tells of
    "crash after the last save": (
        CRASH_AFTER_THE_LAST_SAVE,
        {
            "useful": 400,
            "rework": 68,
            "checkpoint_blocking": 24,
            "reschedule": 35,
            "init": 50,
            "load": 10,
        },
    ),
    # 101 to 230 are lost, and 4 s; the end waits 32 s for the last write
    "asynchronous save that never committed": (
        ASYNC_NEVER_COMMITTED,
        {
            "useful": 800,
            "rework": 264,
            "checkpoint_blocking": 9,
            "reschedule": 30,
            "init": 45,
            "load": 10,
            "other": 32,
        },
    ),
    # 101 to 250 are lost, although 200 was saved
    "resume from an older checkpoint": (
        OLDER_CHECKPOINT,
        {
            "useful": 600,
            "rework": 300,
            "checkpoint_blocking": 36,
            "reschedule": 36,
            "init": 45,
            "load": 10,
        },
    ),
    # of 600 s of silence, 20 s may be the ten steps that no line tells of
    "hang of 600 s": (
        HANG,
        {
            "useful": 400,
            "rework": 120,
            "hang": 580,
            "checkpoint_blocking": 24,
            "reschedule": 48,
            "init": 45,
            "load": 10,
        },
    ),
}
FORMS = {
    "one file": lambda entries: [log(entries)],
    "mpirun tags": lambda entries: [log(entries, tag="[1,15]<stdout>:")],
    "a clock of another zone": lambda entries: [log(entries, zone_s=-7 * 3600)],
    "two files": lambda entries: [
        log(entries[: len(entries) // 3]),
        log(entries[len(entries) // 3 :]),
    ],
    "first and last rank": lambda entries: [
        log(each for each in entries if not is_step(each)),
        log(each for each in entries if is_step(each)),
    ],
}


def nonzero(run):
    return {name: seconds for name, seconds in run.ledger_s.items() if seconds}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", DIARIES)
def test_log_gives_the_ledger_that_a_person_writes_down(name, form):
    entries, ledger = DIARIES[name]
    measurement = measured(*FORMS[form](entries))
    run = measurement.training
    assert nonzero(run) == pytest.approx(ledger, abs=1e-6)
    assert measurement.status == "complete"
    assert (run.attempts, run.summary.interruptions) == (2, 1)
    assert run.window_s == max(second for second, _ in entries)


def test_log_without_the_kubelets_times_tells_what_its_own_times_do():
    # The window opens when training is ready; start and load have no time, and the crash that of step 130.
    # The save that a step followed ended where that began; of the last one nothing tells.
    run = measured(log(CRASH_AFTER_THE_LAST_SAVE, stamps=False)).training
    assert nonzero(run) == {
        "useful": 400,
        "rework": 60,
        "checkpoint_blocking": 12,
        "init": 63,
        "other": 12,
    }
    assert run.window_s == 547
    assert "no_timestamps" in run.flags
    assert (run.attempts, run.summary.interruptions) == (2, 1)


@pytest.mark.parametrize("reschedule_s", [0, 30, 40, 60])
def test_seed_written_as_a_log_gives_its_row_of_the_table(reschedule_s):
    def run(first, last, second):
        return steps(first, last, second, of=1000, lasts=1.0, every=1)

    entries, second = [*starts(0), *fresh(0)], 0
    resumed = 0
    for crash, last in ((250, 200), (730, 700), (None, 1000)):
        for done in range(resumed, last, 100):
            entries += [*run(done + 1, done + 100, second), *saves(done + 100, second + 100, 10)]
            second += 110
        if crash is not None:
            entries += [*run(last + 1, crash, second), *crashes(second + crash - last)]
            second += crash - last + reschedule_s
            entries += starts(second)
            second += 60 - reschedule_s
            entries += loads(last, second, 0)
            resumed = last
    entries += ends(second)
    measurement = measured(log(entries))
    ratios = measurement.training.ratios
    assert measurement.training.window_s == second == 1300
    assert (
        ratios["ledger"] == ratios["runtime"] == ratios["strict_durable"] == float(Fraction(10, 13))
    )
    assert ratios["throughput_fraction"] == float(Fraction(54, 65))
    assert ratios["goodput"] == pytest.approx(1000 / (1300 - 2 * reschedule_s), abs=1e-12)


def evaluated(*, has_timer):
    return [
        *[*BEGUN, *steps(1, 100, 40, of=200), *evaluates(100, 240, 15, has_timer=has_timer)],
        *[*saves(100, 255, 12), *steps(101, 200, 267, of=200)],
        *[*evaluates(200, 467, 15, has_timer=has_timer), *saves(200, 482, 12), *ends(494)],
    ]


@pytest.mark.parametrize("has_timer", [True, False])
def test_evaluation_without_a_heading_is_told_by_its_timer_or_by_the_step_it_names(has_timer):
    run = measured(log(evaluated(has_timer=has_timer))).training
    assert nonzero(run) == pytest.approx(
        {"useful": 400, "checkpoint_blocking": 24, "init": 40, "eval": 30}, abs=1e-6
    )


def test_evaluation_between_sparse_lines_begins_when_its_step_was_done():
    entries = [
        *[*BEGUN, *steps(1, 105, 40, of=200), *evaluates(105, 250, 15, has_timer=False)],
        *steps(106, 200, 265, of=200),
    ]
    run = measured(log(entries)).training
    assert nonzero(run)["eval"] == pytest.approx(15, abs=1e-6)
    assert nonzero(run)["useful"] == pytest.approx(400, abs=1e-6)


def test_evaluation_timer_without_any_time_is_a_pause_of_its_length():
    run = measured(log(evaluated(has_timer=True), stamps=False)).training
    assert run.ledger_s["eval"] >= 15
    assert run.ledger_s["useful"] == 400


def step_time(last, second, *, label="MODEL_TFLOP/s/GPU"):
    return [
        (second + n * 2.0, f"Step Time : 2.00s GPU utilization: 663.5{label}")
        for n in range(1, last + 1)
    ]


@pytest.mark.parametrize("label", ["MODEL_TFLOP/s/GPU", "TFLOP/s/GPU", " TFLOP/s/GPU"])
def test_bridge_step_times_without_numbers_are_counted(label):
    measurement = measured(log([*BEGUN, *step_time(100, 40, label=label), *ends(240)]))
    run = measurement.training
    assert run.framework == "megatron-bridge"
    assert [each.step for each in run.steps] == list(range(1, 101))
    assert {each.tflops_per_gpu for each in run.steps} == {663.5}
    assert run.ledger_s["useful"] == pytest.approx(200, abs=1e-6)
    assert "steps_counted" in run.flags


@pytest.mark.parametrize("form", ["one file", "first and last rank"])
def test_bridge_records_with_numbers_take_the_place_of_counted_steps(form):
    entries = [*BEGUN, *step_time(100, 40), *steps(1, 100, 40, of=100), *ends(240)]
    run = measured(*FORMS[form](entries)).training
    assert [each.step for each in run.steps] == list(range(10, 101, 10))
    assert run.ledger_s["useful"] == pytest.approx(200, abs=1e-6)
    assert "steps_counted" not in run.flags


def maxtext(*, stamps):
    def line(second, words):
        own = diary.clock(second).replace("-", "")[4:]
        return (
            f"{kubelet(second) + ' ' if stamps else ''}I{own} 139876543210 train.py:123] {words}\n"
        )

    lines = [
        line(0, "System Information: Jax Version: 0.8.1"),
        line(20, "No existing checkpoints found, not restoring checkpoint."),
    ]
    for n in range(60):
        lasted = 30 if n == 0 else 2
        words = f"completed step: {n}, seconds: {lasted}.000, TFLOP/s/device: 400.1, loss: 9.0"
        lines.append(line(50 + n * 2, words))
    return "".join(lines).encode()


@pytest.mark.parametrize("stamps", [True, False])
def test_absl_times_are_times_of_maxtext(stamps):
    run = measured(maxtext(stamps=stamps)).training
    assert nonzero(run) == {"init": 20, "warmup": 28, "useful": 120}
    assert run.ratios["strict_durable"] == 0  # the step 0 is a step, and nothing saved it
    assert ("year_unknown" in run.flags) is not stamps


def test_absl_times_take_the_year_of_the_window():
    start_ns = parse_rfc3339("2026-03-01T10:00:00Z")
    run = measured(
        maxtext(stamps=False), window_start_ns=start_ns, window_end_ns=start_ns + 180 * 10**9
    ).training
    assert run.steps[0].time_ns == start_ns + 50 * 10**9
    assert run.window_s == 180
    assert "year_unknown" not in run.flags


@pytest.mark.parametrize("name", DIARIES)
def test_lines_read_twice_or_in_windows_that_overlap_change_nothing(name):
    whole = log(DIARIES[name][0])
    lines = whole.splitlines(keepends=True)
    usual = measured(whole)
    for again in ([each for line in lines for each in (line, line)], [*lines[:40], *lines[25:]]):
        found = measured(b"".join(again))
        assert found.training == usual.training
        assert (found.status, found.reasons) == (usual.status, usual.reasons)


def test_success_line_that_is_printed_twice_is_one_save():
    again = [*saves(200, 575, 12)[1:], *ends(588)]
    found = measured(log([*CRASH_AFTER_THE_LAST_SAVE[:-1], *again])).training
    assert [each.step for each in found.checkpoints if each.event == "save_done"] == [100, 200]
