"""Events and nodes of the API as the plain facts that evidence keeps."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pytest_cre.cluster.objects import metadata_of


def event_facts(
    events: Iterable[Mapping[str, Any]], uids: Collection[str]
) -> tuple[Mapping[str, str], ...]:
    """Return the events about these objects, sorted: type, reason, message, object, count, time."""
    found = []
    for event in events:
        about = event.get("involvedObject") or {}
        if about.get("uid") not in uids:
            continue
        series = event.get("series") or {}
        count = max(_whole(event.get("count")), _whole(series.get("count")), 1)
        times = (
            series.get("lastObservedTime"),
            event.get("lastTimestamp"),
            event.get("eventTime"),
            metadata_of(event).get("creationTimestamp"),
        )
        found.append(
            {
                "type": str(event.get("type") or ""),
                "reason": str(event.get("reason") or ""),
                "message": str(event.get("message") or ""),
                "object": f"{about.get('kind', '')}/{about.get('name', '')}",
                "count": str(count),
                "time": next((str(time) for time in times if time), ""),
            }
        )
    return tuple(sorted(found, key=lambda each: tuple(each[name] for name in _EVENT_ORDER)))


_EVENT_ORDER = ("time", "object", "reason", "message", "type", "count")


def _whole(count: object) -> int:
    return count if isinstance(count, int) else 0
