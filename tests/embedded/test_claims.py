"""Claims of volumes: bound at once, and pods wait for those that they mount."""

import pytest

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "10Ti"}}},
}


@pytest.fixture
def claims(namespace):
    return f"{namespace}/persistentvolumeclaims"


def test_claim_is_bound_to_a_volume_of_its_own(cluster, claims):
    made = cluster.create(claims, CLAIM)

    read = cluster("GET", f"{claims}/data").body
    assert read["spec"]["volumeName"] == f"pvc-{made['metadata']['uid']}"
    assert read["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "10Ti"},
    }
    assert [each["metadata"]["name"] for each in cluster("GET", claims).body["items"]] == ["data"]


def test_claim_is_gone_when_it_is_deleted(cluster, claims):
    cluster.create(claims, CLAIM)

    assert cluster("DELETE", f"{claims}/data").code == 200
    assert cluster("GET", f"{claims}/data").code == 404


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"resources": {"requests": {"storage": "1Ti"}}}, "spec.accessModes"),
        ({"accessModes": ["ReadWriteMany"]}, "spec.resources[storage]"),
    ],
)
def test_claim_without_mode_or_size_is_refused_by_field(cluster, claims, spec, field):
    answer = cluster("POST", claims, {"metadata": {"name": "data"}, "spec": spec})

    assert answer.code == 422
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == [field]


def test_spec_of_a_claim_cannot_be_changed(cluster, claims):
    claim = cluster.create(claims, CLAIM)
    claim["spec"]["storageClassName"] = "fast"

    answer = cluster("PUT", f"{claims}/data", claim)

    assert answer.code == 422
    assert "spec is immutable after creation" in answer.body["message"]


def test_pod_waits_for_the_claim_that_it_mounts(cluster, namespace, claims, kubelet):
    kubelet.add_node("n0")
    volume = {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}
    pod = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], "volumes": [volume]},
    }
    cluster.create(f"{namespace}/pods", pod)

    waiting = cluster.until(f"{namespace}/pods/p", lambda a: a.body["status"].get("conditions"))
    condition = waiting["status"]["conditions"][0]
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    message = '0/1 nodes are available: persistentvolumeclaim "data" not found. not found'
    assert condition["message"] == message
    cluster.create(claims, CLAIM)
    cluster.until(f"{namespace}/pods/p", lambda a: a.body["spec"].get("nodeName"))
