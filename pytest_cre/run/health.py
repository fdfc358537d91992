"""The health of the nodes in use: a rule that says when one has failed, and what changed on them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_cre.cluster.inventory import node_facts
from pytest_cre.cluster.objects import NODE, entries, metadata_of, part, status_of
from pytest_cre.evidence.model import NodeSnapshot, Problem
from pytest_cre.formats.cel import CelProblem, Predicate, compile_predicate

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

VARIABLES = ("node",)
_FEW_NODES = 8  # are asked for one by one; of more the whole list is read
_QUIET = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})

Node = Mapping[str, Any]


def compile_rule(text: str) -> Predicate:
    """Return a rule over `node`, true for a failed one; raises `CelProblem`."""
    return compile_predicate(text, VARIABLES)


def projection(node: Node) -> dict[str, object]:
    """Return what a rule sees of a node. What is missing is there and empty, so rules need no `has`."""
    metadata, spec, status = metadata_of(node), part(node, "spec"), status_of(node)
    return {
        "metadata": {
            "name": str(metadata.get("name") or ""),
            "labels": _texts(part(metadata, "labels")),
            "annotations": _texts(part(metadata, "annotations")),
        },
        "spec": {
            "unschedulable": spec.get("unschedulable") is True,
            "providerID": str(spec.get("providerID") or ""),
            "taints": [_named(each, "key", "value", "effect") for each in entries(spec, "taints")],
        },
        "status": {
            "conditions": [
                _named(each, "type", "status", "reason", "message")
                for each in entries(status, "conditions")
            ],
            "addresses": [_named(each, "type", "address") for each in entries(status, "addresses")],
            "capacity": _texts(part(status, "capacity")),
            "allocatable": _texts(part(status, "allocatable")),
            "nodeInfo": _texts(part(status, "nodeInfo")),
        },
    }


def snapshot(node: Node) -> NodeSnapshot:
    """Return what may not change on a node while it is tested."""
    facts = node_facts(node)
    return NodeSnapshot(
        name=facts.name,
        uid=facts.uid,
        boot_id=facts.boot_id,
        gpus_allocatable=facts.gpus_allocatable,
        is_cordoned=facts.is_cordoned,
        taints=tuple(
            sorted(f"{each['key']}={each['value']}:{each['effect']}" for each in facts.taints)
        ),
        conditions={
            str(each.get("type")): str(each.get("status"))
            for each in sorted(
                entries(status_of(node), "conditions"), key=lambda each: str(each.get("type"))
            )
        },
    )


def changes(before: NodeSnapshot, after: NodeSnapshot) -> tuple[Problem, ...]:
    """Return what changed on a node, the gravest first; each makes its figures doubtful or worse."""
    node = before.name
    if after.uid != before.uid:
        return (_changed(node, "it was replaced by another node of this name"),)
    found = []
    if after.boot_id != before.boot_id:
        found.append(_changed(node, "it was rebooted"))
    if after.gpus_allocatable < before.gpus_allocatable:
        words = f"{before.gpus_allocatable} GPUs were allocatable, {after.gpus_allocatable} are now"
        found.append(_failed(node, words))
    for name, status in after.conditions.items():
        # Node-problem-detectors report by conditions of their own, which are True when it is bad.
        if name not in _QUIET and status == "True" and before.conditions.get(name) != "True":
            found.append(_failed(node, f"its condition {name} became True"))
    return tuple(found)


class NodeHealth:
    """Watches the nodes of one group. Nothing is ever written to them."""

    def __init__(self, nodes: Sequence[str], rule: Predicate) -> None:
        self._nodes = tuple(nodes)
        self._rule = rule
        self._versions: dict[str, str] = {}
        self._before: dict[str, NodeSnapshot] = {}
        self._after: dict[str, NodeSnapshot] = {}
        self._problems: dict[tuple[str, str], Problem] = {}

    @property
    def before(self) -> tuple[NodeSnapshot, ...]:
        """Return the nodes as they were when first seen."""
        return tuple(self._before[name] for name in sorted(self._before))

    @property
    def after(self) -> tuple[NodeSnapshot, ...]:
        """Return the nodes as last seen."""
        return tuple(self._after[name] for name in sorted(self._after))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return every finding so far, each once; a node that recovers keeps its own."""
        return tuple(self._problems[key] for key in sorted(self._problems))

    @property
    def has_failed(self) -> bool:
        """Return whether a node has failed, so that there is no use in going on."""
        return any(each.code == "hardware-failed" for each in self._problems.values())

    def look(self, nodes: Mapping[str, Node]) -> None:
        """Take in the nodes as the watch shows them; only those that changed are evaluated."""
        for name in self._nodes:
            node = nodes.get(name)
            if node is None:
                continue
            version = str(metadata_of(node).get("resourceVersion"))
            if self._versions.get(name) != version:
                self._versions[name] = version
                self._evaluate(name, node)

    def look_again(self, client: "Client") -> None:
        """Take in the nodes afresh: a watch may lag, or be silent for a minute before that is known."""
        few = len(self._nodes) <= _FEW_NODES
        for selector in [f"metadata.name={name}" for name in self._nodes] if few else [""]:
            nodes = client.list(NODE, field_selector=selector).items
            self.look({str(metadata_of(node).get("name")): node for node in nodes})

    def _evaluate(self, name: str, node: Node) -> None:
        seen = snapshot(node)
        before = self._before.setdefault(name, seen)
        self._after[name] = seen
        for problem in changes(before, seen):
            self._note(problem)
        try:
            if self._rule.holds({"node": projection(node)}):
                self._note(_failed(name, f"it has failed by the rule {self._rule.text}"))
        except CelProblem as problem:
            message = f"node {name}: its health is unknown: {self._rule.text}: {problem}"
            self._note(Problem(code="health-unknown", message=message, node=name))

    def _note(self, problem: Problem) -> None:
        self._problems.setdefault((problem.node or "", problem.message), problem)


def _failed(node: str, words: str) -> Problem:
    return Problem(code="hardware-failed", message=f"node {node}: {words}", node=node)


def _changed(node: str, words: str) -> Problem:
    return Problem(code="node-changed", message=f"node {node}: {words} while it ran", node=node)


def _texts(given: Node) -> dict[str, str]:
    return {str(key): str(value) for key, value in given.items()}


def _named(given: Node, *names: str) -> dict[str, str]:
    return {name: str(given.get(name) or "") for name in names}
