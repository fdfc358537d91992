import threading

import pytest

from pytest_cre.cluster.retry import RetryPolicy
from pytest_cre.evidence.model import JobFacts, PodFacts
from pytest_cre.run.clocks import PhaseTimes, phase_times, scheduled_ns, until_stopped

S = 10**9


def pod(uid, started_s, *, attempt=0):
    started_ns = None if started_s is None else started_s * S
    return PodFacts(
        name=uid, uid=uid, node="n", completion_index=0, attempt=attempt, phase="Running",
        started_ns=started_ns,
    )  # fmt: skip


JOB = JobFacts(
    kind="Job", name="j", uid="j", terminal="succeeded", created_ns=100 * S, terminal_ns=190 * S
)


def test_phases_end_with_the_last_pod():
    times = phase_times(JOB, [pod("a", 130), pod("b", 140)], {"a": 110 * S, "b": 120 * S}, 2)

    assert times == PhaseTimes(queue_s=20, start_s=20, run_s=50)


def test_phases_of_a_replaced_pod_do_not_count_as_start():
    pods = [pod("a", 130), pod("again", 180, attempt=1)]

    assert phase_times(JOB, pods, {"a": 110 * S, "again": 170 * S}, 1).start_s == 20


@pytest.mark.parametrize(
    ("job", "pods", "scheduled", "expected"),
    [
        (None, [], {}, PhaseTimes()),
        (JOB, [pod("a", 130)], {"a": 110 * S}, PhaseTimes()),  # of two
        (JOB, [pod("a", None), pod("b", None)], {"a": 110 * S, "b": 110 * S}, PhaseTimes(queue_s=10)),
    ],
)  # fmt: skip
def test_phases_without_a_time_are_not_known(job, pods, scheduled, expected):
    assert phase_times(job, pods, scheduled, 2) == expected


@pytest.mark.parametrize(
    ("conditions", "time_ns"),
    [
        (None, None),
        ([{"type": "PodScheduled", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}], None),
        ([{"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:00:02Z"}], 2 * S),
    ],
)  # fmt: skip
def test_scheduled_is_the_time_of_the_true_condition(conditions, time_ns):
    assert scheduled_ns({"status": {"conditions": conditions}}) == time_ns


def test_retries_end_with_an_interrupt_and_not_before():
    stop = threading.Event()
    policy = until_stopped(RetryPolicy(budget_s=1000, first_pause_s=0.001), stop)
    pauses = policy.pauses()

    assert pauses.wait()
    stop.set()
    assert not pauses.wait()


def test_request_that_begins_after_the_interrupt_is_tried_once():
    stop = threading.Event()
    policy = until_stopped(RetryPolicy(budget_s=1000), stop)
    stop.set()

    assert not policy.pauses().wait()
