import threading
from dataclasses import replace

import pytest

from pytest_cre.run.ledger import read_ledger
from tests.run.conftest import QUICK


def codes(group):
    return [problem.code for problem in group.problems]


def ours(cluster):
    """Return everything of the run that is still there, its owner aside."""
    kinds = ("Job", "Pod", "Service", "ConfigMap", "Lease")
    found = [f"{kind}/{each['metadata']['name']}" for kind in kinds for each in cluster.find(kind)]
    return [name for name in found if name != "ConfigMap/cre-k3f2a"]


def test_workflow_that_passes_keeps_logs_pods_and_times_and_leaves_nothing(cluster, run, play_pass):
    cluster.on_job = play_pass

    evidence = run()

    (group,) = evidence.groups
    assert group.problems == ()
    assert group.job.terminal == "succeeded"
    assert [pod.node for pod in group.pods] == ["n1", "n2"]
    assert [log.data for log in group.logs] == [
        b"2026-01-01T00:00:00.000000001Z line of rank 0\n",
        b"2026-01-01T00:00:00.000000001Z line of rank 1\n",
    ]
    assert all(log.is_complete and not log.has_gap for log in group.logs)
    assert group.ranks_planned == 16
    assert (group.queue_s, group.start_s, group.run_s) == (pytest.approx(0, abs=1),) * 3
    assert [each.node for each in evidence.excluded] == ["n9"]
    assert evidence.leftovers == ()
    assert ours(cluster) == []


def test_workflow_object_is_in_the_ledger_before_it_is_created(cluster, run, ledger, monkeypatch):
    known = []

    def look(_cluster, job):
        known.append((job["metadata"]["name"], {each.name for each in read_ledger(ledger.path)}))
        _cluster.end_job(job)

    cluster.on_job = look
    run()

    [(job, in_ledger)] = known
    assert job in in_ledger


def test_workflow_removed_objects_are_told_in_the_ledger(cluster, run, ledger, play_pass):
    cluster.on_job = play_pass
    run()

    still_there = [each.name for each in read_ledger(ledger.path) if not each.is_deleted]
    assert still_there == ["cre-k3f2a"]


def test_workflow_groups_on_disjoint_nodes_run_at_the_same_time(cluster, run, make_plan, play_pass):
    both = threading.Barrier(2, timeout=5)

    def together(fake, job):
        both.wait()
        play_pass(fake, job)

    cluster.on_job = together
    evidence = run(make_plan(nodes=("n1", "n2"), scale="intra-node"))

    assert [codes(group) for group in evidence.groups] == [[], []]
    assert [group.nodes for group in evidence.groups] == [("n1",), ("n2",)]


def test_workflow_groups_that_share_a_node_never_overlap(cluster, run, make_plan, play_pass):
    running, most = set(), []

    def track(fake, job):
        group = job["metadata"]["labels"]["cre.pytest.org/group"]
        running.add(group)
        most.append(set(running))
        play_pass(fake, job)

    original = cluster.remove

    def remove(item):
        if item["kind"] == "Job":
            running.discard(item["metadata"]["labels"]["cre.pytest.org/group"])
        original(item)

    cluster.on_job, cluster.remove = track, remove
    evidence = run(make_plan(nodes=("n1", "n2", "n3"), scale="2"))

    assert [group.group for group in evidence.groups] == ["group-0", "group-1-overflow"]
    assert most == [{"group-0"}, {"group-1-overflow"}]


def test_workflow_without_groups_creates_nothing_and_says_why(cluster, run, make_plan):
    plan = make_plan(scale="8")

    evidence = run(plan)

    assert evidence.groups == ()
    assert [each.code for each in evidence.problems] == ["unschedulable"]
    assert ("create", "Job") not in [request[:2] for request in cluster.requests]


def test_workflow_wants_more_runs_another_attempt_with_its_own_evidence(
    cluster, run, make_plan, play_pass
):
    cluster.on_job = play_pass
    second = make_plan(attempt=1).groups[0]

    evidence = run(wants_more=lambda group: (second,) if group.attempt == 0 else ())

    assert [group.attempt for group in evidence.groups] == [0, 1]
    assert len({group.job.uid for group in evidence.groups}) == 2
    assert ours(cluster) == []


def test_workflow_further_groups_come_in_the_order_in_which_they_were_planned(
    cluster, run, make_plan, play_pass
):
    cluster.on_job = play_pass
    (first,) = make_plan().groups
    further = [
        replace(
            make_plan(attempt=attempt).groups[0],
            group=replace(first.group, name=name),
        )
        for attempt, name in ((1, "z-r2-0"), (2, "a-r2-1"))
    ]
    asked = []

    def wants_more(group):
        asked.append(group.group)
        return further if group.group == first.group.name else ()

    evidence = run(wants_more=wants_more)

    assert [group.group for group in evidence.groups] == ["group-0", "z-r2-0", "a-r2-1"]
    assert sorted(asked) == ["a-r2-1", "group-0", "z-r2-0"]


def test_workflow_kept_group_stays_and_is_no_leftover(cluster, run, play_pass):
    cluster.on_job = play_pass

    evidence = run(keep=lambda group: group.job.terminal == "succeeded")

    assert evidence.leftovers == ()
    assert [name.partition("/")[0] for name in ours(cluster)] == ["Job", "Pod", "Pod", "Service"]


def test_workflow_progress_tells_each_phase_in_order(cluster, run, play_pass):
    told = []
    cluster.on_job = play_pass

    run(on_progress=told.append)

    phases = list(dict.fromkeys(each.phase for each in told))
    assert phases[0] == "creating"
    assert phases[-3:] == ["draining", "cleaning", "done"]
    assert {each.entry for each in told} == {"communication/nccl-all-reduce"}


def test_workflow_job_is_not_read_for_every_change_of_its_pods(cluster, run, make_plan):
    nodes = ("n1", "n2", "n3", "n4")
    pods = []

    def start(_cluster, job):
        pods.extend(cluster.add_pod(job, index, node) for index, node in enumerate(nodes))

    def next_one(told):
        if told.pods_running < len(pods):
            cluster.run_pod(pods[told.pods_running])
        elif pods:
            for pod in pods:
                cluster.end_pod(pod)
            cluster.end_job(cluster.job())
            pods.clear()

    cluster.on_job = start
    (group,) = run(
        make_plan(nodes=nodes), on_progress=next_one, timing=replace(QUICK, poll_s=60.0)
    ).groups

    assert group.job.terminal == "succeeded"
    reads = [request for request in cluster.requests if request[:2] == ("get", "Job")]
    # As it is created, as the watch first shows it, its end; and whether it is gone.
    assert len(reads) <= 4


def test_workflow_bug_in_a_callback_is_raised_after_clean_up(cluster, run, play_pass):
    cluster.on_job = play_pass

    def broken(_):
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        run(keep=broken)
    assert ours(cluster) == []
