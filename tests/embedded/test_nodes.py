import time

import pytest

SERVER_ARGUMENTS = ("--node-grace", "0.6")
UNREACHABLE = "node.kubernetes.io/unreachable"


def ready(node):
    return next(c for c in node["status"]["conditions"] if c["type"] == "Ready")


def taints(node):
    return {(t["key"], t["effect"]) for t in node["spec"].get("taints", [])}


@pytest.fixture
def node(cluster, kubelet):
    kubelet.add_node("silent")
    yield "/api/v1/nodes/silent"
    cluster("DELETE", "/api/v1/nodes/silent")


def pod_on(cluster, namespace, tolerations=()):
    spec = {
        "nodeName": "silent",
        "containers": [{"name": "c", "image": "i"}],
        "tolerations": list(tolerations),
    }
    return cluster.create(f"{namespace}/pods", {"metadata": {"name": "p"}, "spec": spec})


def test_silent_node_becomes_unknown_and_tainted(cluster, node):
    lost = cluster.until(node, lambda a: len(taints(a.body)) == 2)
    condition = ready(lost)
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "Unknown",
        "NodeStatusUnknown",
        "Kubelet stopped posting node status.",
    )
    assert taints(lost) == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    events = cluster.get("/api/v1/namespaces/default/events")["items"]
    assert "Node silent status is now: NodeNotReady" in {e["message"] for e in events}


def test_node_that_is_heard_again_is_clean(cluster, kubelet, node):
    cluster.until(node, lambda a: ready(a.body)["status"] == "Unknown")
    kubelet.beat("silent")
    back = cluster.until(node, lambda a: not taints(a.body))
    assert ready(back)["status"] == "True"


def test_node_that_says_not_ready_is_tainted_as_such(cluster, kubelet, node):
    kubelet.beat("silent", ready="False")
    tainted = cluster.until(node, lambda a: len(taints(a.body)) == 2)
    assert {key for key, _effect in taints(tainted)} == {"node.kubernetes.io/not-ready"}


def test_lease_keeps_a_node_alive(cluster, node):
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    cluster.create(leases, {"metadata": {"name": "silent"}, "spec": {"holderIdentity": "silent"}})
    for count in range(10):
        time.sleep(0.1)  # longer than the grace in all
        cluster.patch(f"{leases}/silent", {"spec": {"leaseTransitions": count}})
    assert ready(cluster.get(node))["status"] == "True"
    cluster("DELETE", f"{leases}/silent")


def test_pods_of_a_silent_node_are_not_ready_and_evicted_as_they_tolerate(
    cluster, kubelet, node, namespace
):
    short = {
        "key": UNREACHABLE,
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 1,
    }
    pod = pod_on(cluster, namespace, [short])
    running = kubelet.run(pod)
    since = f"{namespace}/pods?watch=1&resourceVersion={running['metadata']['resourceVersion']}"
    events = cluster.events(since, lambda event: "deletionTimestamp" in event["object"]["metadata"])
    assert len(events) > 1
    assert all(ready(event["object"])["status"] == "False" for event in events)
    evicted = events[-1]["object"]
    reasons = {c["type"]: c.get("reason") for c in evicted["status"]["conditions"]}
    assert reasons["DisruptionTarget"] == "DeletionByTaintManager"
    # No kubelet is there to end it: the pod stays until the node is gone as well.
    cluster("DELETE", node)
    cluster.gone(kubelet.path(pod))


def test_pod_that_does_not_tolerate_a_taint_goes_at_once(cluster, kubelet, node, namespace):
    pod = kubelet.run(pod_on(cluster, namespace))
    taint = {"key": "maintenance", "effect": "NoExecute"}
    cluster.patch(node, {"spec": {"taints": [taint]}})
    cluster.until(kubelet.path(pod), lambda a: a.body["metadata"]["deletionTimestamp"])


def test_pods_of_a_deleted_node_fail_and_go(cluster, kubelet, node, namespace):
    pod = kubelet.run(pod_on(cluster, namespace))
    with cluster.open("GET", f"{namespace}/pods?watch=1") as response:
        cluster("DELETE", node)
        lines = [response.readline() for _ in range(3)]
    cluster.gone(kubelet.path(pod))
    assert b'"phase":"Failed"' in lines[-1]
    assert b"DeletionByPodGC" in lines[-1]
