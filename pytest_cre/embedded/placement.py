"""Which node a pod should go to, and the books of what pods hold on the nodes."""

import heapq
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from pytest_cre.embedded.affinity import Neighbourhood
from pytest_cre.embedded.fitting import Amounts, Wish, allocatable, load, pod_requests, shortages
from pytest_cre.embedded.kinds import NODE, Json
from pytest_cre.embedded.podstate import is_pod_finished
from pytest_cre.embedded.store import Record, Store

_DEMANDS_KEPT = 200
_PLACING_FIELDS = ("nodeSelector", "tolerations")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a pod should go, or why it can go nowhere."""

    node_name: str | None
    problem: str = ""


class _Demand:
    """Pods that want the same: the nodes that suit them, the emptiest first.

    The heap is put right as far as it is looked at: an entry counts only while it is the one
    listed for its node, and is corrected when the node has become fuller.
    """

    def __init__(self, requests: Amounts, pod: Json) -> None:
        self.requests = requests
        self.wish = Wish(pod)
        self.offers: dict[str, Amounts] = {}
        # Why the other nodes would not do even if they were empty.
        self.refusals: dict[str, str] = {}
        self.no_room: Placement | None = None
        self._heap: list[tuple[Decimal, str]] = []
        self._listed: dict[str, Decimal] = {}

    def leave(self, node_name: str) -> None:
        """Forget a node."""
        self.no_room = None
        self.offers.pop(node_name, None)
        self.refusals.pop(node_name, None)
        self._listed.pop(node_name, None)

    def enter(self, node_name: str, used: Amounts) -> None:
        """List a node, new or with more room than before."""
        fullness = load(self.requests, self.offers[node_name], used)
        if fullness is not None:
            self.no_room = None
            self._listed[node_name] = fullness
            heapq.heappush(self._heap, (fullness, node_name))

    def emptiest(
        self, used_by_node: Mapping[str, Amounts], objection: Callable[[str], str | None]
    ) -> str | None:
        """Give the emptiest node with enough room, the first by name of several."""
        passed_over: list[tuple[Decimal, str]] = []
        try:
            while self._heap:
                fullness, node_name = self._heap[0]
                if self._listed.get(node_name) == fullness:
                    used = used_by_node.get(node_name, {})
                    if load(self.requests, self.offers[node_name], used) == fullness:
                        if objection(node_name) is None:
                            return node_name
                        passed_over.append(heapq.heappop(self._heap))
                        continue
                    heapq.heappop(self._heap)
                    del self._listed[node_name]
                    self.enter(node_name, used)
                else:
                    heapq.heappop(self._heap)
            return None
        finally:
            for entry in passed_over:
                heapq.heappush(self._heap, entry)


class Places:
    """Follows what is said about nodes and pods. Pods that want the same are looked at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._used: dict[str, Amounts] = {}
        # What each pod that holds a place takes: its node and amounts, by the pod's uid.
        self._held: dict[str, tuple[str, Amounts]] = {}
        self._demands: dict[str, _Demand] = {}
        self._neighbourhood = Neighbourhood(store)
        self._affinity_texts: dict[int, tuple[Json, str]] = {}

    def account(self, pod: Record, *, gone: bool) -> bool:
        """Enter what a pod holds now; gives whether something was freed."""
        node_name: str | None = pod.obj["spec"].get("nodeName")
        held = self._held.get(pod.uid)
        if not node_name or gone or is_pod_finished(pod.obj):
            if held is None:
                return False
            del self._held[pod.uid]
            self._neighbourhood.leave(pod.uid)
            for resource, amount in held[1].items():
                self._used[held[0]][resource] -= amount
            for demand in self._demands.values():
                if held[0] in demand.offers:
                    demand.enter(held[0], self._used[held[0]])
            return True
        if held is None:
            amounts = pod_requests(pod.obj)
            self._held[pod.uid] = (node_name, amounts)
            self._neighbourhood.enter(pod, node_name)
            used = self._used.setdefault(node_name, {})
            for resource, amount in amounts.items():
                used[resource] = used.get(resource, Decimal(0)) + amount
        return False

    def look_at_node(self, node: Record, *, gone: bool) -> None:
        """Take in that a node has come, gone or changed."""
        for demand in self._demands.values():
            demand.leave(node.key[1])
            if not gone:
                self._offer(demand, node)

    def choose(self, pod: Record) -> Placement:
        """Give the emptiest node that suits a pod, the first by name of several."""
        nodes = self._store.records(NODE)
        if not nodes:
            return Placement(node_name=None, problem="no nodes available to schedule pods")
        demand = self._demand(pod.obj, nodes)
        if demand.no_room is not None:
            return demand.no_room
        objection = self._neighbourhood.objections(pod)
        node_name = demand.emptiest(self._used, objection)
        if node_name is not None:
            return Placement(node_name=node_name)
        objections = {name: why for name in demand.offers if (why := objection(name))}
        problem = Placement(node_name=None, problem=self._problem(demand, len(nodes), objections))
        if not objections:
            demand.no_room = problem
        return problem

    def _demand(self, pod: Json, nodes: list[Record]) -> _Demand:
        requests = pod_requests(pod)
        wanted: Json = {field: pod["spec"].get(field) for field in _PLACING_FIELDS}
        wanted["requests"] = {resource: str(amount) for resource, amount in requests.items()}
        signature = json.dumps(wanted, sort_keys=True) + self._affinity_text(pod)
        demand = self._demands.get(signature)
        if demand is None:
            if len(self._demands) >= _DEMANDS_KEPT:
                self._demands.clear()
            demand = self._demands[signature] = _Demand(requests, pod)
            for node in nodes:
                self._offer(demand, node)
        return demand

    def _affinity_text(self, pod: Json) -> str:
        """Give a pod's affinity as text; that of a large Job is long, and shared by its pods."""
        affinity = pod["spec"].get("affinity")
        if affinity is None:
            return ""
        known = self._affinity_texts.get(id(affinity))
        if known is None:
            if len(self._affinity_texts) >= _DEMANDS_KEPT:
                self._affinity_texts.clear()
            # The affinity is kept as well, so that nothing else gets its identity.
            known = self._affinity_texts[id(affinity)] = affinity, json.dumps(affinity)
        return known[1]

    def _offer(self, demand: _Demand, node: Record) -> None:
        reason = demand.wish.refusal(node.obj)
        if reason is None:
            demand.offers[node.key[1]] = allocatable(node.obj)
            demand.enter(node.key[1], self._used.get(node.key[1], {}))
        else:
            demand.refusals[node.key[1]] = reason
            demand.no_room = None

    def _problem(self, demand: _Demand, node_count: int, objections: Mapping[str, str]) -> str:
        reasons = Counter(demand.refusals.values())
        full = 0
        for node_name, offered in demand.offers.items():
            if node_name in objections:
                reasons[objections[node_name]] += 1
                full += 1
                continue
            reasons.update(shortages(demand.requests, offered, self._used.get(node_name, {})))
            full += not shortages(demand.requests, offered, {})
        # Nothing is preempted here, as among genuine pods of one priority; the words are theirs.
        preemption = {
            "No preemption victims found for incoming pod": full,
            "Preemption is not helpful for scheduling": node_count - full,
        }
        start = f"0/{node_count} nodes are available: "
        return f"{start}{_counted(reasons)} preemption: {start}{_counted(preemption)}"


def _counted(reasons: Mapping[str, int]) -> str:
    texts = sorted(f"{count} {reason}" for reason, count in reasons.items() if count)
    return f"{', '.join(texts)}."
