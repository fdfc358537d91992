"""Namespaces: a service account for each, and an orderly end."""

from pytest_cre.embedded.deletion import DeleteOptions
from pytest_cre.embedded.kinds import KINDS, NAMESPACE, SERVICE_ACCOUNT, Kind
from pytest_cre.embedded.podrules import set_condition
from pytest_cre.embedded.queue import Mark
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.store import Change, Key, Record


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
            return None
        if not record.obj["metadata"].get("deletionTimestamp"):
            self._ensure_service_account(key[1])
            return None
        remaining = self._empty(key[1])
        if remaining:
            self._report(record, remaining)
        elif record.obj["metadata"].get("finalizers"):
            # Others want to have a last word; the namespace goes with the last of them.
            if record.obj["spec"]["finalizers"]:
                emptied = {**record.copy(), "spec": {"finalizers": []}}
                self._registry.store.put(NAMESPACE, key, emptied)
        else:
            self._registry.store.remove(NAMESPACE, key)
        return None

    def _ensure_service_account(self, namespace: str) -> None:
        if self._registry.store.get(SERVICE_ACCOUNT, (namespace, "default")) is None:
            self._registry.create(SERVICE_ACCOUNT, namespace, {"metadata": {"name": "default"}})

    def _empty(self, namespace: str) -> dict[str, int]:
        """Delete all content; gives how much of what kind is still there."""
        remaining: dict[str, int] = {}
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
            left = len(self._registry.store.records(kind, namespace))
            if left:
                remaining[kind.qualified_plural] = left
        return remaining

    def _report(self, record: Record, remaining: dict[str, int]) -> None:
        """Say in the namespace's conditions what its end is waiting for."""
        texts = [f"{name} has {count} resource instances" for name, count in remaining.items()]
        namespace = record.copy()
        condition = {
            "type": "NamespaceContentRemaining",
            "status": "True",
            "reason": "SomeResourcesRemain",
            "message": f"Some resources are remaining: {', '.join(texts)}",
        }
        set_condition(namespace, condition, self._registry.now_text())
        self._registry.update(NAMESPACE, *record.key, namespace, subresource="status")
