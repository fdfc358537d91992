import pytest

from pytest_cre.cluster.pods import (
    completion_index,
    container_state,
    pod_facts,
    pod_problem,
    settle,
)

SECOND_NS = 10**9
NEW_YEAR_NS = 1_767_225_600 * SECOND_NS


def pod(phase="Running", *, main=None, conditions=(), init=None, **status):
    statuses = [{"name": "main", "restartCount": 0, "state": main}] if main is not None else None
    return {
        "metadata": {
            "name": "j-0-abc",
            "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"batch.kubernetes.io/job-completion-index": "3"},
        },
        "spec": {"nodeName": "node-7"},
        "status": {
            "phase": phase,
            "containerStatuses": statuses,
            "initContainerStatuses": init,
            "conditions": list(conditions),
            **status,
        },
    }


def waiting(reason, message="words"):
    return {"waiting": {"reason": reason, "message": message}}


def ended(code, reason="Error", **more):
    times = {"startedAt": "2026-01-01T00:00:10Z", "finishedAt": "2026-01-01T00:01:00Z"}
    return {"terminated": {"exitCode": code, "reason": reason, **times, **more}}


def disruption(reason):
    return {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "why"}


def code_of(item):
    problem = pod_problem(item, main_container="main")
    return problem.code if problem else None


def test_facts_of_a_pod_that_ended():
    facts = pod_facts(pod("Failed", main=ended(137, "OOMKilled")), main_container="main", attempt=2)
    assert (facts.name, facts.uid, facts.node, facts.phase) == ("j-0-abc", "u", "node-7", "Failed")
    assert (facts.completion_index, facts.attempt, facts.exit_code) == (3, 2, 137)
    assert facts.reason == "OOMKilled"
    assert facts.created_ns == NEW_YEAR_NS
    assert facts.started_ns == NEW_YEAR_NS + 10 * SECOND_NS
    assert facts.finished_ns == NEW_YEAR_NS + 60 * SECOND_NS


def test_facts_of_a_pod_with_a_sidecar_are_those_of_the_main_container():
    item = pod("Running", main=ended(0, "Completed"))
    item["status"]["containerStatuses"].insert(
        0, {"name": "istio-proxy", "state": {"running": {"startedAt": "x"}}, "restartCount": 4}
    )
    facts = pod_facts(item, main_container="main")
    assert (facts.exit_code, facts.restart_count) == (0, 0)
    assert container_state(item, "istio-proxy").phase == "running"


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"metadata": None, "spec": None, "status": None},
        {"status": {"containerStatuses": [None, {"name": "main", "state": None}]}},
        {
            "status": {
                "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": "x"}}}]
            }
        },
        {"metadata": {"annotations": {"batch.kubernetes.io/job-completion-index": "x"}}},
        {"status": {"phase": 3, "conditions": [None]}},
    ],
)
def test_a_misshapen_pod_gives_empty_facts_and_never_an_exception(broken):
    facts = pod_facts(broken, main_container="main")
    assert (facts.name, facts.exit_code, facts.completion_index) == ("", None, None)
    pod_problem(broken, main_container="main")


@pytest.mark.parametrize("where", ["annotations", "labels"])
def test_completion_index_is_read_from_annotation_or_label(where):
    item = {"metadata": {where: {"batch.kubernetes.io/job-completion-index": "12"}}}
    assert completion_index(item) == 12


@pytest.mark.parametrize(
    "item",
    [
        pod("Succeeded", main=ended(0, "Completed")),
        pod("Running", main={"running": {"startedAt": "2026-01-01T00:00:00Z"}}),
        pod("Pending", main=waiting("ContainerCreating")),
        pod("Pending", main=waiting("PodInitializing")),
        pod("Pending"),
        pod("Succeeded", main=ended(0), conditions=[disruption("TerminationByKubelet")]),
    ],
    ids=["succeeded", "running", "creating", "initializing", "pending", "succeeded-then-evicted"],
)
def test_a_pod_that_is_fine_or_only_not_there_yet_is_no_problem(item):
    assert code_of(item) is None


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("ErrImagePull", "image-pull"),
        ("ImagePullBackOff", "image-pull"),
        ("InvalidImageName", "image-pull"),
        ("ErrImageNeverPull", "image-pull"),
        ("CreateContainerConfigError", "config-error"),
        ("CreateContainerError", "config-error"),
        ("RunContainerError", "config-error"),
    ],
)
def test_a_pod_that_cannot_start_says_why(reason, code):
    problem = pod_problem(pod("Pending", main=waiting(reason, "pull of x")), main_container="main")
    assert (problem.code, problem.message) == (code, f"{reason}: pull of x")
    assert (problem.pod, problem.node) == ("j-0-abc", "node-7")


def test_an_init_container_that_cannot_start_is_the_reason():
    init = [{"name": "copy", "state": waiting("ImagePullBackOff", "no such image")}]
    item = pod("Pending", main=waiting("PodInitializing"), init=init)
    problem = pod_problem(item, main_container="main")
    assert (problem.code, problem.message) == ("image-pull", "ImagePullBackOff: no such image")


def test_an_unschedulable_pod_is_quoted_in_the_schedulers_words():
    words = "0/8 nodes are available: 8 Insufficient nvidia.com/gpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    item = pod("Pending", conditions=[condition | {"message": words}])
    item["spec"] = {}
    problem = pod_problem(item, main_container="main")
    assert (problem.code, problem.message) == ("unschedulable", f"Unschedulable: {words}")
    assert problem.node is None


TAKEN = {
    "preempted": (pod("Failed", conditions=[disruption("PreemptionByScheduler")]), "pod-evicted"),
    "evicted-by-api": (
        pod("Failed", main=ended(137), conditions=[disruption("EvictionByEvictionAPI")]),
        "pod-evicted",
    ),
    "being-evicted": (
        pod("Running", conditions=[disruption("TerminationByKubelet")]),
        "pod-evicted",
    ),
    "evicted-without-condition": (
        pod("Failed", reason="Evicted", message="The node was low on memory"),
        "pod-evicted",
    ),
    "not-admitted": (pod("Failed", reason="UnexpectedAdmissionError"), "pod-evicted"),
    "taint": (
        pod("Failed", conditions=[disruption("DeletionByTaintManager")]),
        "node-unreachable",
    ),
    "node-gone": (pod("Failed", conditions=[disruption("DeletionByPodGC")]), "node-unreachable"),
    "node-lost": (pod("Running", reason="NodeLost"), "node-unreachable"),
    "unknown": (pod("Unknown"), "node-unreachable"),
    "shutdown": (
        pod("Failed", reason="Terminated", message="imminent node shutdown"),
        "node-unreachable",
    ),
    "own-fault": (pod("Failed", main=ended(1)), "pod-failed"),
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_was_taken_from_a_pod_is_told_apart_from_what_it_did(case):
    item, code = TAKEN[case]
    assert code_of(item) == code


def test_an_admission_error_names_the_node_and_the_devices_missing():
    item = pod("Failed", reason="UnexpectedAdmissionError", message="GPU is lost")
    problem = pod_problem(item, main_container="main")
    assert problem.message == "UnexpectedAdmissionError: GPU is lost"
    assert problem.node == "node-7"


def test_a_failed_pod_is_told_with_its_exit_code():
    problem = pod_problem(pod("Failed", main=ended(137, "OOMKilled")), main_container="main")
    assert (problem.code, problem.message) == ("pod-failed", "exit code 137 (OOMKilled)")


def test_a_pod_that_is_being_deleted_while_it_runs_is_a_problem():
    item = pod("Running", main={"running": {"startedAt": "2026-01-01T00:00:00Z"}})
    item["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z"
    assert code_of(item) == "pod-deleted"


def test_the_first_end_seen_of_a_pod_stands():
    succeeded = pod_facts(pod("Succeeded", main=ended(0)), main_container="main")
    flipped = pod_facts(pod("Failed", reason="UnexpectedAdmissionError"), main_container="main")
    running = pod_facts(pod("Running"), main_container="main")
    assert settle(succeeded, flipped) is succeeded
    assert settle(running, flipped) is flipped
    assert settle(None, running) is running
