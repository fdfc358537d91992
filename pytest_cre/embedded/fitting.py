"""Whether a pod fits on a node, and in which words it does not."""

from decimal import Decimal

from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.metarules import meets_requirement
from pytest_cre.formats.quantity import parse_quantity

Amounts = dict[str, Decimal]
_NONE, _ONE = Decimal(0), Decimal(1)


def pod_requests(pod: Json) -> Amounts:
    """Give what a pod takes from its node: containers together, or a larger init container."""
    spec: Json = pod["spec"]
    total: Amounts = {}
    for container in spec.get("containers", []):
        for resource, amount in _requests(container).items():
            total[resource] = total.get(resource, _NONE) + amount
    for container in spec.get("initContainers", []):
        for resource, amount in _requests(container).items():
            total[resource] = max(total.get(resource, _NONE), amount)
    for resource, text in spec.get("overhead", {}).items():
        total[resource] = total.get(resource, _NONE) + parse_quantity(text)
    total["pods"] = _ONE
    return total


def allocatable(node: Json) -> Amounts:
    """Give what a node has to offer; amounts that cannot be read count as none."""
    amounts: Amounts = {}
    for resource, text in node.get("status", {}).get("allocatable", {}).items():
        try:
            amounts[resource] = parse_quantity(text)
        except ValueError:
            amounts[resource] = _NONE
    return amounts


class Wish:
    """Which nodes a pod would stand on, however full they are."""

    def __init__(self, pod: Json) -> None:
        spec: Json = pod["spec"]
        self._tolerations: list[Json] = spec.get("tolerations") or []
        self._labels: dict[str, str] = spec.get("nodeSelector") or {}
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        terms: list[Json] = (required or {}).get("nodeSelectorTerms") or []
        self._has_terms = required is not None
        # A group of nodes is wished for by one term a node: these are looked up, not gone through.
        names = [_named_node(term) for term in terms]
        self._names = frozenset(name for name in names if name is not None)
        self._terms = [term for term, name in zip(terms, names, strict=True) if name is None]

    def refusal(self, node: Json) -> str | None:
        """Say why a node is none for the pod; None when it is one."""
        spec: Json = node.get("spec", {})
        unschedulable = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        if spec.get("unschedulable") and not is_tolerated(unschedulable, self._tolerations):
            return "node(s) were unschedulable"
        for taint in spec.get("taints") or []:
            if taint.get("effect") in ("NoSchedule", "NoExecute") and not is_tolerated(
                taint, self._tolerations
            ):
                return "node(s) had untolerated taint(s)"
        if not self._selects(node):
            return "node(s) didn't match Pod's node affinity/selector"
        return None

    def _selects(self, node: Json) -> bool:
        name: str = node["metadata"]["name"]
        labels: dict[str, str] = node["metadata"].get("labels") or {}
        if any(labels.get(key) != value for key, value in self._labels.items()):
            return False
        if not self._has_terms or name in self._names:
            return True
        fields = {"metadata.name": name}
        return any(
            (term.get("matchExpressions") or term.get("matchFields"))
            and all(meets_requirement(one, labels) for one in term.get("matchExpressions") or [])
            and all(meets_requirement(one, fields) for one in term.get("matchFields") or [])
            for term in self._terms
        )


def shortages(requests: Amounts, offered: Amounts, used: Amounts) -> list[str]:
    """Name the resources that a node has too little of, those taken by other pods left aside."""
    return [
        "Too many pods" if resource == "pods" else f"Insufficient {resource}"
        for resource, amount in sorted(requests.items())
        if amount and used.get(resource, _NONE) + amount > offered.get(resource, _NONE)
    ]


def load(requests: Amounts, offered: Amounts, used: Amounts) -> Decimal | None:
    """Give how full a node's scarcest wanted resource would be, 0 to 1; None: it does not fit."""
    fullest = _NONE
    for resource, amount in requests.items():
        there, taken = offered.get(resource, _NONE), used.get(resource, _NONE) + amount
        if amount and taken > there:
            return None
        if there:
            fullest = max(fullest, taken / there)
    return fullest


def is_tolerated(taint: Json, tolerations: list[Json]) -> bool:
    """Whether any toleration covers a taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def tolerates(toleration: Json, taint: Json) -> bool:
    """Whether one toleration covers a taint."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def _requests(container: Json) -> Amounts:
    requests = container.get("resources", {}).get("requests", {})
    return {resource: parse_quantity(text) for resource, text in requests.items()}


def _named_node(term: Json) -> str | None:
    """Give the one node that a term is about, None for any other term."""
    fields = term.get("matchFields") or []
    if term.get("matchExpressions") or len(fields) != 1:
        return None
    values = fields[0].get("values") or []
    is_name = (fields[0].get("key"), fields[0].get("operator")) == ("metadata.name", "In")
    return str(values[0]) if is_name and len(values) == 1 else None
