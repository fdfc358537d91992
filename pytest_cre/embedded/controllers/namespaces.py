"""Namespaces: a service account for each, and an orderly end."""

from collections import Counter

from pytest_cre.embedded.deletion import OWN_NAMESPACES, DeleteOptions
from pytest_cre.embedded.kinds import KINDS, NAMESPACE, SERVICE_ACCOUNT, Kind
from pytest_cre.embedded.podstate import set_condition
from pytest_cre.embedded.queue import Mark
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.store import Change, Key, Record

# What holds back a namespace on a server that has trouble of its own, and never does here.
_NO_TROUBLE = (
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)


class NamespaceController:
    """Empties namespaces that are to go, then lets them go."""

    name = "namespace"
    kind: Kind = NAMESPACE

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def start(self, mark: Mark) -> None:
        """Follow namespaces and what leaves them."""

        def content_gone(change: Change) -> None:
            if change.type != "DELETED":
                return
            key = ("", change.record.key[0])
            namespace = self._registry.store.get(NAMESPACE, key)
            is_ending = namespace and namespace.obj["metadata"].get("deletionTimestamp")
            if is_ending or change.record.kind is SERVICE_ACCOUNT:
                mark(key)

        store = self._registry.store
        store.subscribe(NAMESPACE, lambda change: mark(change.record.key))
        for kind in KINDS:
            if kind.namespaced:
                store.subscribe(kind, content_gone)
        for record in store.records(NAMESPACE):
            mark(record.key)

    def reconcile(self, key: Key) -> float | None:
        """Set one namespace right."""
        record = self._registry.store.get(NAMESPACE, key)
        if record is None:
            if key[1] in OWN_NAMESPACES:
                self._registry.create(NAMESPACE, "", {"metadata": {"name": key[1]}})
            return None
        if not record.obj["metadata"].get("deletionTimestamp"):
            self._ensure_service_account(key[1])
            return None
        remaining = self._empty(key[1])
        if remaining:
            self._report(record, remaining)
        elif record.obj["metadata"].get("finalizers"):
            # Others want to have a last word; the namespace goes with the last of them.
            if record.obj["spec"].get("finalizers"):
                self._registry.store.put(NAMESPACE, key, {**record.copy(), "spec": {}})
        else:
            self._registry.store.remove(NAMESPACE, key)
        return None

    def _ensure_service_account(self, namespace: str) -> None:
        if self._registry.store.get(SERVICE_ACCOUNT, (namespace, "default")) is None:
            self._registry.create(SERVICE_ACCOUNT, namespace, {"metadata": {"name": "default"}})

    def _empty(self, namespace: str) -> dict[Kind, list[Record]]:
        """Delete all content; gives what is still there, by kind."""
        remaining: dict[Kind, list[Record]] = {}
        for kind in KINDS:
            if not kind.namespaced:
                continue
            for record in self._registry.store.records(kind, namespace):
                if record.obj["metadata"].get("deletionTimestamp"):
                    continue
                # An object may have gone with another one in the meantime.
                if self._registry.store.get(kind, record.key) is not None:
                    options = DeleteOptions(propagation="Background", uid=record.uid)
                    self._registry.delete(kind, *record.key, options)
            left = self._registry.store.records(kind, namespace)
            if left:
                remaining[kind] = left
        return remaining

    def _report(self, record: Record, remaining: dict[Kind, list[Record]]) -> None:
        """Say in the namespace's conditions what its end is waiting for."""
        counts = [
            f"{kind.plural}.{kind.group} has {len(records)} resource instances"
            for kind, records in remaining.items()
        ]
        finalizers = Counter(
            finalizer
            for records in remaining.values()
            for each in records
            for finalizer in each.obj["metadata"].get("finalizers") or []
        )
        holders = [
            f"{finalizer} in {count} resource instances"
            for finalizer, count in sorted(finalizers.items())
        ]
        namespace, now = record.copy(), self._registry.now_text()
        for condition_type, reason, message in _NO_TROUBLE:
            condition = {"type": condition_type, "status": "False", "reason": reason}
            set_condition(namespace, {**condition, "message": message}, now)
        remains = {
            "type": "NamespaceContentRemaining",
            "status": "True",
            "reason": "SomeResourcesRemain",
            "message": f"Some resources are remaining: {', '.join(counts)}",
        }
        waits = {
            "type": "NamespaceFinalizersRemaining",
            "status": "True" if holders else "False",
            "reason": "SomeFinalizersRemain" if holders else "ContentHasNoFinalizers",
            "message": (
                "Some content in the namespace has finalizers remaining: " + ", ".join(holders)
                if holders
                else "All content-preserving finalizers finished"
            ),
        }
        set_condition(namespace, remains, now)
        set_condition(namespace, waits, now)
        self._registry.update(NAMESPACE, *record.key, namespace, subresource="status")
