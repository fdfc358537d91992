"""Which node a pod should go to, and the books of what pods hold on the nodes."""

import heapq
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from pytest_cre.embedded.fitting import Amounts, allocatable, load, pod_requests, refusal, shortages
from pytest_cre.embedded.kinds import NODE, Json
from pytest_cre.embedded.podrules import is_pod_finished
from pytest_cre.embedded.store import Record, Store

_PLACING_FIELDS = ("affinity", "nodeSelector", "tolerations")


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

    def __init__(self, requests: Amounts) -> None:
        self.requests = requests
        self.offers: dict[str, Amounts] = {}
        self.refusals: Counter[str] = Counter()
        self.no_room: Placement | None = None
        self._heap: list[tuple[Decimal, str]] = []
        self._listed: dict[str, Decimal] = {}

    def enter(self, node_name: str, used: Amounts) -> None:
        """List a node, new or with more room than before."""
        fullness = load(self.requests, self.offers[node_name], used)
        if fullness is not None:
            self.no_room = None
            self._listed[node_name] = fullness
            heapq.heappush(self._heap, (fullness, node_name))

    def emptiest(self, used_by_node: Mapping[str, Amounts]) -> str | None:
        """Give the emptiest node with enough room, the first by name of several."""
        while self._heap:
            fullness, node_name = self._heap[0]
            if self._listed.get(node_name) == fullness:
                used = used_by_node.get(node_name, {})
                if load(self.requests, self.offers[node_name], used) == fullness:
                    return node_name
                heapq.heappop(self._heap)
                del self._listed[node_name]
                self.enter(node_name, used)
            else:
                heapq.heappop(self._heap)
        return None


class Places:
    """Follows what is said about nodes and pods. Pods that want the same are looked at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._used: dict[str, Amounts] = {}
        # What each pod that holds a place takes: its node and amounts, by the pod's uid.
        self._held: dict[str, tuple[str, Amounts]] = {}
        self._demands: dict[str, _Demand] = {}

    def account(self, pod: Record, *, gone: bool) -> bool:
        """Enter what a pod holds now; gives whether something was freed."""
        node_name: str | None = pod.obj["spec"].get("nodeName")
        held = self._held.get(pod.uid)
        if not node_name or gone or is_pod_finished(pod.obj):
            if held is None:
                return False
            del self._held[pod.uid]
            for resource, amount in held[1].items():
                self._used[held[0]][resource] -= amount
            for demand in self._demands.values():
                if held[0] in demand.offers:
                    demand.enter(held[0], self._used[held[0]])
            return True
        if held is None:
            amounts = pod_requests(pod.obj)
            self._held[pod.uid] = (node_name, amounts)
            used = self._used.setdefault(node_name, {})
            for resource, amount in amounts.items():
                used[resource] = used.get(resource, Decimal(0)) + amount
        return False

    def forget_nodes(self) -> None:
        """Look at the nodes afresh: one has come, gone or changed."""
        self._demands.clear()

    def choose(self, pod: Json) -> Placement:
        """Give the emptiest node that suits a pod, the first by name of several."""
        nodes = self._store.records(NODE)
        if not nodes:
            return Placement(node_name=None, problem="no nodes available to schedule pods")
        demand = self._demand(pod, nodes)
        if demand.no_room is not None:
            return demand.no_room
        node_name = demand.emptiest(self._used)
        if node_name is not None:
            return Placement(node_name=node_name)
        demand.no_room = Placement(node_name=None, problem=self._problem(demand, len(nodes)))
        return demand.no_room

    def _demand(self, pod: Json, nodes: list[Record]) -> _Demand:
        requests = pod_requests(pod)
        wanted: Json = {field: pod["spec"].get(field) for field in _PLACING_FIELDS}
        wanted["requests"] = {resource: str(amount) for resource, amount in requests.items()}
        signature = json.dumps(wanted, sort_keys=True)
        demand = self._demands.get(signature)
        if demand is None:
            demand = _Demand(requests)
            for node in nodes:
                reason = refusal(pod, node.obj)
                if reason is None:
                    demand.offers[node.key[1]] = allocatable(node.obj)
                    demand.enter(node.key[1], self._used.get(node.key[1], {}))
                else:
                    demand.refusals[reason] += 1
            self._demands[signature] = demand
        return demand

    def _problem(self, demand: _Demand, node_count: int) -> str:
        reasons = Counter(demand.refusals)
        full = 0
        for node_name, offered in demand.offers.items():
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
