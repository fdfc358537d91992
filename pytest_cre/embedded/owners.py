"""Who owns whom: owner references of all objects, indexed by the owner's uid."""

from pytest_cre.embedded.kinds import KINDS, Json, Kind
from pytest_cre.embedded.store import Change, Key, Record, Store

Place = tuple[Kind, Key]


class OwnerIndex:
    """Follows the store; answers which objects exist and what they own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._places: dict[str, Place] = {}
        self._dependents: dict[str, dict[Place, None]] = {}
        for kind in KINDS:
            store.subscribe(kind, self._take)

    def owner(self, uid: str) -> Record | None:
        """Give the living object with this uid."""
        place = self._places.get(uid)
        return self._store.get(*place) if place else None

    def dependents(self, uid: str) -> list[Record]:
        """Give the living objects that name this uid among their owners, oldest first."""
        found = (self._store.get(*place) for place in self._dependents.get(uid, {}))
        return [record for record in found if record is not None]

    def controlled(self, uid: str, kind: Kind) -> list[Record]:
        """Give the living objects of one kind whose controller has this uid."""
        return [
            record
            for record in self.dependents(uid)
            if record.kind is kind and controller_uid(record.obj) == uid
        ]

    def _take(self, change: Change) -> None:
        record, previous = change.record, change.previous
        place = (record.kind, record.key)
        if previous is not None:
            for reference in owner_references(previous.obj):
                owned = self._dependents.get(reference["uid"], {})
                owned.pop(place, None)
                if not owned:
                    self._dependents.pop(reference["uid"], None)
        if change.type == "DELETED":
            self._places.pop(record.uid, None)
            return
        self._places[record.uid] = place
        for reference in owner_references(record.obj):
            self._dependents.setdefault(reference["uid"], {})[place] = None


def owner_references(obj: Json) -> list[Json]:
    """Give an object's owner references."""
    references: list[Json] = obj["metadata"].get("ownerReferences") or []
    return references


def controller_uid(obj: Json) -> str | None:
    """Give the uid of the owner that manages an object."""
    for reference in owner_references(obj):
        if reference.get("controller"):
            uid: str = reference["uid"]
            return uid
    return None
