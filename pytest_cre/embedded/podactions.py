"""Binding a pod to a node and evicting it."""

from pytest_cre.embedded.deletion import DeleteOptions
from pytest_cre.embedded.kinds import POD, Json
from pytest_cre.embedded.podstate import is_pod_finished, with_condition
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.status import ApiError, bad_request, conflict, foreign_uid
from pytest_cre.embedded.store import Record


def bind_pod(
    registry: Registry, namespace: str, name: str, node_name: str, uid: str | None = None
) -> Record:
    """Assign a pod to a node, once; raises 404 and 409."""
    record = registry.get(POD, namespace, name)
    pod = record.obj
    if uid and record.uid != uid:
        raise foreign_uid(POD, record.key, uid, record.uid)
    if pod["metadata"].get("deletionTimestamp"):
        raise conflict(
            POD, name, f"pod {name} is being deleted, cannot be assigned to a host", "binding"
        )
    if pod["spec"].get("nodeName"):
        why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        raise conflict(POD, name, why, "binding")
    condition = {"type": "PodScheduled", "status": "True"}
    bound = with_condition(pod, condition, registry.now_text())
    bound["spec"] = {**pod["spec"], "nodeName": node_name}
    return registry.store.put(POD, record.key, bound)


def bind_by_request(registry: Registry, namespace: str, name: str, body: Json) -> None:
    """Carry out a Binding that a client sent."""
    metadata = body.get("metadata", {})
    if metadata.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    node_name = body.get("target", {}).get("name")
    if not node_name:
        raise ApiError(500, "", "target.name: Required value")
    bind_pod(registry, namespace, name, node_name, metadata.get("uid"))


def evict_pod(registry: Registry, namespace: str, name: str, options: DeleteOptions) -> None:
    """Delete a pod on request of an eviction, leaving the reason in its conditions."""
    condition = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    disrupt_pod(registry, namespace, name, condition, options)


def disrupt_pod(
    registry: Registry,
    namespace: str,
    name: str,
    cause: Json,
    options: DeleteOptions,
) -> None:
    """Mark a pod as disrupted by a cause (`reason`, `message`), then delete it."""
    record = registry.get(POD, namespace, name)
    if not is_pod_finished(record.obj) and not options.dry_run:
        condition = {"type": "DisruptionTarget", "status": "True", **cause}
        pod = with_condition(record.obj, condition, registry.now_text())
        registry.store.put(POD, record.key, pod)
    registry.delete(POD, namespace, name, options)
