"""Every kind read as the genuine controllers wrote it."""

import pytest

from pytest_cre.cluster.objects import JOB_SET, MPI_JOB, TRAIN_JOB
from pytest_cre.cluster.pods import pod_facts
from pytest_cre.cluster.workloads import WORKLOADS, workload_of
from pytest_cre.cluster.workloads.ownership import owned_pods
from pytest_cre.cluster.workloads.protocol import PodPlace

KINDS = ("indexedJob", "jobSet", "mpiJob", "trainJob")
ENDED = ("success", "crash", "deadline", "suspended", "retry")


def terminals(kind, recording):
    return [workload_of(kind).read_terminal(stage).terminal for stage in recording.stages]


@pytest.mark.parametrize("case", ENDED)
@pytest.mark.parametrize("kind", KINDS)
def test_only_the_last_stage_is_an_end(kind, case, recorded):
    recording = recorded(kind, case)
    terminal = "failed" if case in ("crash", "deadline") else "succeeded"
    assert len(recording.stages) > 1
    assert terminals(kind, recording)[-1] == terminal
    # Counts of pods may still change after the end.
    before = [each for each in terminals(kind, recording) if each != terminal]
    assert terminals(kind, recording)[: len(before)] == before == ["none"] * len(before)
    assert before


@pytest.mark.parametrize("kind", KINDS)
def test_an_end_has_its_times_and_what_it_is(kind, recorded):
    recording = recorded(kind, "success")
    facts = workload_of(kind).read_terminal(recording.stages[-1])
    first = workload_of(kind).read_terminal(recording.stages[0])
    assert facts.kind == recording.stages[-1]["kind"]
    assert (facts.name, facts.uid) == (recording.stages[-1]["metadata"]["name"], recording.uid)
    assert facts.created_ns < facts.terminal_ns < facts.created_ns + 20 * 10**9
    assert first.terminal_ns is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_is_told_in_the_words_of_the_job_that_failed(kind, recorded):
    recording = recorded(kind, "crash")
    facts = workload_of(kind).read_terminal(recording.stages[-1], recording.owned)
    assert facts.reason == "BackoffLimitExceeded"
    assert facts.message.endswith("Job has reached the specified backoff limit")


@pytest.mark.parametrize("kind", KINDS)
def test_a_deadline_of_the_cluster_is_known_as_one(kind, recorded):
    recording = recorded(kind, "deadline")
    facts = workload_of(kind).read_terminal(recording.stages[-1], recording.owned)
    assert facts.reason == "DeadlineExceeded"
    assert "Job was active longer than specified deadline" in facts.message


def test_a_set_keeps_its_own_words_beside_those_of_its_job(recorded):
    recording = recorded("jobSet", "crash")
    workload = workload_of("jobSet")
    assert workload.read_terminal(recording.stages[-1]).reason == "ReachedMaxRestarts"
    message = workload.read_terminal(recording.stages[-1], recording.owned).message
    assert message.startswith("jobset failed due to reaching max number of restarts")


@pytest.mark.parametrize("kind", KINDS)
def test_a_suspended_workload_is_held_until_it_is_resumed(kind, recorded):
    stages = recorded(kind, "suspended").stages
    held = [workload_of(kind).is_suspended(stage) for stage in stages]
    assert held[0] is True
    assert held[-1] is False
    assert held == sorted(held, reverse=True)


def test_a_resumed_train_job_with_a_condition_has_not_ended(recorded):
    workload = workload_of("trainJob")
    resumed = [
        stage
        for stage in recorded("trainJob", "suspended").stages
        for each in stage.get("status", {}).get("conditions", [])
        if each["reason"] == "Resumed" and workload.read_terminal(stage).terminal == "none"
    ]
    assert resumed
    assert not any(workload.is_deciding(stage) for stage in resumed)


def test_a_train_job_without_its_runtime_never_gets_a_condition(recorded):
    recording = recorded("trainJob", "no-runtime")
    assert terminals("trainJob", recording) == ["none"]
    assert recording.owned == recording.pods == []


@pytest.mark.parametrize("kind", ["indexedJob", "jobSet", "trainJob"])
def test_an_evicted_pod_that_is_replaced_is_no_end(kind, recorded):
    recording = recorded(kind, "evict")
    assert set(terminals(kind, recording)) == {"none"}
    places = [workload_of(kind).place_of(pod) for pod in recording.pods]
    assert places.count(PodPlace(role="rank", index=1)) > 1


def test_an_evicted_worker_fails_an_mpi_job_whose_launcher_still_runs(recorded):
    recording = recorded("mpiJob", "evict")
    facts = workload_of("mpiJob").read_terminal(recording.stages[-1])
    assert (facts.terminal, facts.reason) == ("failed", "MPIJobEvicted")
    roles = {workload_of("mpiJob").place_of(pod).role: pod for pod in recording.pods}
    assert roles["launcher"]["status"]["phase"] == "Running"


@pytest.mark.parametrize("case", ["success", "crash", "retry"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_pod_descends_from_its_workload_by_uid(kind, case, recorded):
    recording = recorded(kind, case)
    assert owned_pods(recording.uid, recording.pods, recording.owners) == tuple(recording.pods)
    assert owned_pods("namesake", recording.pods, recording.owners) == ()
    assert len(recording.pods) >= workload_of(kind).expected_pods(2)


def test_pods_of_an_mpi_job_are_a_launcher_and_workers_by_index(recorded):
    recording = recorded("mpiJob", "success")
    places = sorted(
        (workload_of("mpiJob").place_of(pod) for pod in recording.pods),
        key=lambda place: (place.role, place.index or 0),
    )
    assert places == [
        PodPlace(role="launcher", index=None),
        PodPlace(role="worker", index=0),
        PodPlace(role="worker", index=1),
    ]
    assert workload_of("mpiJob").expected_pods(2) == 3


def test_workers_of_an_mpi_job_run_on_after_its_end(recorded):
    recording = recorded("mpiJob", "success")
    phases = {
        workload_of("mpiJob").place_of(pod).role: pod["status"]["phase"] for pod in recording.pods
    }
    assert phases == {"launcher": "Succeeded", "worker": "Running"}


@pytest.mark.parametrize(("kind", "index"), [("jobSet", 1), ("trainJob", 1), ("mpiJob", None)])
def test_what_a_restart_made_has_the_place_of_what_went_before(kind, index, recorded):
    recording = recorded(kind, "retry")
    role = "launcher" if kind == "mpiJob" else "rank"
    place = PodPlace(role=role, index=index)
    tries = [pod for pod in recording.pods if workload_of(kind).place_of(pod) == place]
    assert len(tries) == (3 if kind == "mpiJob" else 2)


@pytest.mark.parametrize("kind", KINDS)
def test_the_main_container_is_the_one_that_ran(kind, recorded):
    for pod in recorded(kind, "success").pods:
        facts = pod_facts(pod, main_container=workload_of(kind).main_container)
        assert facts.started_ns is not None


@pytest.mark.parametrize("broken", [{}, {"metadata": None, "spec": None, "status": None}])
@pytest.mark.parametrize("kind", KINDS)
def test_a_misshapen_workload_has_neither_ended_nor_pods(kind, broken):
    workload = workload_of(kind)
    assert workload.read_terminal(broken, [broken]).terminal == "none"
    assert not workload.is_deciding(broken)
    assert not workload.is_suspended(broken)
    assert workload.place_of(broken).index is None


def test_kinds_are_read_as_what_the_api_calls_them():
    assert {name: each.name for name, each in WORKLOADS.items()} == {name: name for name in KINDS}
    assert workload_of("jobSet").kind is JOB_SET
    assert workload_of("mpiJob").kind is MPI_JOB
    assert workload_of("trainJob").kind is TRAIN_JOB


def test_both_ends_told_is_a_failure():
    conditions = [{"type": each, "status": "True"} for each in ("Succeeded", "Failed")]
    facts = workload_of("mpiJob").read_terminal({"status": {"conditions": conditions}})
    assert facts.terminal == "failed"
