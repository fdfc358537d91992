"""The objects of the cluster, their versions and the recent history of changes.

One resource version counts all changes of all kinds. Objects are never changed in place: each
change replaces a Record, so whoever holds an old one holds a consistent snapshot.
"""

import json
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from typing import Literal

from pytest_cre.embedded.kinds import Json, Kind

# Namespace (empty for cluster-wide kinds) and name.
Key = tuple[str, str]
_FIRST_VERSION = 100
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


class Record:
    """One version of one object; `obj` must not be modified."""

    __slots__ = ("_encoded", "key", "kind", "obj", "version")

    def __init__(self, kind: Kind, key: Key, obj: Json, version: int) -> None:
        self.kind = kind
        self.key = key
        self.obj = obj
        self.version = version
        self._encoded: bytes | None = None

    @property
    def encoded(self) -> bytes:
        """The object's JSON text without kind and apiVersion, as it stands in lists."""
        if self._encoded is None:
            self._encoded = json.dumps(self.obj, ensure_ascii=False, separators=(",", ":")).encode(
                "utf-8", "replace"
            )
        return self._encoded

    @property
    def encoded_alone(self) -> bytes:
        """The object's JSON text with kind and apiVersion, as it is sent alone and in events."""
        return self.kind.head + self.encoded[1:]

    @property
    def uid(self) -> str:
        """The identity that outlives no deletion."""
        uid: str = self.obj["metadata"]["uid"]
        return uid

    def copy(self) -> Json:
        """Give an object of the caller's own, to change and write back."""
        obj: Json = json.loads(self.encoded)
        return obj


class Change:
    """One step of the history; for DELETED the record is the last state under the new version."""

    __slots__ = ("_line", "previous", "record", "type")

    def __init__(self, change_type: ChangeType, record: Record, previous: Record | None) -> None:
        self.type = change_type
        self.record = record
        self.previous = previous
        self._line: bytes | None = None

    @property
    def version(self) -> int:
        """The version that this change made."""
        return self.record.version

    @property
    def line(self) -> bytes:
        """The change as a watch sends it; encoded once for all watchers."""
        if self._line is None:
            self._line = event_line(self.type, self.record.encoded_alone)
        return self._line


def event_line(event_type: str, encoded_object: bytes) -> bytes:
    """Give one line of a watch."""
    return b'{"type":"' + event_type.encode() + b'","object":' + encoded_object + b"}\n"


class HistoryGoneError(Exception):
    """The changes asked for are older than what is kept."""

    def __init__(self, oldest_version: int) -> None:
        super().__init__(f"history starts at {oldest_version}")
        self.oldest_version = oldest_version


Listener = Callable[[Change], None]


class Store:
    """All objects. Not thread-safe: used from one event loop only."""

    def __init__(self, *, history_events: int) -> None:
        # As on a genuine server there is a past that nobody can ask for.
        self.version = _FIRST_VERSION
        self._history_events = history_events
        self._records: dict[Kind, dict[Key, Record]] = {}
        self._keys: dict[Kind, list[Key]] = {}
        self._history: dict[Kind, deque[Change]] = {}
        # Newest version that has left the history of a kind.
        self._forgotten: dict[Kind, int] = {}
        self._listeners: dict[Kind, list[Listener]] = {}

    def get(self, kind: Kind, key: Key) -> Record | None:
        """Give the current state of one object."""
        return self._records.get(kind, {}).get(key)

    def records(self, kind: Kind, namespace: str = "") -> list[Record]:
        """Give all objects of a kind, or those of one namespace, sorted by namespace and name."""
        records = self._records.get(kind, {})
        keys = self._keys.get(kind, [])
        if namespace:
            start = bisect_left(keys, (namespace, ""))
            end = bisect_left(keys, (namespace + "\0", ""))
            keys = keys[start:end]
        return [records[key] for key in keys]

    def put(self, kind: Kind, key: Key, obj: Json) -> Record:
        """Write an object, new or changed; `obj` belongs to the store from now on."""
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        record = Record(kind, key, obj, self.version)
        records = self._records.setdefault(kind, {})
        previous = records.get(key)
        records[key] = record
        if previous is None:
            insort(self._keys.setdefault(kind, []), key)
        self._publish(Change("ADDED" if previous is None else "MODIFIED", record, previous))
        return record

    def remove(self, kind: Kind, key: Key, last: Json | None = None) -> Record:
        """Take an object out, `last` being its final state; raises KeyError when it is absent."""
        previous = self._records[kind].pop(key)
        obj = previous.obj if last is None else last
        keys = self._keys[kind]
        del keys[bisect_left(keys, key)]
        self.version += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self.version)}
        record = Record(kind, key, {**obj, "metadata": metadata}, self.version)
        self._publish(Change("DELETED", record, previous))
        return record

    def changes_after(self, kind: Kind, version: int) -> list[Change]:
        """Give all changes of a kind after a version; raises HistoryGoneError when some are lost."""
        forgotten = self._forgotten.get(kind, _FIRST_VERSION)
        if version < forgotten:
            raise HistoryGoneError(forgotten + 1)
        history = self._history.get(kind, deque())
        changes: list[Change] = []
        for change in reversed(history):
            if change.version <= version:
                break
            changes.append(change)
        changes.reverse()
        return changes

    def subscribe(self, kind: Kind, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each change of a kind from now on; gives the way to stop it."""
        listeners = self._listeners.setdefault(kind, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    def _publish(self, change: Change) -> None:
        kind = change.record.kind
        history = self._history.setdefault(kind, deque())
        history.append(change)
        if len(history) > self._history_events:
            self._forgotten[kind] = history.popleft().version
        for listener in tuple(self._listeners.get(kind, ())):
            listener(change)
