"""Nodes and namespaces: how a kubelet registers and reports, how a namespace begins and ends."""

from tests.conformance.play import MERGE, STRATEGIC


def registering(play):
    name = f"bare-{play.token}"
    node = {
        "metadata": {"name": name, "labels": {"l": "v"}, "annotations": {"a": "b"}},
        "spec": {"taints": [{"key": "simulated", "value": "true", "effect": "NoSchedule"}]},
    }
    play._nodes.append(name)
    play.ask("POST", "nodes", node)
    play.ask("POST", "nodes", node)
    play.ask("POST", "nodes", {"metadata": {"name": "Bad_Name"}})
    status = {
        "capacity": {"cpu": "128", "memory": "1024Gi", "nvidia.com/gpu": "8", "pods": "110"},
        "allocatable": {"cpu": "128", "memory": "1024Gi", "nvidia.com/gpu": "8", "pods": "110"},
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "m",
                "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}},
        "nodeInfo": {"kubeletVersion": "v1", "machineID": "m"},
    }
    play.ask("PATCH", f"nodes/{name}/status", {"status": status}, type_=MERGE, only=["status"])
    play.until(
        f"nodes/{name}",
        lambda answer: len(answer.body["spec"]["taints"]) == 1,
        only=["metadata", "spec"],
    )
    beat = {"status": {"conditions": [{"type": "Ready", "status": "True", "message": "again"}]}}
    play.ask("PATCH", f"nodes/{name}/status", beat, type_=STRATEGIC, only=["status.conditions"])
    play.ask(
        "GET", f"nodes?fieldSelector=metadata.name={name}", only=["kind", "items.metadata.name"]
    )
    play.ask("DELETE", f"nodes/{name}")


def a_node_that_is_not_ready(play):
    # Nobody is evicted where no node at all is ready.
    play.add_node("well")
    node = play.add_node()
    play.kubelet.beat(node, ready="False")
    play.until(
        f"nodes/{node}",
        lambda answer: len(answer.body["spec"]["taints"]) == 2,
        only=["spec.taints"],
        # Genuine controllers have one node evicted every ten seconds.
        timeout_s=60.0,
    )
    pod = {
        "metadata": {"name": "p"},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 5,
            "tolerations": [
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 0,
                }
            ],
            "containers": [{"name": "c", "image": "i:1"}],
        },
    }
    play.make("pods", pod)
    play.until(
        "pods/p",
        lambda answer: answer.body["metadata"]["deletionTimestamp"],
        only=["metadata.deletionGracePeriodSeconds", "status"],
    )
    play.events_about("p", 1)
    play.kubelet.beat(node)
    play.until(f"nodes/{node}", lambda answer: not answer.body["spec"].get("taints"), only=["spec"])


def leases_of_nodes(play):
    node = play.add_node(has_lease=False)
    uid = play.read(f"nodes/{node}")["metadata"]["uid"]
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    lease = {
        "metadata": {
            "name": node,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}],
        },
        "spec": {
            "holderIdentity": node,
            "leaseDurationSeconds": 40,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    }
    play.ask("POST", path, lease)
    renewal = {"spec": {"renewTime": "2026-01-01T00:00:10.500000Z"}}
    play.ask("PATCH", f"{path}/{node}", renewal, type_=MERGE, only=["spec"])
    play.ask("DELETE", f"nodes/{node}")
    play.gone(f"{path}/{node}")


def namespace_from_begin_to_end(play):
    name = f"ns-{play.token}"
    place = f"/api/v1/namespaces/{name}"
    play.ask("POST", "namespaces", {"metadata": {"name": name, "labels": {"a": "b"}}})
    play.until(f"{place}/serviceaccounts/default", lambda answer: answer.code == 200)
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    play.ask("POST", f"{place}/configmaps", held, only=["metadata.finalizers"])
    play.ask("DELETE", place)
    play.until(
        place, lambda answer: len(answer.body["status"]["conditions"]) > 3, only=["spec", "status"]
    )
    play.ask("DELETE", place, only=["reason", "message"])
    play.ask("POST", f"{place}/configmaps", {"metadata": {"name": "late"}})
    play.ask("GET", f"{place}/configmaps/held", only=["metadata.deletionTimestamp"])
    play.patch(f"{place}/configmaps/held", {"metadata": {"finalizers": None}})
    play.until(place, lambda answer: answer.code == 404, timeout_s=60.0)


def namespaces_that_stay(play):
    for name in ("default", "kube-system", "kube-public"):
        play.ask("DELETE", f"namespaces/{name}")
    play.ask("DELETE", "namespaces/kube-node-lease?dryRun=All", only=["metadata.name", "reason"])
    play.ask("PATCH", f"namespaces/{play.namespace}", {"spec": {"finalizers": []}}, type_=MERGE)
    play.ask("DELETE", "namespaces")
