"""Binding a pod to a node and evicting it."""

from pytest_cre.embedded.deletion import DeleteOptions
from pytest_cre.embedded.kinds import POD, Json
from pytest_cre.embedded.podrules import is_pod_finished, set_condition
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.status import bad_request, conflict
from pytest_cre.embedded.store import Record


def bind_pod(
    registry: Registry, namespace: str, name: str, node_name: str, uid: str | None = None
) -> Record:
    """Assign a pod to a node, once; raises 404 and 409."""
    record = registry.get(POD, namespace, name)
    pod = record.copy()
    if uid and pod["metadata"]["uid"] != uid:
        why = (
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
            f"{pod['metadata']['uid']}"
        )
        raise conflict(POD, name, why, "binding")
    if pod["metadata"].get("deletionTimestamp"):
        raise conflict(
            POD, name, f"pod {name} is being deleted, cannot be assigned to a host", "binding"
        )
    if pod["spec"].get("nodeName"):
        why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        raise conflict(POD, name, why, "binding")
    pod["spec"]["nodeName"] = node_name
    set_condition(
        pod, {"type": "PodScheduled", "status": "True", "lastProbeTime": None}, registry.now_text()
    )
    return registry.store.put(POD, record.key, pod)


def bind_by_request(registry: Registry, namespace: str, name: str, body: Json) -> None:
    """Carry out a Binding that a client sent."""
    target = body.get("target")
    node_name = target.get("name") if isinstance(target, dict) else None
    if not isinstance(node_name, str) or not node_name:
        raise bad_request('Binding.core "" is invalid: target.name: Required value')
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    uid = metadata.get("uid")
    bind_pod(registry, namespace, name, node_name, uid if isinstance(uid, str) else None)


def evict_pod(registry: Registry, namespace: str, name: str, options: DeleteOptions) -> None:
    """Delete a pod on request of an eviction, leaving the reason in its conditions."""
    disrupt_pod(
        registry, namespace, name, "EvictionByEvictionAPI", "Eviction API: evicting", options
    )


def disrupt_pod(
    registry: Registry,
    namespace: str,
    name: str,
    reason: str,
    message: str,
    options: DeleteOptions,
) -> None:
    """Mark a pod as disrupted for a reason that is not its own, then delete it."""
    record = registry.get(POD, namespace, name)
    if not is_pod_finished(record.obj) and not options.dry_run:
        pod = record.copy()
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "message": message,
        }
        set_condition(pod, condition, registry.now_text())
        registry.store.put(POD, record.key, pod)
    registry.delete(POD, namespace, name, options)
