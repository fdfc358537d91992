"""Pods that keep away from each other: required anti-affinity, by any label of nodes."""

from collections.abc import Callable
from dataclasses import dataclass

from pytest_cre.embedded.kinds import NODE, Json
from pytest_cre.embedded.metarules import matches_label_selector
from pytest_cre.embedded.store import Record, Store

HOSTNAME = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
OWN_RULES = "node(s) didn't match pod anti-affinity rules"
OTHERS_RULES = "node(s) didn't satisfy existing pods anti-affinity rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """A pod that stands on a node, as far as others may mind it."""

    node_name: str
    namespace: str
    labels: dict[str, str]
    terms: list[Json]


class Neighbourhood:
    """Which pods stand where, and why another one may not stand next to them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._residents: dict[str, Resident] = {}
        self._by_node: dict[str, dict[str, Resident]] = {}
        # Those that mind pods on other nodes than their own.
        self._minding_far: dict[str, Resident] = {}

    def enter(self, pod: Record, node_name: str) -> None:
        """Note that a pod stands on a node."""
        resident = Resident(
            node_name=node_name,
            namespace=pod.key[0],
            labels=pod.obj["metadata"].get("labels") or {},
            terms=anti_affinity_terms(pod.obj),
        )
        self._residents[pod.uid] = resident
        self._by_node.setdefault(node_name, {})[pod.uid] = resident
        if any(_is_far(term) for term in resident.terms):
            self._minding_far[pod.uid] = resident

    def leave(self, uid: str) -> None:
        """Note that a pod is gone."""
        resident = self._residents.pop(uid, None)
        self._minding_far.pop(uid, None)
        if resident is not None:
            del self._by_node[resident.node_name][uid]

    def objections(self, pod: Record) -> Callable[[str], str | None]:
        """Give what tells of a node why a pod may not stand there, None where it may."""
        terms = anti_affinity_terms(pod.obj)
        namespace, labels = pod.key[0], pod.obj["metadata"].get("labels") or {}
        far = self._far(namespace, labels, terms)

        def objection(node_name: str) -> str | None:
            residents = self._by_node.get(node_name)
            if residents and self._label(node_name, HOSTNAME) is not None:
                for resident in residents.values():
                    if _minds(terms, namespace, resident.namespace, resident.labels):
                        return OWN_RULES
                    if _minds(resident.terms, resident.namespace, namespace, labels):
                        return OTHERS_RULES
            return far.get(node_name)

        return objection

    def _far(self, namespace: str, labels: dict[str, str], terms: list[Json]) -> dict[str, str]:
        """Give the nodes that are out of question by terms that reach over several nodes."""
        avoided: dict[str, str] = {}
        for resident in self._minding_far.values():
            for term in resident.terms:
                if _is_far(term) and _means(term, resident.namespace, namespace, labels):
                    nodes = self._near(resident.node_name, term)
                    avoided.update(dict.fromkeys(nodes, OTHERS_RULES))
        for term in terms:
            if _is_far(term):
                for resident in self._residents.values():
                    if _means(term, namespace, resident.namespace, resident.labels):
                        nodes = self._near(resident.node_name, term)
                        avoided.update(dict.fromkeys(nodes, OWN_RULES))
        return avoided

    def _near(self, node_name: str, term: Json) -> list[str]:
        """Give all nodes that have the same value of the term's label as one node."""
        key = term.get("topologyKey", "")
        value = self._label(node_name, key)
        if value is None:
            return []
        return [
            node.key[1]
            for node in self._store.records(NODE)
            if (node.obj["metadata"].get("labels") or {}).get(key) == value
        ]

    def _label(self, node_name: str, key: str) -> str | None:
        node = self._store.get(NODE, ("", node_name))
        labels: dict[str, str] = (node.obj["metadata"].get("labels") if node else None) or {}
        return labels.get(key)


def anti_affinity_terms(pod: Json) -> list[Json]:
    """Give the terms by which a pod keeps away from others."""
    affinity = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    terms: list[Json] = affinity.get(_REQUIRED) or []
    return terms


def _is_far(term: Json) -> bool:
    """Whether a term is about more than one node; host names are taken to be unique."""
    return bool(term.get("topologyKey") != HOSTNAME)


def _minds(terms: list[Json], own: str, namespace: str, labels: dict[str, str]) -> bool:
    """Whether a pod minds to share its node with one that has these labels."""
    return any(not _is_far(term) and _means(term, own, namespace, labels) for term in terms)


def _means(term: Json, own: str, namespace: str, labels: dict[str, str]) -> bool:
    """Whether a term of a pod in the namespace `own` is about pods with these labels."""
    namespaces = term.get("namespaces") or []
    if "namespaceSelector" not in term:
        namespaces = namespaces or [own]
    elif not term["namespaceSelector"]:
        namespaces = [namespace]
    selector = term.get("labelSelector")
    return (
        namespace in namespaces
        and selector is not None
        and matches_label_selector(selector, labels)
    )
