"""Things that go after a time: finished Jobs by their TTL, events by theirs."""

from datetime import datetime, timedelta

from pytest_cre.embedded.controllers.jobtally import has_condition, is_job_finished
from pytest_cre.embedded.deletion import DeleteOptions
from pytest_cre.embedded.kinds import EVENT, JOB, Json, Kind
from pytest_cre.embedded.podstate import pod_condition
from pytest_cre.embedded.queue import Mark
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.store import Key


class JobExpiry:
    """Deletes finished Jobs after their ttlSecondsAfterFinished."""

    name = "job expiry"
    kind: Kind = JOB

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def start(self, mark: Mark) -> None:
        """Follow Jobs."""
        self._registry.store.subscribe(JOB, lambda change: mark(change.record.key))

    def reconcile(self, key: Key) -> float | None:
        """Delete one Job if its time has come."""
        record = self._registry.store.get(JOB, key)
        if record is None or record.obj["metadata"].get("deletionTimestamp"):
            return None
        ttl_s: int | None = record.obj["spec"].get("ttlSecondsAfterFinished")
        if ttl_s is None or not is_job_finished(record.obj):
            return None
        end = _finished_at(record.obj) + timedelta(seconds=ttl_s)
        left_s = (end - self._registry.now()).total_seconds()
        if left_s > 0:
            return left_s
        options = DeleteOptions(propagation="Foreground", uid=record.uid)
        self._registry.delete(JOB, *key, options)
        return None


class EventExpiry:
    """Deletes events that have not been seen again for a time."""

    name = "event expiry"
    kind: Kind = EVENT

    def __init__(self, registry: Registry, *, lifetime_s: float) -> None:
        self._registry = registry
        self._lifetime_s = lifetime_s
        self._written: dict[Key, tuple[int, datetime]] = {}

    def start(self, mark: Mark) -> None:
        """Follow events."""
        self._registry.store.subscribe(EVENT, lambda change: mark(change.record.key))

    def reconcile(self, key: Key) -> float | None:
        """Delete one event if its last write is long enough ago."""
        record = self._registry.store.get(EVENT, key)
        if record is None:
            self._written.pop(key, None)
            return None
        now = self._registry.now()
        version, since = self._written.setdefault(key, (record.version, now))
        if version != record.version:
            since = now
            self._written[key] = (record.version, now)
        left_s = self._lifetime_s - (now - since).total_seconds()
        if left_s > 0:
            return left_s
        self._registry.delete(EVENT, *key, DeleteOptions(uid=record.uid))
        return None


def _finished_at(job: Json) -> datetime:
    last = "Complete" if has_condition(job, "Complete") else "Failed"
    condition = pod_condition(job, last) or {}
    moment: str = condition["lastTransitionTime"]
    return datetime.fromisoformat(moment)
