"""The kinds that the embedded API server knows, and how each is addressed."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

# A Kubernetes object, or a part of one, as plain JSON.
Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """One served resource type; `group` is empty for the core group."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    has_generation: bool = False
    # Kinds that genuine servers hand back whole when they are deleted, rather than as a Status.
    returns_deleted: bool = False
    needs_version_on_replace: bool = False
    creates_on_replace: bool = False
    # Bulk deletion is not offered for services and namespaces on genuine servers' old lines.
    has_collection_delete: bool = True

    @cached_property
    def api_version(self) -> str:
        """`v1`, `batch/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def qualified_plural(self) -> str:
        """`pods`, `jobs.batch`: how error messages name the resource."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def qualified_kind(self) -> str:
        """`Pod`, `Job.batch`: how validation messages name the kind."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @cached_property
    def head(self) -> bytes:
        """Opens the JSON text of a single object; the stored text follows without its brace."""
        return f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()

    @property
    def storage_name(self) -> str:
        """Under what name genuine servers store the kind; their messages show it."""
        return {"services": "services/specs", "nodes": "minions"}.get(self.plural, self.plural)

    @property
    def has_status(self) -> bool:
        """Whether spec and status are written through separate paths."""
        return "status" in self.subresources


POD = Kind(
    group="",
    version="v1",
    kind="Pod",
    plural="pods",
    short_names=("po",),
    categories=("all",),
    subresources=("binding", "eviction", "log", "status"),
    has_generation=True,
    returns_deleted=True,
)
NODE = Kind(
    group="",
    version="v1",
    kind="Node",
    plural="nodes",
    namespaced=False,
    short_names=("no",),
    subresources=("status",),
)
NAMESPACE = Kind(
    group="",
    version="v1",
    kind="Namespace",
    plural="namespaces",
    namespaced=False,
    short_names=("ns",),
    subresources=("finalize", "status"),
    has_collection_delete=False,
)
SERVICE = Kind(
    group="",
    version="v1",
    kind="Service",
    plural="services",
    short_names=("svc",),
    categories=("all",),
    subresources=("status",),
    returns_deleted=True,
    creates_on_replace=True,
)
CONFIG_MAP = Kind(
    group="", version="v1", kind="ConfigMap", plural="configmaps", short_names=("cm",)
)
PERSISTENT_VOLUME_CLAIM = Kind(
    group="",
    version="v1",
    kind="PersistentVolumeClaim",
    plural="persistentvolumeclaims",
    short_names=("pvc",),
    subresources=("status",),
    returns_deleted=True,
)
SECRET = Kind(group="", version="v1", kind="Secret", plural="secrets")
SERVICE_ACCOUNT = Kind(
    group="",
    version="v1",
    kind="ServiceAccount",
    plural="serviceaccounts",
    short_names=("sa",),
    returns_deleted=True,
)
EVENT = Kind(
    group="",
    version="v1",
    kind="Event",
    plural="events",
    short_names=("ev",),
    creates_on_replace=True,
)
ENDPOINTS = Kind(
    group="",
    version="v1",
    kind="Endpoints",
    plural="endpoints",
    short_names=("ep",),
    creates_on_replace=True,
)
LEASE = Kind(
    group="coordination.k8s.io",
    version="v1",
    kind="Lease",
    plural="leases",
    needs_version_on_replace=True,
    creates_on_replace=True,
)
JOB = Kind(
    group="batch",
    version="v1",
    kind="Job",
    plural="jobs",
    categories=("all",),
    subresources=("status",),
    has_generation=True,
)

# What is sent to the server but not kept by it.
BINDING = Kind(group="", version="v1", kind="Binding", plural="bindings")
DELETE_OPTIONS = Kind(group="", version="v1", kind="DeleteOptions", plural="deleteoptions")
EVICTION = Kind(group="policy", version="v1", kind="Eviction", plural="evictions")
REVIEWS: tuple[Kind, ...] = (
    Kind(
        group="authentication.k8s.io",
        version="v1",
        kind="SelfSubjectReview",
        plural="selfsubjectreviews",
        namespaced=False,
    ),
    Kind(
        group="authorization.k8s.io",
        version="v1",
        kind="SelfSubjectAccessReview",
        plural="selfsubjectaccessreviews",
        namespaced=False,
    ),
    Kind(
        group="authorization.k8s.io",
        version="v1",
        kind="SelfSubjectRulesReview",
        plural="selfsubjectrulesreviews",
        namespaced=False,
    ),
)

KINDS: tuple[Kind, ...] = (
    CONFIG_MAP,
    ENDPOINTS,
    EVENT,
    JOB,
    LEASE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
)
KIND_BY_PATH: dict[tuple[str, str, str], Kind] = {(k.group, k.version, k.plural): k for k in KINDS}
KIND_BY_NAME: dict[tuple[str, str], Kind] = {(k.api_version, k.kind): k for k in KINDS}
GROUP_VERSIONS: dict[str, str] = {
    "": "v1",
    "batch": "v1",
    "coordination.k8s.io": "v1",
    "authorization.k8s.io": "v1",
    "authentication.k8s.io": "v1",
}
