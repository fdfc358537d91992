import pytest

from pytest_cre.cluster.client import ApiProblem
from pytest_cre.cluster.gpuholders import gpu_holder, left_pod_words, read_gpu_holders
from pytest_cre.evidence.model import GpuHolder

MANY = [f"n{number}" for number in range(17)]


def pod(name, gpus, node="n1", *, labels=None, phase="Running", uid=None, **spec):
    container = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {
        "metadata": {"name": name, "namespace": "team-a", "labels": labels, "uid": uid or name},
        "spec": {"nodeName": node, "containers": [container], **spec},
        "status": {"phase": phase},
    }


def test_holders_are_the_pods_of_every_namespace_by_node_and_name(serve):
    init = [{"resources": {"requests": {"nvidia.com/gpu": "4"}}}]
    sidecar = [{"restartPolicy": "Always", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    pods = [
        pod("train-1", "2"),
        pod("train-0", "6"),
        pod("init", "1", "n2", initContainers=init),
        pod("sidecar", "1", "n3", initContainers=sidecar),
        pod("waiting", "8", None),
        pod("elsewhere", "8", "x1"),
        pod("cpu", "0"),
        {"metadata": {}, "spec": None},
    ]
    server = serve(lambda _, reply: reply.json({"items": pods}))

    held = read_gpu_holders(server.client(), MANY)

    assert held == {
        "n1": (GpuHolder(pod="team-a/train-0", gpus=6), GpuHolder(pod="team-a/train-1", gpus=2)),
        "n2": (GpuHolder(pod="team-a/init", gpus=4),),
        "n3": (GpuHolder(pod="team-a/sidecar", gpus=2),),
    }
    (request,) = server.requests
    assert request.path == "/api/v1/pods"
    assert request.query["fieldSelector"] == "status.phase!=Succeeded,status.phase!=Failed"


def test_few_nodes_are_asked_for_one_by_one(serve):
    def answer(request, reply):
        node = request.query["fieldSelector"].partition(",")[0].removeprefix("spec.nodeName=")
        reply.json({"items": [pod("train", "8", node)]})

    server = serve(answer)

    assert sorted(read_gpu_holders(server.client(), ["n2", "n1"])) == ["n1", "n2"]
    assert [each.query["fieldSelector"].partition(",")[0] for each in server.requests] == [
        "spec.nodeName=n1", "spec.nodeName=n2",
    ]  # fmt: skip


def test_holder_of_a_run_of_ours_is_known_by_its_label(serve):
    labels = {"cre.pytest.org/run": "k3f2a"}
    server = serve(lambda _, reply: reply.json({"items": [pod("cre-0", "8", labels=labels)]}))

    assert read_gpu_holders(server.client(), ["n1"])["n1"][0].run_id == "k3f2a"


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({"phase": "Pending"}, True),  # bound, and waits for its image
        ({"phase": "Unknown"}, True),
        ({"phase": "Succeeded"}, False),
        ({"phase": "Failed"}, False),
        ({"node": None}, False),
    ],
)
def test_pod_holds_from_its_binding_to_its_end(changes, holds):
    assert (gpu_holder(pod("p", "1", **changes)) is not None) is holds


def test_pod_that_is_being_deleted_still_holds():
    dying = pod("p", "8")
    dying["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert gpu_holder(dying) == GpuHolder(pod="team-a/p", gpus=8)
    assert left_pod_words(dying) == "8 GPUs of n1 still held by team-a/p"


def test_left_pod_without_gpus_is_told_with_its_node():
    assert left_pod_words(pod("p", "0")) == "Pod/p on node n1"
    assert left_pod_words(pod("p", "0", None)) == "Pod/p"


def test_gpus_of_resource_claims_count_for_the_pod_that_they_are_reserved_for(serve):
    results = [{"driver": "gpu.nvidia.com", "pool": "n1", "device": f"gpu-{n}"} for n in range(4)]
    results.append({"driver": "compute-domain.nvidia.com", "pool": "n1", "device": "channel-0"})
    claims = [
        {
            "metadata": {"name": "c"},
            "status": {
                "allocation": {"devices": {"results": results}},
                "reservedFor": [{"resource": "pods", "name": "dra", "uid": "dra"}],
            },
        },
        {"metadata": {"name": "unused"}, "status": None},
    ]
    pods = [pod("dra", "0", resourceClaims=[{"name": "gpus"}])]

    def answer(request, reply):
        reply.json({"items": claims if "resourceclaims" in request.path else pods})

    server = serve(answer)

    held = read_gpu_holders(server.client(), ["n1"])

    assert held == {"n1": (GpuHolder(pod="team-a/dra", gpus=4),)}
    assert server.requests[-1].path == "/apis/resource.k8s.io/v1/resourceclaims"


def test_without_the_right_to_see_all_pods_it_is_said_in_one_line(serve):
    server = serve(lambda _, reply: reply.refuse(403, "Forbidden"))

    with pytest.raises(ApiProblem, match=r"list pods of all namespaces: 403 Forbidden"):
        read_gpu_holders(server.client(), ["n1"])


def test_list_that_expired_on_the_way_is_read_again(serve):
    tries = []

    def answer(request, reply):
        if "continue" in request.query and len(tries) == 0:
            tries.append(1)
            reply.refuse(410, "Expired")
        elif "continue" in request.query:
            reply.json({"items": [pod("b", "1")]})
        else:
            reply.json({"metadata": {"continue": "x"}, "items": [pod("a", "1")]})

    held = read_gpu_holders(serve(answer).client(), MANY)

    assert [each.pod for each in held["n1"]] == ["team-a/a", "team-a/b"]
