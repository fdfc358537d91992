import pytest

from pytest_cre.cluster.objects import JOB
from pytest_cre.cluster.workloads import workload_of
from pytest_cre.cluster.workloads.protocol import PodPlace

NEW_YEAR_NS = 1_767_225_600 * 10**9
workload = workload_of("indexedJob")


def job(*conditions, **status):
    return {
        "metadata": {"name": "j", "uid": "job-uid", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {},
        "status": {
            "startTime": "2026-01-01T00:00:01Z",
            "conditions": [
                {
                    "type": type_,
                    "status": state,
                    "reason": f"{type_}Reason",
                    "message": f"{type_} words",
                    "lastTransitionTime": "2026-01-01T00:00:09Z",
                }
                for type_, state in conditions
            ],
            **status,
        },
    }


def test_indexed_job_is_a_batch_job_with_one_main_container():
    assert workload.kind is JOB
    assert workload.main_container == "main"


@pytest.mark.parametrize(
    ("conditions", "terminal", "is_deciding"),
    [
        ([], "none", False),
        ([("Suspended", "True")], "none", False),
        ([("Complete", "True")], "succeeded", True),
        ([("Failed", "True")], "failed", True),
        ([("Failed", "False"), ("Complete", "True")], "succeeded", True),
        ([("SuccessCriteriaMet", "True")], "none", True),
        ([("FailureTarget", "True")], "none", True),
        ([("SuccessCriteriaMet", "True"), ("Complete", "True")], "succeeded", True),
        ([("FailureTarget", "True"), ("Failed", "True")], "failed", True),
        ([("AnUnknownOne", "True")], "none", False),
    ],
)
def test_only_a_terminal_condition_is_an_end(conditions, terminal, is_deciding):
    item = job(*conditions)
    assert workload.read_terminal(item).terminal == terminal
    assert workload.is_deciding(item) is is_deciding


def test_counts_of_pods_are_no_end():
    assert workload.read_terminal(job(succeeded=8, failed=3, active=0)).terminal == "none"


def test_facts_of_an_ended_job_carry_reason_and_times():
    facts = workload.read_terminal(job(("FailureTarget", "True"), ("Failed", "True")))
    assert (facts.kind, facts.name, facts.uid) == ("Job", "j", "job-uid")
    assert facts.message in ("FailureTarget words", "Failed words")
    assert facts.created_ns == NEW_YEAR_NS
    assert facts.started_ns == NEW_YEAR_NS + 10**9
    assert facts.terminal_ns == NEW_YEAR_NS + 9 * 10**9


def test_a_job_that_is_only_deciding_tells_why_but_not_when():
    facts = workload.read_terminal(job(("FailureTarget", "True")))
    assert facts.reason == "FailureTargetReason"
    assert facts.terminal_ns is None


def test_a_suspended_job_is_held_by_a_queue():
    item = job()
    assert workload.is_suspended(item) is False
    item["spec"]["suspend"] = True
    assert workload.is_suspended(item) is True


@pytest.mark.parametrize(
    "broken", [{}, {"metadata": None, "status": None}, {"status": {"conditions": [None]}}]
)
def test_a_misshapen_job_has_not_ended(broken):
    assert workload.read_terminal(broken).terminal == "none"


def test_a_pod_of_a_job_is_known_by_its_completion_index():
    pod = {"metadata": {"annotations": {"batch.kubernetes.io/job-completion-index": "2"}}}
    assert workload.place_of(pod) == PodPlace(role="rank", index=2)
    assert workload.place_of({"metadata": None}) == PodPlace(role="rank", index=None)
    assert workload.expected_pods(4) == 4
