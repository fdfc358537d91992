"""URL paths of the API: which kind, namespace, object and part of it a request addresses."""

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_cre.embedded.kinds import KIND_BY_PATH, NAMESPACE, Kind
from pytest_cre.embedded.selecting import Selection, parse_selection


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """What a path names; empty texts where it names nothing."""

    kind: Kind
    namespace: str
    name: str
    subresource: str

    def selection(self, query: Mapping[str, str]) -> Selection:
        """Give what a request means of the kind; raises 400 for unreadable selectors."""
        labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
        return parse_selection(self.kind, self.namespace, labels, fields)


def parse_path(path: str) -> Address | None:
    """Read `/api/v1/...` or `/apis/GROUP/VERSION/...`; None when it names no served resource."""
    parts = [part for part in path.split("/") if part]
    if not parts:
        return None
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in NAMESPACE.subresources:
        namespace, rest = rest[1], rest[2:]
    kind = KIND_BY_PATH.get((group, version, rest[0]))
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if name and kind.namespaced and not namespace:
        return None
    if subresource and subresource not in kind.subresources:
        return None
    return Address(kind=kind, namespace=namespace, name=name, subresource=subresource)
