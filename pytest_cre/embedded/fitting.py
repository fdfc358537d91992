"""Whether a pod fits on a node, and in which words it does not."""

from collections.abc import Mapping
from decimal import Decimal

from pytest_cre.embedded.kinds import Json
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


def refusal(pod: Json, node: Json) -> str | None:
    """Say why a node is none for this pod however empty it may be; None when it is one."""
    spec: Json = node.get("spec", {})
    tolerations: list[Json] = pod["spec"].get("tolerations", [])
    unschedulable = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if spec.get("unschedulable") and not is_tolerated(unschedulable, tolerations):
        return "node(s) were unschedulable"
    for taint in spec.get("taints") or []:
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not is_tolerated(
            taint, tolerations
        ):
            return "node(s) had untolerated taint(s)"
    if not _selects(pod["spec"], node):
        return "node(s) didn't match Pod's node affinity/selector"
    return None


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


def _selects(spec: Json, node: Json) -> bool:
    labels: dict[str, str] = node["metadata"].get("labels") or {}
    for key, value in spec.get("nodeSelector", {}).items():
        if labels.get(key) != value:
            return False
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(
        (term.get("matchExpressions") or term.get("matchFields"))
        and all(_meets(one, labels) for one in term.get("matchExpressions", []))
        and all(_meets(one, fields) for one in term.get("matchFields", []))
        for term in required.get("nodeSelectorTerms", [])
    )


def _meets(expression: Json, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.get("key", ""))
    values: list[str] = expression.get("values", [])
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            try:
                left, right = int(value or ""), int(values[0])
            except (ValueError, IndexError):
                return False
            return left > right if operator == "Gt" else left < right
        case _:
            return False
