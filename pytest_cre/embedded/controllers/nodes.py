"""Node lifecycle: nodes that fall silent become unknown, and taints say what a node is like."""

import copy
from collections.abc import Callable

from pytest_cre.embedded.events import EventRecorder
from pytest_cre.embedded.kinds import LEASE, NODE, POD, Json, Kind
from pytest_cre.embedded.podstate import (
    is_pod_finished,
    pod_condition,
    set_condition,
    with_condition,
)
from pytest_cre.embedded.queue import Mark
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.residents import Residents
from pytest_cre.embedded.store import Change, Key, Record

_LEASE_NAMESPACE = "kube-node-lease"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_OWN_TAINTS = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)
# Conditions that nobody can vouch for once the kubelet is silent.
_KUBELET_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class NodeController:
    """Watches the heartbeats of nodes by the server's own clock, so that skew does no harm."""

    name = "node"
    kind: Kind = NODE

    def __init__(
        self,
        registry: Registry,
        recorder: EventRecorder,
        residents: Residents,
        *,
        grace_s: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._registry = registry
        self._recorder = recorder
        self._residents = residents
        self._grace_s = grace_s
        self._monotonic = monotonic
        self._heard_at_s: dict[str, float] = {}

    def start(self, mark: Mark) -> None:
        """Follow nodes and their leases."""

        def node_changed(change: Change) -> None:
            name = change.record.key[1]
            if change.type == "DELETED":
                self._heard_at_s.pop(name, None)
                return
            if change.previous is None or _heartbeat(change.record) != _heartbeat(change.previous):
                self._heard_at_s[name] = self._monotonic()
            mark(change.record.key)

        def lease_changed(change: Change) -> None:
            namespace, name = change.record.key
            if namespace == _LEASE_NAMESPACE and change.type != "DELETED":
                # Only the moment is noted: a renewal of a healthy node needs no look at it.
                self._heard_at_s[name] = self._monotonic()

        self._registry.store.subscribe(NODE, node_changed)
        self._registry.store.subscribe(LEASE, lease_changed)

    def reconcile(self, key: Key) -> float | None:
        """Judge one node's silence and set its taints."""
        record = self._registry.store.get(NODE, key)
        if record is None:
            return None
        heard_at_s = self._heard_at_s.setdefault(key[1], self._monotonic())
        left_s = self._grace_s - (self._monotonic() - heard_at_s)
        if left_s <= 0:
            record = self._declare_unknown(record)
        self._set_taints(record)
        ready = pod_condition(record.obj, "Ready")
        if ready is not None and ready.get("status") != "True":
            self._mark_pods_not_ready(key[1])
        return max(left_s, self._grace_s / 10)

    def _declare_unknown(self, record: Record) -> Record:
        conditions: list[Json] = record.obj.get("status", {}).get("conditions") or []
        statuses = {c.get("type"): c.get("status") for c in conditions}
        if statuses.get("Ready") == "Unknown":
            return record
        node = record.copy()
        now = self._registry.now_text()
        for condition_type in _KUBELET_CONDITIONS:
            if condition_type in statuses:
                old = pod_condition(node, condition_type) or {}
                words = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
                beat = {"lastHeartbeatTime": old.get("lastHeartbeatTime", now)}
            else:
                words = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
                beat = {"lastHeartbeatTime": record.obj["metadata"]["creationTimestamp"]}
            condition = {"type": condition_type, "status": "Unknown", **beat}
            set_condition(node, {**condition, "reason": words[0], "message": words[1]}, now)
        name = record.key[1]
        self._recorder.record(
            record, "Normal", "NodeNotReady", f"Node {name} status is now: NodeNotReady"
        )
        return self._registry.update(NODE, "", name, node, subresource="status")

    def _set_taints(self, record: Record) -> None:
        spec: Json = record.obj.get("spec", {})
        taints: list[Json] = spec.get("taints") or []
        wanted = self._wanted_taints(record.obj)
        kept = [
            taint
            for taint in taints
            if taint.get("key") not in _OWN_TAINTS or (taint["key"], taint.get("effect")) in wanted
        ]
        present = {(taint.get("key"), taint.get("effect")) for taint in kept}
        for key, effect in wanted:
            if (key, effect) not in present:
                now = self._registry.now_text()
                kept.append({"key": key, "effect": effect, "timeAdded": now})
        if kept == taints:
            return
        node = copy.copy(record.obj)
        node["metadata"] = dict(node["metadata"])
        node["spec"] = {key: value for key, value in spec.items() if key != "taints"}
        if kept:
            node["spec"]["taints"] = kept
        self._registry.update(NODE, "", record.key[1], node)

    def _wanted_taints(self, node: Json) -> list[tuple[str, str]]:
        ready = (pod_condition(node, "Ready") or {}).get("status")
        wanted: list[tuple[str, str]] = []
        if ready == "False":
            wanted += [(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]
        elif ready == "Unknown":
            wanted += [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]
        if node.get("spec", {}).get("unschedulable"):
            wanted.append((UNSCHEDULABLE, "NoSchedule"))
        return wanted

    def _mark_pods_not_ready(self, node_name: str) -> None:
        for record in self._residents.on(node_name):
            if is_pod_finished(record.obj):
                continue
            ready = pod_condition(record.obj, "Ready")
            if ready is None or ready.get("status") != "True":
                continue
            pod = with_condition(
                record.obj, {**ready, "status": "False"}, self._registry.now_text()
            )
            self._registry.update(POD, *record.key, pod, subresource="status")


def _heartbeat(record: Record) -> object:
    ready = pod_condition(record.obj, "Ready")
    return ready and (ready.get("lastHeartbeatTime"), ready.get("status") == "Unknown")
