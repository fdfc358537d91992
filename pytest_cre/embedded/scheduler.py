"""Assigns pods to nodes that have room for them; the same cluster gives the same choice."""

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal

from pytest_cre.embedded.events import EventRecorder
from pytest_cre.embedded.fitting import Amounts, allocatable, misfit, pod_requests
from pytest_cre.embedded.kinds import NODE, POD, Json, Kind
from pytest_cre.embedded.podactions import bind_pod
from pytest_cre.embedded.podrules import is_pod_finished, set_condition
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
        self._used: dict[str, Amounts] = {}
        # What each pod that holds a place takes: its node and amounts, by the pod's uid.
        self._held: dict[str, tuple[str, Amounts]] = {}
        self._waiting: dict[Key, None] = {}
        self._mark: Mark = _ignore

    def start(self, mark: Mark) -> None:
        """Follow pods and nodes from now on, and look at those that are there."""
        self._mark = mark
        store = self._registry.store
        store.subscribe(POD, self._pod_changed)
        store.subscribe(NODE, self._node_changed)
        for record in store.records(POD):
            self._account(record, gone=False)
            if _is_pending(record.obj):
                self._wait(record.key)

    def reconcile(self, key: Key) -> float | None:
        """Find a node for one pod."""
        record = self._registry.store.get(POD, key)
        if record is None or not _is_pending(record.obj):
            self._waiting.pop(key, None)
            return None
        node_name, problem = self._choose(record.obj)
        if node_name is not None:
            self._waiting.pop(key, None)
            bound = bind_pod(self._registry, *key, node_name)
            text = f"Successfully assigned {key[0]}/{key[1]} to {node_name}"
            self._recorder.record(bound, "Normal", "Scheduled", text)
        else:
            self._refuse(record, problem)
        return None

    def _choose(self, pod: Json) -> tuple[str | None, str]:
        """Give the emptiest node that fits, or the reason why there is none."""
        requests = pod_requests(pod)
        nodes = self._registry.store.records(NODE)
        if not nodes:
            return None, "no nodes available to schedule pods"
        reasons: Counter[str] = Counter()
        full = 0
        best: tuple[Decimal, str] | None = None
        for record in nodes:
            node_name = record.key[1]
            used = self._used.get(node_name, {})
            found = misfit(pod, record.obj, requests, used)
            reasons.update(found.reasons)
            full += found.is_only_full
            if not found.reasons:
                candidate = (_load(record.obj, requests, used), node_name)
                best = candidate if best is None else min(best, candidate)
        if best is not None:
            return best[1], ""
        # Nothing is preempted here, as among genuine pods of one priority; the words are theirs.
        preemption = {
            "No preemption victims found for incoming pod": full,
            "Preemption is not helpful for scheduling": len(nodes) - full,
        }
        start = f"0/{len(nodes)} nodes are available: "
        return None, f"{start}{_counted(reasons)} preemption: {start}{_counted(preemption)}"

    def _refuse(self, record: Record, problem: str) -> None:
        pod = record.copy()
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": problem,
            "lastProbeTime": None,
            "observedGeneration": pod["metadata"].get("generation", 1),
        }
        set_condition(pod, condition, self._registry.now_text())
        updated = self._registry.update(POD, *record.key, pod, subresource="status")
        self._recorder.record(updated, "Warning", "FailedScheduling", problem)

    def _pod_changed(self, change: Change) -> None:
        record = change.record
        freed = self._account(record, gone=change.type == "DELETED")
        if change.type == "DELETED":
            self._waiting.pop(record.key, None)
        elif _is_pending(record.obj) and (
            change.previous is None or record.obj["spec"] != change.previous.obj["spec"]
        ):
            self._wait(record.key)
        if freed:
            self._retry_all()

    def _node_changed(self, change: Change) -> None:
        previous = change.previous
        if previous is None or change.type == "DELETED":
            self._retry_all()
            return
        new, old = change.record.obj, previous.obj
        if (
            new.get("spec") != old.get("spec")
            or new["metadata"].get("labels") != old["metadata"].get("labels")
            or new.get("status", {}).get("allocatable") != old.get("status", {}).get("allocatable")
        ):
            self._retry_all()

    def _wait(self, key: Key) -> None:
        self._waiting[key] = None
        self._mark(key)

    def _retry_all(self) -> None:
        for key in self._waiting:
            self._mark(key)

    def _account(self, record: Record, *, gone: bool) -> bool:
        """Keep the books of what is used where; gives whether something was freed."""
        node_name = record.obj["spec"].get("nodeName")
        holds = bool(node_name) and not gone and not is_pod_finished(record.obj)
        held = self._held.get(record.uid)
        if holds and held is None:
            amounts = pod_requests(record.obj)
            self._held[record.uid] = (node_name, amounts)
            used = self._used.setdefault(node_name, {})
            for resource, amount in amounts.items():
                used[resource] = used.get(resource, Decimal(0)) + amount
        elif not holds and held is not None:
            del self._held[record.uid]
            for resource, amount in held[1].items():
                self._used[held[0]][resource] -= amount
            return True
        return False


def _ignore(key: Key, *, after_s: float = 0.0) -> None:
    """Stand in for the mark until the scheduler is started."""


def _counted(reasons: Mapping[str, int]) -> str:
    texts = sorted(f"{count} {reason}" for reason, count in reasons.items() if count)
    return f"{', '.join(texts)}."


def _is_pending(pod: Json) -> bool:
    spec: Json = pod["spec"]
    return (
        not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and spec.get("schedulerName") == _SCHEDULER_NAME
        and not pod["metadata"].get("deletionTimestamp")
        and not is_pod_finished(pod)
    )


def _load(node: Json, requests: Amounts, used: Amounts) -> Decimal:
    """Give how full the node's scarcest wanted resource would be, 0 to 1."""
    offered = allocatable(node)
    return max(
        (used.get(resource, Decimal(0)) + amount) / offered[resource]
        for resource, amount in requests.items()
        if offered.get(resource)
    )
