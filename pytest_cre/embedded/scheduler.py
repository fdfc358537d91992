"""Assigns pods to nodes that have room for them; the same cluster gives the same choice."""

from pytest_cre.embedded.events import EventRecorder
from pytest_cre.embedded.kinds import NODE, PERSISTENT_VOLUME_CLAIM, POD, Json, Kind
from pytest_cre.embedded.placement import Places
from pytest_cre.embedded.podactions import bind_pod
from pytest_cre.embedded.podstate import is_pod_finished, with_condition
from pytest_cre.embedded.queue import Mark
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.store import Change, Key, Record

_SCHEDULER_NAME = "default-scheduler"


class Scheduler:
    """Level-triggered: a pod that found no place is tried again whenever something gives way."""

    name = "scheduler"
    kind: Kind = POD

    def __init__(self, registry: Registry, recorder: EventRecorder) -> None:
        self._registry = registry
        self._recorder = recorder
        self._places = Places(registry.store)
        # Pods that found no place; the others that wait are marked already.
        self._refused: dict[Key, None] = {}
        self._mark: Mark = _ignore

    def start(self, mark: Mark) -> None:
        """Follow pods and nodes from now on, and look at those that are there."""
        self._mark = mark
        store = self._registry.store
        store.subscribe(POD, self._pod_changed)
        store.subscribe(NODE, self._node_changed)
        store.subscribe(PERSISTENT_VOLUME_CLAIM, lambda _: self._retry_all())
        for record in store.records(POD):
            self._places.account(record, gone=False)
            if _is_pending(record.obj):
                self._mark(record.key)

    def reconcile(self, key: Key) -> float | None:
        """Find a node for one pod."""
        record = self._registry.store.get(POD, key)
        if record is None or not _is_pending(record.obj):
            self._refused.pop(key, None)
            return None
        if claim := self._missing_claim(record):
            nodes = len(list(self._registry.store.records(NODE)))
            words = f'persistentvolumeclaim "{claim}" not found. not found'
            self._refuse(record, f"0/{nodes} nodes are available: {words}")
            return None
        placement = self._places.choose(record)
        node_name = placement.node_name
        if node_name is not None:
            self._refused.pop(key, None)
            bound = bind_pod(self._registry, *key, node_name)
            text = f"Successfully assigned {key[0]}/{key[1]} to {node_name}"
            self._recorder.record(bound, "Normal", "Scheduled", text)
        else:
            self._refuse(record, placement.problem)
        return None

    def _missing_claim(self, record: Record) -> str:
        """Give the first claim that a pod mounts and that does not exist."""
        for volume in record.obj["spec"].get("volumes") or ():
            source: Json | None = volume.get("persistentVolumeClaim")
            name: str = source.get("claimName", "") if source else ""
            place = (record.key[0], name)
            if name and self._registry.store.get(PERSISTENT_VOLUME_CLAIM, place) is None:
                return name
        return ""

    def _refuse(self, record: Record, problem: str) -> None:
        self._refused[record.key] = None
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": problem,
            "observedGeneration": record.obj["metadata"].get("generation", 1),
        }
        pod = with_condition(record.obj, condition, self._registry.now_text())
        updated = self._registry.update(POD, *record.key, pod, subresource="status")
        self._recorder.record(updated, "Warning", "FailedScheduling", problem)

    def _pod_changed(self, change: Change) -> None:
        record = change.record
        freed = self._places.account(record, gone=change.type == "DELETED")
        if change.type == "DELETED":
            self._refused.pop(record.key, None)
        elif _is_pending(record.obj) and (
            change.previous is None or record.obj["spec"] != change.previous.obj["spec"]
        ):
            self._mark(record.key)
        if freed:
            self._retry_all()

    def _node_changed(self, change: Change) -> None:
        previous = change.previous
        if (
            previous is None
            or change.type == "DELETED"
            or _placing_facts(change.record.obj) != _placing_facts(previous.obj)
        ):
            self._places.look_at_node(change.record, gone=change.type == "DELETED")
            self._retry_all()

    def _retry_all(self) -> None:
        for key in self._refused:
            self._mark(key)
        self._refused.clear()


def _placing_facts(node: Json) -> tuple[object, ...]:
    """Give what decides about a node, so that a heartbeat wakes nobody."""
    status: Json = node.get("status", {})
    return node.get("spec"), node["metadata"].get("labels"), status.get("allocatable")


def _ignore(key: Key, *, after_s: float = 0.0) -> None:
    """Stand in for the mark until the scheduler is started."""


def _is_pending(pod: Json) -> bool:
    spec: Json = pod["spec"]
    return (
        not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and spec.get("schedulerName") == _SCHEDULER_NAME
        and not pod["metadata"].get("deletionTimestamp")
        and not is_pod_finished(pod)
    )
