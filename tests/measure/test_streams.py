"""Several streams of one Job: on one clock, without copies, with the pods' facts beside them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cre.catalog.logprofile import EventPattern, LogProfile
from pytest_cre.evidence.model import GroupEvidence, JobFacts, LogStream, PodFacts
from pytest_cre.measure.instants import parse_rfc3339
from pytest_cre.measure.measurement import Meter, measure_group, measure_streams
from tests.measure.megatron import EPOCH_NS, clock, step_line
from tests.measure.reading import measured
from tests.measure.tables import stamped, table, text

SECOND = 10**9


def at(seconds):
    return EPOCH_NS + round(seconds * SECOND)


def line(seconds, words, *, kubelet_late=0.0, zone_s=0.0, own=True):
    stamp = clock(at(seconds + kubelet_late)).replace(" ", "T")
    words = words.format(time=clock(at(seconds + zone_s)))
    return f"{stamp}000Z {words}\n"


def steps(first, last, start, *, apart=1.0, **keywords):
    return [
        line(
            start + (n - first) * apart,
            step_line(
                n, at(start + (n - first) * apart + keywords.get("zone_s", 0)), apart * SECOND
            ),
            **keywords,
        )
        for n in range(first, last + 1)
    ]


def save(step, start, lasted=10.0, **keywords):
    return [
        line(start, f" [{{time}}] saving checkpoint at iteration {step:7d} to /c", **keywords),
        line(
            start + lasted,
            f"  successfully saved checkpoint from iteration {step:7d} to /c",
            **keywords,
        ),
    ]


def load(step, start, lasted, **keywords):
    return [
        line(start, " loading checkpoint from /c", **keywords),
        line(
            start + lasted,
            f"  successfully loaded checkpoint from /c [ t 1/1, p 1/1 ] at iteration {step}",
            **keywords,
        ),
    ]


def begin(seconds):
    return [
        line(seconds, "using world size: 16, data-parallel size: 16, context-parallel size: 1, x")
    ]


def crashed():
    """A run whose restart after step 130 loads step 100: 100 + 10 + 30 + 30 + 10 + 100 s and an end."""
    first = [*begin(0), *load(0, 0, 0), *steps(1, 100, 1), *save(100, 100), *steps(101, 130, 111)]
    second = [
        *begin(170),
        *load(100, 170, 10),
        *steps(101, 200, 181),
        line(280, "[after training is done] datetime: x"),
    ]
    return first, second


def joined(lines):
    return "".join(lines).encode()


def ledger(measurement):
    return {name: seconds for name, seconds in measurement.training.ledger_s.items() if seconds}


def test_restart_in_one_log_is_accounted_for():
    first, second = crashed()
    measurement = measured(joined(first + second))
    assert measurement.training.attempts == 2
    assert measurement.training.summary.interruptions == 1
    assert ledger(measurement) == {
        "useful": 200,
        "rework": 30,
        "checkpoint_blocking": 10,
        "reschedule": 30,
        "load": 10,
    }
    assert {"exit_unknown"} <= set(measurement.training.flags)


def test_rank_zero_and_last_rank_give_the_same_as_one_log():
    first, second = crashed()
    whole = measured(joined(first + second))
    is_step = ["elapsed time" in each for each in first + second]
    by_rank = [each for each, step in zip(first + second, is_step, strict=True) if not step]
    last_rank = [each for each, step in zip(first + second, is_step, strict=True) if step]
    split = measured("".join(by_rank).encode(), "".join(last_rank).encode())
    assert ledger(split) == ledger(whole)
    assert split.training.steps == whole.training.steps
    assert split.training.checkpoints == whole.training.checkpoints


def test_attempt_whose_start_is_in_no_log_is_told():
    first, second = crashed()
    by_rank = [each for each in first if "elapsed time" not in each]
    last_rank = [each for each in first if "elapsed time" in each]
    after_its_start = [each for each in by_rank if "saving" in each or "saved" in each]
    for rank_zero, is_unseen in ((by_rank, False), (after_its_start, True), ([], True)):
        found = measured(joined(rank_zero), joined(last_rank))
        assert ("start_unseen" in found.training.flags) == is_unseen
    # A start that comes later is that of a restart.
    restarted = [*after_its_start, *(each for each in second if "elapsed time" not in each)]
    assert "start_unseen" in measured(joined(restarted), joined(last_rank)).training.flags
    assert "start_unseen" in measured(joined(first[3:] + second)).training.flags
    assert "start_unseen" not in measured(joined(first + second)).training.flags
    # Lines that come after the start and before the first step prove as much.
    assert "start_unseen" not in measured(joined([*load(100, 170, 10), *second[3:]])).training.flags


@pytest.mark.parametrize("has_start", [True, False])
def test_profile_without_a_start_asks_for_none(has_start):
    patterns = {
        "trainingStep": EventPattern(regex=r"at step (?P<iteration>\d+)$"),
        "applicationStart": EventPattern(regex="^hello$"),
    }
    if not has_start:
        del patterns["applicationStart"]
    profile = LogProfile(name="own", patterns=patterns)
    words = [line(n, f"at step {n}") for n in range(1, 31)]
    found = measured(joined(words), profile=profile)
    assert ("start_unseen" in found.training.flags) == has_start
    greeted = measured(joined([line(0, "hello"), *words]), profile=profile)
    assert "start_unseen" not in greeted.training.flags


@settings(max_examples=6)
@given(st.data())
def test_lines_dealt_to_any_number_of_pods_give_the_same(data):
    first, second = crashed()
    lines = (first + second)[::3] if data.draw(st.booleans()) else first + second
    pods = data.draw(st.integers(2, 4))
    dealt = [[] for _ in range(pods)]
    for each in lines:
        dealt[data.draw(st.integers(0, pods - 1))].append(each)
    whole, split = (
        measured("".join(lines).encode()),
        measured(*("".join(pod).encode() for pod in dealt)),
    )
    assert [s.step for s in split.training.steps] == [s.step for s in whole.training.steps]
    assert split.training.ratios == whole.training.ratios
    assert ledger(split) == ledger(whole)


def test_copies_from_other_ranks_change_nothing():
    first, second = crashed()
    late = [
        each.replace(".000000000Z", ".000300000Z", 1)
        for each in first + second
        if "elapsed time" in each
    ]
    whole, copied = (
        measured(joined(first + second)),
        measured(joined(first + second), "".join(late).encode()),
    )
    assert (
        copied.training.summary.step_records
        == whole.training.summary.step_records
        == len(copied.training.steps)
    )
    assert ledger(copied) == pytest.approx(ledger(whole), abs=0.01)


def test_every_line_twice_changes_nothing():
    first, second = crashed()
    twice = "".join(each for line in first + second for each in (line, line)).encode()
    assert ledger(measured(twice)) == ledger(measured(joined(first + second)))


@pytest.mark.parametrize("skew_s", [7.0, -7.0, 3600.0])
def test_skewed_clock_of_a_pod_is_estimated_named_and_undone(skew_s):
    first, second = crashed()
    lifecycle = [each for each in first + second if "elapsed time" not in each]
    shifted = [
        each.replace(
            each[:26], clock(parse_rfc3339(each[:30]) + round(skew_s * SECOND)).replace(" ", "T"), 1
        )
        for each in [*begin(0), *load(0, 0, 0), *save(100, 100), *begin(170), *load(100, 170, 10)]
    ]
    shifted = [line.replace(clock(at(100)), clock(at(100 + skew_s))) for line in shifted]
    assert len(lifecycle) == len(shifted) + 1  # the last line of all is left out
    step_lines = [each for each in first + second if "elapsed time" in each]
    run = measured("".join(shifted).encode(), "".join(step_lines).encode()).training
    assert "clock_skew" in run.flags
    assert run.skews_s == {"pod-0": pytest.approx(-skew_s, abs=1.01)}
    assert run.ledger_s["rework"] == 30
    assert run.ledger_s["useful"] == pytest.approx(200, abs=2)


@pytest.mark.parametrize("zone_h", [-8, 5.5, 9, 0])
def test_applications_zone_is_derived_from_the_kubelets_times(zone_h):
    zone_s = zone_h * 3600
    log = [*begin(0), *load(0, 0, 0), *steps(1, 20, 1, zone_s=zone_s), *save(20, 20, zone_s=zone_s)]
    run = measured("".join(log).encode()).training
    assert run.steps[0].time_ns == at(1)
    assert run.ledger_s["checkpoint_blocking"] == 10
    assert "zone_unknown" not in run.flags


def test_zone_that_few_lines_tell_is_not_trusted():
    run = measured("".join(steps(1, 3, 1, zone_s=3600)).encode()).training
    assert "zone_unknown" in run.flags
    assert [s.time_ns for s in run.steps] == [at(1), at(2), at(3)]


def buffered(words):
    flush = at(100)
    return "".join(f"{clock(flush).replace(' ', 'T')}000Z {each}\n" for each in words).encode()


def test_burst_with_the_applications_times_is_only_flagged():
    lines = [step_line(n, at(n), SECOND) for n in range(1, 31)]
    run = measured(buffered(lines)).training
    assert "buffered" in run.flags
    assert [s.time_ns for s in run.steps] == [at(n) for n in range(1, 31)]


def test_burst_without_times_is_spread_by_the_printed_step_times():
    lines = [step_line(n, at(n), SECOND).partition("] ")[2] for n in range(1, 31)]
    run = measured(buffered(lines)).training
    assert "buffered" in run.flags
    assert [s.time_ns for s in run.steps] == [at(70 + n) for n in range(1, 31)]


def test_log_without_times_still_tells_steps():
    lines = [step_line(n, at(n), SECOND).partition("] ")[2] for n in range(1, 31)]
    measurement = measured(text(lines))
    run = measurement.training
    assert len(run.steps) == 30
    assert run.summary.avg_step_time_s == 1.0
    assert set(run.ratios.values()) == {None}
    assert "no_timestamps" in run.flags
    assert run.steps[-1].time_ns is None


def test_log_interval_and_coverage_are_told_per_record():
    numbers = [1, 10, 20, 30, 20, 30]
    lines = [line(n, step_line(number, at(n), SECOND)) for n, number in enumerate(numbers)]
    run = measured("".join(lines).encode()).training
    assert [s.covers for s in run.steps] == [1, 9, 10, 10, 10, 10]


def test_caught_exception_is_no_interruption_when_the_next_step_follows():
    log = [
        *begin(0),
        *load(0, 0, 0),
        *steps(1, 20, 1),
        line(20.5, "Traceback (most recent call last):"),
        line(20.5, "OSError: wandb"),
        *steps(21, 40, 21),
    ]
    measurement = measured("".join(log).encode())
    assert (measurement.training.failure, measurement.training.summary.interruptions) == (None, 0)


def test_exception_after_which_the_steps_begin_again_is_an_interruption():
    first, second = crashed()
    crash = [line(140, "Traceback (most recent call last):"), line(140.5, "RuntimeError: NCCL")]
    run = measured(joined(first + crash + second)).training
    assert (run.attempts, run.summary.interruptions, run.failure) == (2, 1, None)
    # The silence from step 130 at 140 s until 140.5 s is shorter than a step: work in flight.
    assert ledger(measured(joined(first + crash + second))) == {
        "useful": 200,
        "rework": 30.5,
        "checkpoint_blocking": 10,
        "reschedule": 29.5,
        "load": 10,
    }


def test_exception_at_the_end_fails_the_run_with_its_line():
    first, _ = crashed()
    crash = [line(140, "Traceback (most recent call last):"), line(140.5, "RuntimeError: NCCL")]
    measurement = measured("".join(first + crash).encode())
    assert (measurement.status, measurement.reasons) == ("failed", ("failure",))
    assert measurement.training.failure == "RuntimeError: NCCL"


PROFILE = LogProfile(
    name="megatron-training",
    patterns={
        "trainingStep": EventPattern(
            regex=r"\] iteration +(?P<iteration>\d+)/ *\d+ \|.*\(ms\): (?P<elapsedTime>[\d.]+) \|",
            units={"elapsedTime": "ms"},
        )
    },
)
BANDWIDTH = LogProfile(
    name="nccl-bandwidth",
    patterns={
        "bandwidthResult": EventPattern(
            regex=r"^\s*(?P<size>\d+)\s+\d+\s+\w+\s+\w+\s+-?\d+\s+[\d.]+\s+(?P<algBW>[\d.]+)\s+(?P<busBW>[\d.]+)"
        )
    },
)


def group(*logs, pods=(), terminal="succeeded", terminal_s=290.0, **changes):
    job = JobFacts(
        kind="Job",
        name="train",
        uid="u",
        terminal=terminal,
        started_ns=at(-20),
        terminal_ns=None if terminal == "none" else at(terminal_s),
    )
    given = {
        "entry": "training/x",
        "scale": "full",
        "group": "g0",
        "attempt": 0,
        "nodes": ("node-0", "node-1"),
        "gpus_per_node": 8,
        "ranks_planned": 16,
        "architecture": "h100",
        "is_simulated": False,
        "job": job,
        "pods": tuple(pods),
        "logs": tuple(logs),
    }
    return GroupEvidence(**{**given, **changes})


def pod(name, started_s, finished_s=None, exit_code=None, **keywords):
    return PodFacts(
        name=name,
        uid=name,
        node="node-0",
        completion_index=0,
        attempt=keywords.pop("attempt", 0),
        phase="Succeeded",
        started_ns=at(started_s),
        finished_ns=None if finished_s is None else at(finished_s),
        exit_code=exit_code,
        **keywords,
    )


def stream(name, lines, **keywords):
    return LogStream(pod=name, data="".join(lines).encode(), **{"is_complete": True, **keywords})


def test_group_takes_exits_and_window_from_pods_and_job():
    first, second = crashed()
    evidence = group(
        stream("a", first),
        stream("b", second, attempt=1),
        pods=[pod("a", -10, 150, 1), pod("b", 165, 285, 0, attempt=1)],
    )
    measurement = measure_group(evidence, PROFILE)
    assert (measurement.status, measurement.reasons) == ("complete", ())
    run = measurement.training
    assert (run.window_s, run.attempts, run.framework) == (300.0, 2, "megatron-lm")
    assert ledger(measurement) == {
        "useful": 200,
        "rework": 31,  # 30 steps lost, and one that was in flight
        "hang": 9,
        "checkpoint_blocking": 10,
        "reschedule": 15,
        "init": 15,
        "load": 10,
        "other": 10,
    }
    assert run.gpu_hours["useful"] == pytest.approx(200 * 16 / 3600)
    assert sum(run.ledger_s.values()) == run.window_s


def test_group_measured_twice_is_the_same():
    first, second = crashed()
    evidence = group(stream("a", first + second), pods=[pod("a", 0, 285, 0)])
    assert measure_group(evidence, PROFILE) == measure_group(evidence, PROFILE)


def test_container_restarted_in_place_is_another_attempt():
    first, second = crashed()
    evidence = group(
        stream("a", first, restart_count=0),
        stream("a", second, restart_count=1),
        pods=[pod("a", 168, 285, 0, restart_count=1)],
    )
    run = measure_group(evidence, PROFILE).training
    assert (run.attempts, run.summary.interruptions) == (2, 1)
    assert run.ledger_s["reschedule"] == 28.0


@pytest.mark.parametrize(
    ("changes", "reason", "status"),
    [
        ({"has_gap": True}, "log-gap", "incomplete"),
        ({"is_complete": False}, "log-incomplete", "incomplete"),
        ({"terminal": "failed"}, "job-failed", "failed"),
        ({"terminal": "none"}, "job-unfinished", "incomplete"),
        ({"ranks_planned": 32}, "fewer-ranks", "incomplete"),
    ],
)
def test_group_of_a_whole_table_still_carries_what_is_missing(changes, reason, status):
    of_log = {key: changes[key] for key in ("has_gap", "is_complete") if key in changes}
    of_group = {key: changes[key] for key in ("terminal", "ranks_planned") if key in changes}
    log = LogStream(pod="a", data=text(stamped(table(ranks=16))), **{"is_complete": True, **of_log})
    measurement = measure_group(group(log, **of_group), BANDWIDTH)
    assert reason in measurement.reasons
    assert measurement.status == status


def test_group_reads_the_table_of_the_newest_attempt_only():
    failed = LogStream(
        pod="a", data=text([*stamped(table(ranks=16)[:15]), "Segmentation fault"]), is_complete=True
    )
    whole = LogStream(pod="b", data=text(stamped(table(ranks=16))), attempt=1, is_complete=True)
    measurement = measure_group(group(failed, whole), BANDWIDTH)
    assert (measurement.status, len(measurement.bandwidth.tables)) == ("complete", 1)


def test_group_without_logs_is_no_data():
    assert measure_group(group(), BANDWIDTH).status == "no-data"
    assert measure_group(group(), BANDWIDTH).reasons == ("no-data",)


def test_group_that_never_stepped_has_ratios_of_zero():
    evidence = group(stream("a", begin(1)), pods=[pod("a", 0, 200, 0)], terminal_s=200)
    measurement = measure_group(evidence, PROFILE)
    assert measurement.reasons == ("no-steps",)
    assert measurement.training.ratios["goodput"] == 0.0
    assert ledger(measurement) == {"init": 200}


def test_streams_in_memory_and_a_meter_give_the_same():
    first, second = crashed()
    logs = [stream("a", first), stream("b", second, attempt=1)]
    measurement = measure_streams(
        logs, window_start_ns=at(0), window_end_ns=at(285), succeeded=True
    )
    assert measurement.status == "complete"
    assert measurement.training.window_s == 285.0
    assert (
        measure_streams([replace(each, attempt=0) for each in logs]).training.steps
        == measurement.training.steps
    )


def test_meter_without_streams_is_no_data():
    assert Meter().result().status == "no-data"
