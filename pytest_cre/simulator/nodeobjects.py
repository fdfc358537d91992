"""Node and Lease objects of simulated nodes, as a kubelet reports them."""

from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any
from uuid import UUID

from pytest_cre.simulator.hardware import SimulatedNode

Json = Any

SIMULATED_LABEL = "cre.pytest.org/simulated"
LIMITS_ANNOTATION = "cre.pytest.org/simulated-limits"
NIC_RESOURCE = "cre.pytest.org/nics"  # what stands for a device plugin of the fast network
SIMULATED_TAINT = {"key": SIMULATED_LABEL, "value": "true", "effect": "NoSchedule"}
LEASE_NAMESPACE = "kube-node-lease"
LEASE_DURATION_S = 40
NODE_ADDRESS = "127.0.0.1"
_PODS_PER_NODE = 110


def now_text() -> str:
    """Return the time as objects carry it: whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now_micro_text() -> str:
    """Return the time as leases carry it: microseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def node_object(node: SimulatedNode, limits_json: str) -> Json:
    """Return a Node to create."""
    labels = {
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        SIMULATED_LABEL: "true",
    }
    if node.gpus:
        labels |= {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": node.model.product,
            "nvidia.com/gpu.count": str(node.gpus),
        }
    spec: Json = {"taints": [SIMULATED_TAINT, *(dict(each) for each in node.taints)]}
    if node.is_unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "labels": {**labels, **node.labels},
            "annotations": {LIMITS_ANNOTATION: limits_json},
        },
        "spec": spec,
    }


def node_status(
    node: SimulatedNode, *, port: int, version: str, boot: str, ready_since: str, gpus: int
) -> Json:
    """Return the status of a node that is well; `boot` differs between starts.

    `gpus` are those that it offers of the ones that it has.
    """
    resources = {
        "cpu": "128",
        "memory": f"{node.model.memory_gib}Gi",
        "ephemeral-storage": "4Ti",
        "hugepages-2Mi": "0",
        "pods": str(_PODS_PER_NODE),
    }
    if node.gpus:
        resources["nvidia.com/gpu"] = str(node.gpus)
    if node.model.nics_per_node:
        resources[NIC_RESOURCE] = str(node.model.nics_per_node)
    return {
        "capacity": resources,
        "allocatable": {**resources, **({"nvidia.com/gpu": str(gpus)} if node.gpus else {})},
        "conditions": ready_conditions(ready_since),
        # API servers prefer a host name, and no simulated one can be resolved.
        "addresses": [{"type": "InternalIP", "address": NODE_ADDRESS}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": {
            "machineID": _stable_id("machine", node.name).hex,
            "systemUUID": str(_stable_id("system", node.name)),
            "bootID": str(_stable_id("boot", node.name, boot)),
            "kernelVersion": "6.8.0-simulated",
            "osImage": "Simulated GPU node",
            "containerRuntimeVersion": "simulated://1.0",
            "kubeletVersion": version,
            "kubeProxyVersion": version,
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
    }


def ready_conditions(since: str) -> list[Json]:
    """Return the conditions of a node that is well."""
    well = (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    )
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": "simulated kubelet",
            "lastHeartbeatTime": now_text(),
            "lastTransitionTime": since,
        }
        for kind, status, reason in well
    ]


def lease_object(node_name: str, node_uid: str) -> Json:
    """Return a Lease to create."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": node_name,
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": node_uid}
            ],
        },
        "spec": {
            "holderIdentity": node_name,
            "leaseDurationSeconds": LEASE_DURATION_S,
            "renewTime": now_micro_text(),
        },
    }


def _stable_id(*key: str) -> UUID:
    digest = blake2b("\x1f".join(key).encode(), digest_size=16).digest()
    return UUID(bytes=digest, version=4)
