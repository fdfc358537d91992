"""A workload that ends early lives again from its checkpoint: when it may, how often, what is kept."""

import threading

import pytest

from pytest_cre.catalog.entry import Checkpoint
from pytest_cre.errors import UnmetNeed
from pytest_cre.evidence.store import masked, read_workflow, write_workflow
from pytest_cre.run.clocks import RunTiming
from pytest_cre.run.ledger import read_ledger

QUICK = RunTiming(poll_s=0.1, gone_s=1.0, drain_s=1.0, record_s=0.0)
LINE = b"2026-01-01T00:00:00.000000001Z %s of rank %d\n"
KINDS = ("Job", "Pod", "Service", "PersistentVolumeClaim")


@pytest.fixture
def plan(make_plan):
    """Return a plan whose workload may be restarted so many times."""

    def make(max_restarts=3, **changes):
        checkpoint = Checkpoint(path="/checkpoints", max_restarts=str(max_restarts))
        return make_plan(measures="training", checkpoint=checkpoint, **changes)

    return make


class Lives:
    """Plays the lives of a Job one after the other: `fail`, `hang` or `pass`."""

    def __init__(self, play_pass, *ends):
        self._play_pass, self._ends = play_pass, list(ends)
        self.jobs = []

    def __call__(self, cluster, job):
        self.jobs.append(job)
        number = len(self.jobs)
        end = self._ends.pop(0)
        if end == "pass":
            self._play_pass(cluster, job)
            return
        pods = [cluster.add_pod(job, index, f"n{index + 1}", suffix=f"life{number}")
                for index in (0, 1)]  # fmt: skip
        for index, pod in enumerate(pods):
            cluster.run_pod(pod)
            cluster.logs[pod["metadata"]["name"]] = LINE % (b"life %d" % number, index)
        if end == "fail":
            for pod in pods:
                cluster.end_pod(pod, exit_code=1)
            cluster.end_job(job, "Failed", "BackoffLimitExceeded", "it failed")


def codes(group):
    return [problem.code for problem in group.problems]


def left_in(cluster):
    return [f"{kind}/{each['metadata']['name']}" for kind in KINDS for each in cluster.find(kind)]


def committed(step):
    return lambda *_: step


def test_failed_workload_with_a_checkpoint_is_created_again_and_its_end_counts(
    cluster, run, plan, play_pass, ledger, tmp_path
):
    lives = cluster.on_job = Lives(play_pass, "fail", "pass")

    evidence = run(plan(), resume_step=committed(20))

    (group,) = evidence.groups
    assert codes(group) == []
    assert group.job.terminal == "succeeded"
    assert group.job.uid == lives.jobs[1]["metadata"]["uid"]
    (restart,) = group.restarts
    assert (restart.step, restart.last_attempt) == (20, 0)
    assert restart.job.uid == lives.jobs[0]["metadata"]["uid"]
    assert [each.code for each in restart.problems] == ["job-failed"]
    assert [(pod.completion_index, pod.attempt) for pod in group.pods] == [
        (0, 0), (0, 1), (1, 0), (1, 1),
    ]  # fmt: skip
    assert [pod.name for pod in group.last_pods] == [
        each.name for each in group.pods if each.attempt == 1
    ]
    assert [log.attempt for log in group.logs] == [0, 1, 0, 1]
    assert all(log.is_complete for log in group.logs)
    assert group.logs[0].data == LINE % (b"life 1", 0)
    assert group.queue_s is not None
    assert left_in(cluster) == []
    assert all(each.is_deleted for each in read_ledger(ledger.path) if each.kind != "ConfigMap")
    write_workflow(tmp_path / "evidence", evidence)
    assert read_workflow(tmp_path / "evidence") == masked(evidence)


def test_claim_is_made_once_and_outlives_the_restart(cluster, run, plan, play_pass):
    seen = []
    lives = Lives(play_pass, "fail", "pass")

    def play(fake, job):
        seen.extend(each["metadata"]["uid"] for each in fake.find("PersistentVolumeClaim"))
        lives(fake, job)

    cluster.on_job = play
    run(plan(), resume_step=committed(20))

    assert len(seen) == 2
    assert len(set(seen)) == 1
    assert cluster.find("PersistentVolumeClaim") == []


def test_old_workload_and_its_pods_are_gone_before_the_next_is_created(
    cluster, run, plan, play_pass
):
    lives = Lives(play_pass, "fail", "pass")
    pods_there = []

    def play(fake, job):
        pods_there.append(len(fake.find("Pod")))
        lives(fake, job)

    cluster.on_job = play
    run(plan(), resume_step=committed(20))

    assert pods_there == [0, 0]


def test_stalled_workload_lives_again_with_its_log_up_to_the_cut(cluster, run, plan, play_pass):
    cluster.on_job = Lives(play_pass, "hang", "pass")

    (group,) = run(
        plan(), resume_step=committed(20), is_stalled=lambda seen: b"life 1" in seen.logs[0].data
    ).groups

    assert codes(group) == []
    assert group.job.terminal == "succeeded"
    assert [each.code for each in group.restarts[0].problems] == ["stalled"]
    first = [log for log in group.logs if log.attempt == 0]
    assert [(log.is_cut, log.is_complete, log.is_whole) for log in first] == [
        (True, False, True)
    ] * 2
    assert first[0].data == LINE % (b"life 1", 0)


def test_workload_that_somebody_deletes_lives_again(cluster, run, plan, play_pass):
    lives = Lives(play_pass, "hang", "pass")

    def delete(fake, job):
        with fake.lock:
            fake.remove(job)
            fake.collect_garbage(job)

    def play(fake, job):
        lives(fake, job)
        if len(lives.jobs) == 1:
            threading.Timer(0.3, delete, (fake, job)).start()

    cluster.on_job = play
    (group,) = run(plan(), resume_step=committed(20)).groups

    assert group.job.terminal == "succeeded"
    assert [each.code for each in group.restarts[0].problems] == ["vanished"]
    # Its pods went with it, so what they wrote at last was never read: that stays a doubt.
    assert set(codes(group)) <= {"log-incomplete", "log-unavailable"}
    assert not all(log.is_whole for log in group.logs)


def test_workload_without_a_committed_checkpoint_is_not_restarted_and_told(
    cluster, run, plan, play_pass
):
    lives = cluster.on_job = Lives(play_pass, "fail", "pass")

    def nothing(*_):
        raise UnmetNeed("the logs prove no checkpoint")

    (group,) = run(plan(), resume_step=nothing).groups

    assert codes(group) == ["job-failed", "not-restarted"]
    assert group.problems[1].message == "not restarted: the logs prove no checkpoint"
    assert group.restarts == ()
    assert len(lives.jobs) == 1
    assert left_in(cluster) == []


def test_restarts_end_at_the_most_that_is_allowed(cluster, run, plan, play_pass):
    lives = cluster.on_job = Lives(play_pass, "fail", "fail", "fail", "pass")

    (group,) = run(plan(2), resume_step=committed(20)).groups

    assert len(lives.jobs) == 3
    assert len(group.restarts) == 2
    assert [restart.last_attempt for restart in group.restarts] == [0, 1]
    assert codes(group) == ["job-failed", "not-restarted"]
    assert (
        group.problems[1].message == "not restarted: it was restarted 2 times already (maxRestarts)"
    )
    assert group.job.terminal == "failed"


def test_workload_that_may_not_be_restarted_is_not_and_nobody_is_asked(
    cluster, run, plan, play_pass
):
    lives = cluster.on_job = Lives(play_pass, "fail", "pass")
    asked = []

    (group,) = run(plan(0), resume_step=lambda *each: asked.append(each)).groups

    assert (codes(group), len(lives.jobs), asked) == (["job-failed"], 1, [])


def test_run_deadline_counts_over_all_lives(cluster, run, plan, play_pass):
    cluster.on_job = Lives(play_pass, "hang", "hang")
    stalled = []

    def is_stalled(seen):
        stalled.append(seen)
        return len(stalled) == 2  # looked at every 0.3 s

    (group,) = run(plan(timeout_s=1.5), resume_step=committed(20), is_stalled=is_stalled).groups

    assert len(group.restarts) == 1
    assert codes(group) == ["run-timeout"]
    message = group.problems[0].message
    left_s = float(message.removeprefix("not done within ").partition(" s ")[0])
    assert 0 < left_s < 1.3


def test_failed_hardware_and_lost_pods_are_no_reason_to_restart(cluster, run, plan, play_pass):
    lives = Lives(play_pass, "hang", "pass")

    def play(fake, job):
        lives(fake, job)
        if len(lives.jobs) == 1:
            node = fake.find("Node", "n1")[0]
            fake.put({**node, "spec": {"unschedulable": True}})

    cluster.on_job = play
    (group,) = run(plan(), resume_step=committed(20)).groups

    assert codes(group) == ["hardware-failed"]
    assert len(lives.jobs) == 1


def test_interrupt_while_a_workload_is_restarted_leaves_nothing(cluster, run, plan, play_pass):
    stop = threading.Event()
    cluster.on_job = Lives(play_pass, "fail", "pass")

    def step(*_):
        stop.set()
        return 20

    (group,) = run(plan(), resume_step=step, stop=stop).groups

    assert "interrupted" in codes(group)
    assert left_in(cluster) == []


def test_journal_keeps_the_logs_of_lives_that_ended(cluster, run, plan, play_pass):
    cluster.on_job = Lives(play_pass, "fail", "hang")
    flushed = []

    def record(evidence, logs):
        flushed.append([(log.stream.attempt, log.read(0, log.whole_bytes)) for log in logs])

    run(
        plan(timeout_s=0.8),
        resume_step=committed(20),
        record=record,
        timing=QUICK,
    )

    assert (0, LINE % (b"life 1", 0)) in flushed[-1]
    assert (1, LINE % (b"life 2", 0)) in flushed[-1]
