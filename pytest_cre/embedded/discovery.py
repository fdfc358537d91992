"""What the server says about itself: version, groups, resources."""

import base64
import hashlib
import sys

from pytest_cre.embedded.kinds import GROUP_VERSIONS, KINDS, REVIEWS, Json, Kind
from pytest_cre.embedded.openapi import openapi_document, openapi_index

# The genuine line whose answers are imitated; the suffix says that this is not it.
_MAJOR, _MINOR, _GIT_VERSION = "1", "37", "v1.37.0+pytest-cre.embedded"
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUBRESOURCES: dict[str, tuple[str, list[str]]] = {
    "binding": ("Binding", ["create"]),
    "eviction": ("Eviction", ["create"]),
    "finalize": ("Namespace", ["update"]),
    "log": ("Pod", ["get"]),
}


def version_info() -> Json:
    """Give the answer to `/version`."""
    return {
        "major": _MAJOR,
        "minor": _MINOR,
        "gitVersion": _GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": f"python{sys.version_info.major}.{sys.version_info.minor}",
        "platform": "linux/amd64",
    }


def discover(path: str, address: str) -> Json | None:
    """Give the discovery document for a path, None where there is none."""
    parts = [part for part in path.split("/") if part]
    if parts == ["api"]:
        return {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        }
    if parts == ["apis"]:
        groups = [_group(group) for group in sorted(GROUP_VERSIONS) if group]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if len(parts) == 2 and parts[0] == "apis" and parts[1] in GROUP_VERSIONS and parts[1]:
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1])}
    if parts == ["api", "v1"]:
        return _resources("", "v1")
    if len(parts) == 3 and parts[0] == "apis" and GROUP_VERSIONS.get(parts[1]) == parts[2]:
        return _resources(parts[1], parts[2])
    if parts[:2] == ["openapi", "v3"]:
        return openapi_document("/".join(parts[2:])) if len(parts) > 2 else openapi_index()
    return None


def is_in_served_version(path: str) -> bool:
    """Whether a path lies where genuine servers answer in JSON that there is no such resource."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"]:
        return len(parts) > 1
    return parts[:1] == ["apis"] and len(parts) > 2 and parts[1] in GROUP_VERSIONS


def _group(group: str) -> Json:
    version = {"groupVersion": f"{group}/{GROUP_VERSIONS[group]}", "version": GROUP_VERSIONS[group]}
    return {"name": group, "versions": [version], "preferredVersion": version}


def _resources(group: str, version: str) -> Json:
    resources: list[Json] = []
    for kind in KINDS:
        if (kind.group, kind.version) == (group, version):
            resources.append(_resource(kind))
            resources += [_subresource(kind, name) for name in kind.subresources]
    resources += [
        {
            "name": kind.plural,
            "singularName": kind.kind.lower(),
            "namespaced": False,
            "kind": kind.kind,
            "verbs": ["create"],
        }
        for kind in REVIEWS
        if kind.group == group
    ]
    resources.sort(key=lambda resource: str(resource["name"]))
    document: Json = {"kind": "APIResourceList"}
    if group:
        document["apiVersion"] = "v1"
    document["groupVersion"] = f"{group}/{version}" if group else version
    return {**document, "resources": resources}


def _resource(kind: Kind) -> Json:
    verbs = [v for v in _VERBS if kind.has_collection_delete or v != "deletecollection"]
    resource: Json = {
        "name": kind.plural,
        "singularName": kind.kind.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs,
    }
    if kind.short_names:
        resource["shortNames"] = list(kind.short_names)
    if kind.categories:
        resource["categories"] = list(kind.categories)
    identity = f"{kind.group}/{kind.version}/{kind.kind}"
    digest = hashlib.sha256(identity.encode()).digest()
    resource["storageVersionHash"] = base64.b64encode(digest[:8]).decode()
    return resource


def _subresource(kind: Kind, name: str) -> Json:
    kind_name, verbs = _SUBRESOURCES.get(name, (kind.kind, ["get", "patch", "update"]))
    resource: Json = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind_name,
        "verbs": verbs,
    }
    if name == "eviction":
        resource.update(group="policy", version="v1")
    return resource
