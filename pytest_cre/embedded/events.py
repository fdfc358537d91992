"""Events that the scheduler and the controllers report; a repeated one counts up."""

import socket
from typing import Literal

from pytest_cre.embedded.kinds import EVENT, Json
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.status import ApiError
from pytest_cre.embedded.store import Record

EventType = Literal["Normal", "Warning"]
_MESSAGE_LIMIT = 1024
_REMEMBERED = 4096


class EventRecorder:
    """Writes events in the name of one component.

    With `names_only` they tell of their object only what it is called, as some components do.
    """

    def __init__(self, registry: Registry, component: str, *, names_only: bool = False) -> None:
        self._registry = registry
        self._component = component
        self._names_only = names_only
        self._names: dict[tuple[str, ...], str] = {}

    def record(self, about: Record, event_type: EventType, reason: str, message: str) -> None:
        """Report something about an object; failures to report are of no consequence."""
        message = message[:_MESSAGE_LIMIT]
        identity = self._identity(about, event_type, reason, message)
        try:
            if not self._count_up(about, identity):
                self._create(about, identity, event_type, reason, message)
        except ApiError:
            # The namespace is on its way out; nobody will look for this event.
            return

    def _identity(self, about: Record, *more: str) -> tuple[str, ...]:
        """Give what two events have in common that are counted as one."""
        return (about.uid, *more)

    def _seen_again(self, event: Json) -> None:
        event["count"] = (event.get("count") or 1) + 1
        event["lastTimestamp"] = self._registry.now_text()

    def _first_seen(self, _reason: str) -> Json:
        """Give what is written of an event when it happens first."""
        now = self._registry.now_text()
        return {
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "eventTime": None,
        }

    def _count_up(self, about: Record, identity: tuple[str, ...]) -> bool:
        name = self._names.get(identity)
        if name is None:
            return False
        known = self._registry.store.get(EVENT, (about.key[0] or "default", name))
        if known is None:
            return False
        event = known.copy()
        self._seen_again(event)
        self._registry.update(EVENT, known.key[0], name, event)
        return True

    def _create(
        self,
        about: Record,
        identity: tuple[str, ...],
        event_type: EventType,
        reason: str,
        message: str,
    ) -> None:
        namespace, name = about.key
        involved: Json = {
            "kind": about.kind.kind,
            "name": name,
            "apiVersion": about.kind.api_version,
        }
        if not self._names_only:
            involved["uid"] = about.uid
            involved["resourceVersion"] = about.obj["metadata"]["resourceVersion"]
        if namespace:
            involved["namespace"] = namespace
        event: Json = {
            "metadata": {"name": f"{name}.{self._registry.new_moment():016x}"},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": event_type,
            **self._first_seen(reason),
        }
        record = self._registry.create(EVENT, namespace or "default", event)
        if len(self._names) >= _REMEMBERED:
            self._names.clear()
        self._names[identity] = record.key[1]


class ScheduleRecorder(EventRecorder):
    """Writes events as the scheduler does, in the newer form: with a moment, and series."""

    def _identity(self, about: Record, *more: str) -> tuple[str, ...]:
        # The message is none of it: that of the first event of a series stays.
        return (about.uid, *more[:2])

    def _seen_again(self, event: Json) -> None:
        count = (event.get("series") or {}).get("count", 1) + 1
        event["series"] = {"count": count, "lastObservedTime": self._registry.now_micro_text()}

    def _first_seen(self, reason: str) -> Json:
        return {
            "source": {},
            "action": "Binding" if reason == "Scheduled" else "Scheduling",
            "reportingComponent": self._component,
            "reportingInstance": f"{self._component}-{socket.gethostname()}",
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": self._registry.now_micro_text(),
        }
