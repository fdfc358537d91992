import pytest

from pytest_cre.cluster.objects import JOB, JOB_SET
from pytest_cre.cluster.workloads.ownership import (
    descends_from,
    owned_pods,
    owner_of,
    unknown_owner,
)

BATCH, SETS = "batch/v1", "jobset.x-k8s.io/v1alpha2"


def owned_by(api_version, kind, uid, **more):
    reference = {"apiVersion": api_version, "kind": kind, "name": f"name-{uid}", "uid": uid, **more}
    return {"metadata": {"uid": f"of-{uid}", "ownerReferences": [reference]}}


def test_a_chain_that_is_not_known_tells_where_it_breaks_off():
    pod = owned_by(BATCH, "Job", "job-1", controller=True)
    assert unknown_owner(pod, "set-1", {}) == (JOB, "name-job-1", "job-1")
    owners = {"job-1": owned_by(SETS, "JobSet", "set-2", controller=True)}
    assert unknown_owner(pod, "set-1", owners) == (JOB_SET, "name-set-2", "set-2")
    owners["job-1"] = owned_by(SETS, "JobSet", "set-1", controller=True)
    assert unknown_owner(pod, "set-1", owners) is None
    assert descends_from(pod, "set-1", owners)


def test_a_chain_that_breaks_off_proves_nothing():
    pod = owned_by(BATCH, "Job", "job-1", controller=True)
    assert not descends_from(pod, "set-1", {})
    assert owned_pods("set-1", [pod], {}) == ()


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"metadata": None},
        {"metadata": {"ownerReferences": None}},
        {"metadata": {"ownerReferences": ["x", {"uid": "u"}]}},
        owned_by("apps/v1", "ReplicaSet", "other", controller=True),
        owned_by(BATCH, "Job", None),
    ],
)
def test_a_pod_without_an_owner_of_ours_belongs_to_nobody(pod):
    assert owner_of(pod) is None
    assert unknown_owner(pod, "top", {}) is None
    assert owned_pods("top", [pod], {}) == ()


def test_labels_alone_prove_nothing():
    pod = {"metadata": {"labels": {"cre.pytest.org/job": "j"}, "uid": "p"}}
    assert owned_pods("top", [pod], {}) == ()


def test_a_controller_goes_before_other_owners():
    pod = owned_by(BATCH, "Job", "job-1")
    pod["metadata"]["ownerReferences"].append(
        {"apiVersion": SETS, "kind": "JobSet", "name": "s", "uid": "set-1", "controller": True}
    )
    assert owner_of(pod) == (JOB_SET, "s", "set-1")


def test_a_circle_of_owners_ends():
    circle = {
        "a": owned_by(BATCH, "Job", "b", controller=True),
        "b": owned_by(BATCH, "Job", "a", controller=True),
    }
    pod = owned_by(BATCH, "Job", "a", controller=True)
    assert not descends_from(pod, "top", circle)
    assert unknown_owner(pod, "top", circle) is None


def test_a_workload_without_uid_owns_nothing():
    assert owned_pods("", [owned_by(BATCH, "Job", "")], {}) == ()
