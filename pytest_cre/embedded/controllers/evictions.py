"""Pods that cannot stay: on nodes with NoExecute taints, and on nodes that no longer exist."""

from collections.abc import Callable
from datetime import datetime, timedelta

from pytest_cre.embedded.deletion import DeleteOptions
from pytest_cre.embedded.events import EventRecorder
from pytest_cre.embedded.fitting import tolerates
from pytest_cre.embedded.kinds import NODE, POD, Json, Kind
from pytest_cre.embedded.podactions import disrupt_pod
from pytest_cre.embedded.podstate import is_pod_finished, with_condition
from pytest_cre.embedded.queue import Mark
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.residents import Residents
from pytest_cre.embedded.store import Change, Key, Record


class TaintEviction:
    """Evicts pods from tainted nodes once they have stayed as long as they tolerate it."""

    name = "taint eviction"
    kind: Kind = POD

    def __init__(self, registry: Registry, recorder: EventRecorder, residents: Residents) -> None:
        self._registry = registry
        self._recorder = recorder
        self._residents = residents

    def start(self, mark: Mark) -> None:
        """Follow the taints of nodes and the pods that come to stand on them."""
        store = self._registry.store

        def node_changed(change: Change) -> None:
            old = _no_execute_taints(change.previous.obj) if change.previous else []
            if _no_execute_taints(change.record.obj) != old:
                for pod in self._residents.on(change.record.key[1]):
                    mark(pod.key)

        def pod_changed(change: Change) -> None:
            before = change.previous.obj["spec"] if change.previous else {}
            node_name = change.record.obj["spec"].get("nodeName")
            if node_name and node_name != before.get("nodeName"):
                mark(change.record.key)

        store.subscribe(NODE, node_changed)
        store.subscribe(POD, pod_changed)

    def reconcile(self, key: Key) -> float | None:
        """Evict one pod if its time is up."""
        record = self._registry.store.get(POD, key)
        if record is None or record.obj["metadata"].get("deletionTimestamp"):
            return None
        node = self._registry.store.get(NODE, ("", record.obj["spec"].get("nodeName", "")))
        taints = _no_execute_taints(node.obj) if node else []
        if not taints or is_pod_finished(record.obj):
            return None
        end = self._end(taints, record.obj["spec"].get("tolerations", []))
        if end is None:
            return None
        left_s = (end - self._registry.now()).total_seconds()
        if left_s > 0:
            return left_s
        text = f"Marking for deletion Pod {key[0]}/{key[1]}"
        self._recorder.record(record, "Normal", "TaintManagerEviction", text)
        disrupt_pod(
            self._registry,
            *key,
            {
                "reason": "DeletionByTaintManager",
                "message": "Taint manager: deleting due to NoExecute taint",
                "observedGeneration": record.obj["metadata"].get("generation", 1),
            },
            DeleteOptions(uid=record.uid),
        )
        return None

    def _end(self, taints: list[Json], tolerations: list[Json]) -> datetime | None:
        """Give the moment up to which a pod may stay, None for always."""
        end: datetime | None = None
        now = self._registry.now()
        for taint in taints:
            matching = [t for t in tolerations if tolerates(t, taint)]
            if not matching:
                return now
            limits_s = [t["tolerationSeconds"] for t in matching if "tolerationSeconds" in t]
            if not limits_s:
                continue
            added = taint.get("timeAdded")
            since = datetime.fromisoformat(added) if added else now
            moment = since + timedelta(seconds=max(min(limits_s), 0))
            end = moment if end is None else min(end, moment)
        return end


class PodCollector:
    """Removes pods whose node does not exist, once that has been so for a time."""

    name = "pod garbage"
    kind: Kind = POD

    def __init__(
        self,
        registry: Registry,
        residents: Residents,
        *,
        quarantine_s: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._registry = registry
        self._residents = residents
        self._quarantine_s = quarantine_s
        self._monotonic = monotonic
        self._missing_since_s: dict[str, float] = {}

    def start(self, mark: Mark) -> None:
        """Follow nodes that go and pods that are bound."""
        store = self._registry.store

        def node_changed(change: Change) -> None:
            if change.type == "ADDED":
                self._missing_since_s.pop(change.record.key[1], None)
            elif change.type == "DELETED":
                for pod in self._residents.on(change.record.key[1]):
                    mark(pod.key)

        store.subscribe(NODE, node_changed)
        store.subscribe(POD, lambda change: mark(change.record.key))

    def reconcile(self, key: Key) -> float | None:
        """Remove one pod if its node has been missing for long enough."""
        store = self._registry.store
        record = store.get(POD, key)
        node_name = record.obj["spec"].get("nodeName") if record else None
        if record is None or not node_name or store.get(NODE, ("", node_name)) is not None:
            return None
        since_s = self._missing_since_s.setdefault(node_name, self._monotonic())
        left_s = self._quarantine_s - (self._monotonic() - since_s)
        if left_s > 0:
            return left_s
        self._remove(record)
        return None

    def _remove(self, record: Record) -> None:
        if not is_pod_finished(record.obj):
            condition = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
            }
            pod = with_condition(record.obj, condition, self._registry.now_text())
            pod["status"]["phase"] = "Failed"
            self._registry.update(POD, *record.key, pod, subresource="status")
        options = DeleteOptions(grace_s=0, uid=record.uid)
        self._registry.delete(POD, *record.key, options)


def _no_execute_taints(node: Json) -> list[Json]:
    taints: list[Json] = node.get("spec", {}).get("taints") or []
    return [taint for taint in taints if taint.get("effect") == "NoExecute"]
