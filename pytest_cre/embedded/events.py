"""Events that the scheduler and the controllers report; a repeated one counts up."""

from typing import Literal

from pytest_cre.embedded.kinds import EVENT, Json
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.status import ApiError
from pytest_cre.embedded.store import Record

_MESSAGE_LIMIT = 1024
_REMEMBERED = 4096


class EventRecorder:
    """Writes events in the name of one component."""

    def __init__(self, registry: Registry, component: str) -> None:
        self._registry = registry
        self._component = component
        self._names: dict[tuple[str, str, str, str], str] = {}

    def record(
        self, about: Record, event_type: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        """Report something about an object; failures to report are of no consequence."""
        message = message[:_MESSAGE_LIMIT]
        identity = (about.uid, event_type, reason, message)
        try:
            if not self._count_up(about, identity):
                self._create(about, identity)
        except ApiError:
            # The namespace is on its way out; nobody will look for this event.
            return

    def _count_up(self, about: Record, identity: tuple[str, str, str, str]) -> bool:
        name = self._names.get(identity)
        if name is None:
            return False
        known = self._registry.store.get(EVENT, (about.key[0] or "default", name))
        if known is None:
            return False
        event = known.copy()
        event["count"] = event.get("count", 1) + 1
        event["lastTimestamp"] = self._registry.now_text()
        self._registry.update(EVENT, known.key[0], name, event)
        return True

    def _create(self, about: Record, identity: tuple[str, str, str, str]) -> None:
        _uid, event_type, reason, message = identity
        namespace, name = about.key
        now = self._registry.now_text()
        involved: Json = {
            "kind": about.kind.kind,
            "name": name,
            "uid": about.uid,
            "apiVersion": about.kind.api_version,
            "resourceVersion": about.obj["metadata"]["resourceVersion"],
        }
        if namespace:
            involved["namespace"] = namespace
        event: Json = {
            # The name carries a moment and a random part, so that it is unique.
            "metadata": {"name": f"{name}.{self._registry.new_uid().replace('-', '')[:16]}"},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": event_type,
            "eventTime": None,
        }
        record = self._registry.create(EVENT, namespace or "default", event)
        if len(self._names) >= _REMEMBERED:
            self._names.clear()
        self._names[identity] = record.key[1]
