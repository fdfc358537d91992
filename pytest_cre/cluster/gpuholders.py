"""Which pods hold GPUs of which nodes, whoever made them."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_cre.cluster.client import RUN_LABEL
from pytest_cre.cluster.inventory import GPU_DRIVER, GPU_RESOURCE, whole_count
from pytest_cre.cluster.objects import (
    POD,
    RESOURCE_CLAIM,
    Object,
    entries,
    metadata_of,
    part,
    status_of,
)
from pytest_cre.evidence.model import GpuHolder

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"  # what has ended holds nothing
_FEW_NODES = 16  # are asked for one by one: of all pods of a cluster few are on them


def read_gpu_holders(client: "Client", nodes: Collection[str]) -> dict[str, tuple[GpuHolder, ...]]:
    """Return the pods that hold GPUs of these nodes, by node and sorted by name.

    Pods that are bound and wait, and those that are being deleted, hold theirs. Raises
    `ClusterProblem`, such as for credentials that may not list the pods of all namespaces.
    """
    wanted = frozenset(nodes)
    selectors = [UNFINISHED]
    if len(wanted) <= _FEW_NODES:
        selectors = [f"spec.nodeName={node},{UNFINISHED}" for node in sorted(wanted)]

    def slim(pod: dict[str, Any]) -> dict[str, Any]:
        counts = gpus_of(pod) or part(pod, "spec").get("resourceClaims")
        return _slim(pod) if counts and _node_of(pod) in wanted else {}

    pods = [
        pod
        for selector in selectors
        for pod in client.list(POD, all_namespaces=True, field_selector=selector, slim=slim).items
        if pod
    ]
    claimed = (
        _claimed(client) if any(part(pod, "spec").get("resourceClaims") for pod in pods) else {}
    )
    held: dict[str, list[GpuHolder]] = {}
    for pod in pods:
        holder = gpu_holder(pod, claimed)
        if holder is not None:
            held.setdefault(_node_of(pod), []).append(holder)
    return {node: tuple(sorted(held[node], key=lambda each: each.pod)) for node in sorted(held)}


def gpu_holder(pod: Object, claimed: Mapping[str, int] | None = None) -> GpuHolder | None:
    """Return what a pod holds; None where it has no node, no GPU, or has ended.

    `claimed` are the GPUs of resource claims by the UID of the pod that they are reserved for.
    """
    metadata = metadata_of(pod)
    gpus = gpus_of(pod) + (claimed or {}).get(str(metadata.get("uid")), 0)
    if not gpus or not _node_of(pod) or status_of(pod).get("phase") in ("Succeeded", "Failed"):
        return None
    return GpuHolder(
        pod=f"{metadata.get('namespace', '')}/{metadata.get('name', '')}",
        gpus=gpus,
        run_id=str(part(metadata, "labels").get(RUN_LABEL) or "") or None,
    )


def gpus_of(pod: Object) -> int:
    """Return the GPUs a pod asks for, as the scheduler counts: the running set or the largest init."""
    spec = part(pod, "spec")
    inits = entries(spec, "initContainers")
    sidecars = [each for each in inits if each.get("restartPolicy") == "Always"]
    together = sum(map(_gpus_in, (*entries(spec, "containers"), *sidecars)))
    return max([together, *map(_gpus_in, inits)])


def left_pod_words(pod: Object) -> str:
    """Return how a pod that will not go is told: what it holds, or where it is."""
    holder = gpu_holder(pod)
    if holder is None:
        node = _node_of(pod)
        return f"Pod/{metadata_of(pod).get('name')}" + (f" on node {node}" if node else "")
    return f"{holder.gpus} GPUs of {_node_of(pod)} still held by {holder.pod}"


def _claimed(client: "Client") -> dict[str, int]:
    """Return the GPUs that DRA drivers have given to pods, by the pod's UID."""
    claimed: dict[str, int] = {}
    for claim in client.list(RESOURCE_CLAIM, all_namespaces=True, is_served=True).items:
        status = status_of(claim)
        results = entries(part(part(status, "allocation"), "devices"), "results")
        gpus = sum(each.get("driver") == GPU_DRIVER for each in results)
        for user in entries(status, "reservedFor"):
            uid = str(user.get("uid"))
            claimed[uid] = claimed.get(uid, 0) + gpus
    return claimed


def _slim(pod: Object) -> dict[str, Any]:
    """Drop of a pod what does not count here, which is most of it."""
    spec, metadata = part(pod, "spec"), metadata_of(pod)
    names = ("nodeName", "resourceClaims")
    return {
        "metadata": {name: metadata.get(name) for name in ("namespace", "name", "uid", "labels")},
        "spec": {name: spec.get(name) for name in names}
        | {name: _resources(entries(spec, name)) for name in ("containers", "initContainers")},
        "status": {"phase": status_of(pod).get("phase")},
    }


def _resources(containers: Iterable[Object]) -> list[dict[str, Any]]:
    return [
        {name: each.get(name) for name in ("resources", "restartPolicy")} for each in containers
    ]


def _gpus_in(container: Object) -> int:
    resources = part(container, "resources")
    return max(
        whole_count(part(resources, name).get(GPU_RESOURCE)) for name in ("requests", "limits")
    )


def _node_of(pod: Object) -> str:
    return str(part(pod, "spec").get("nodeName") or "")
