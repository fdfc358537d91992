"""Garbage collection: what has no owner left goes, in the order that deletions asked for."""

from pytest_cre.embedded.deletion import FOREGROUND, ORPHAN, DeleteOptions
from pytest_cre.embedded.kinds import KINDS, NAMESPACE, Json, Kind
from pytest_cre.embedded.owners import OwnerIndex, owner_references
from pytest_cre.embedded.queue import Mark
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.store import Change, Key, Record


class GarbageCollector:
    """One per kind: looks after the objects of that kind, as dependents and as owners."""

    def __init__(self, registry: Registry, owners: OwnerIndex, kind: Kind) -> None:
        self.kind = kind
        self.name = f"garbage ({kind.plural})"
        self._registry = registry
        self._owners = owners

    def start(self, mark: Mark) -> None:
        """Follow the kind itself, and the owners and dependents of its objects."""

        def own_changed(change: Change) -> None:
            metadata: Json = change.record.obj["metadata"]
            if change.type != "DELETED" and (
                metadata.get("ownerReferences") or metadata.get("deletionTimestamp")
            ):
                mark(change.record.key)

        def other_gone(change: Change) -> None:
            if change.type != "DELETED":
                return
            for dependent in self._owners.dependents(change.record.uid):
                if dependent.kind is self.kind:
                    mark(dependent.key)
            for reference in owner_references(change.record.obj):
                owner = self._owners.owner(reference["uid"])
                if owner is not None and owner.kind is self.kind:
                    mark(owner.key)

        self._registry.store.subscribe(self.kind, own_changed)
        for kind in KINDS:
            self._registry.store.subscribe(kind, other_gone)

    def reconcile(self, key: Key) -> float | None:
        """Let one object go if it has lost its owners; finish what its own deletion waits for."""
        record = self._registry.store.get(self.kind, key)
        if record is None:
            return None
        metadata: Json = record.obj["metadata"]
        references = owner_references(record.obj)
        living = [r for r in references if self._owners.owner(r["uid"]) is not None]
        if len(living) < len(references) and not metadata.get("deletionTimestamp"):
            if living:
                obj = {**record.obj, "metadata": {**metadata, "ownerReferences": living}}
                self._registry.update(self.kind, *key, obj)
            else:
                # Its owners are gone: what they owned goes as well.
                options = DeleteOptions(propagation="Background", uid=record.uid)
                self._registry.delete(self.kind, *key, options)
            return None
        if not metadata.get("deletionTimestamp") or self.kind is NAMESPACE:
            return None
        finalizers = metadata.get("finalizers") or []
        if ORPHAN in finalizers:
            self._orphan(record)
        elif FOREGROUND in finalizers:
            self._delete_dependents_first(record)
        return None

    def _orphan(self, owner: Record) -> None:
        for dependent in self._owners.dependents(owner.uid):
            obj = dependent.copy()
            obj["metadata"]["ownerReferences"] = [
                r for r in owner_references(obj) if r["uid"] != owner.uid
            ]
            if not obj["metadata"]["ownerReferences"]:
                del obj["metadata"]["ownerReferences"]
            self._registry.update(dependent.kind, *dependent.key, obj)
        self._drop_finalizer(owner, ORPHAN)

    def _delete_dependents_first(self, owner: Record) -> None:
        for dependent in self._owners.dependents(owner.uid):
            if not dependent.obj["metadata"].get("deletionTimestamp"):
                has_own = bool(self._owners.dependents(dependent.uid))
                options = DeleteOptions(
                    propagation="Foreground" if has_own else "Background", uid=dependent.uid
                )
                self._registry.delete(dependent.kind, *dependent.key, options)
        is_blocked = any(
            reference["uid"] == owner.uid and reference.get("blockOwnerDeletion")
            for dependent in self._owners.dependents(owner.uid)
            for reference in owner_references(dependent.obj)
        )
        if not is_blocked:
            self._drop_finalizer(owner, FOREGROUND)

    def _drop_finalizer(self, record: Record, finalizer: str) -> None:
        current = self._registry.store.get(record.kind, record.key)
        if current is None or current.uid != record.uid:
            return
        obj = current.copy()
        obj["metadata"]["finalizers"] = [
            f for f in obj["metadata"].get("finalizers", []) if f != finalizer
        ]
        if not obj["metadata"]["finalizers"]:
            del obj["metadata"]["finalizers"]
        self._registry.update(record.kind, *record.key, obj)
