"""Which pods are bound to which node, so that nobody has to look through all pods for it."""

from pytest_cre.embedded.kinds import POD
from pytest_cre.embedded.store import Change, Key, Record, Store


class Residents:
    """Follows all pods."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys: dict[str, dict[Key, None]] = {}
        store.subscribe(POD, self._take)

    def on(self, node_name: str) -> list[Record]:
        """Give the pods that are bound to a node, whether it exists or not, oldest first."""
        found = (self._store.get(POD, key) for key in self._keys.get(node_name, ()))
        return [pod for pod in found if pod is not None]

    def _take(self, change: Change) -> None:
        node_name: str = change.record.obj["spec"].get("nodeName") or ""
        if not node_name:
            return
        keys = self._keys.setdefault(node_name, {})
        if change.type != "DELETED":
            keys[change.record.key] = None
            return
        keys.pop(change.record.key, None)
        if not keys:
            del self._keys[node_name]
