"""Kinds of objects, and the few things read from any of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from pytest_cre.errors import UsageProblem

Object = Mapping[str, Any]  # a Kubernetes object as JSON


EVERY_CLUSTER = ("", "batch", "coordination.k8s.io")  # API groups that are never missing


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKind:
    """A kind of object and where the API serves it."""

    group: str
    version: str
    plural: str
    kind: str
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return `v1` or `batch/v1`, as manifests write it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def api_path(self) -> str:
        """Return the path of the group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """Return the path of the collection, or of one object in it."""
        parts = [self.api_path]
        if self.is_namespaced and namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name is not None:
            parts.append(quote(name, safe=""))
        return "/".join(parts)


def _core(plural: str, kind: str, *, is_namespaced: bool = True) -> ResourceKind:
    return ResourceKind(
        group="", version="v1", plural=plural, kind=kind, is_namespaced=is_namespaced
    )


NODE = _core("nodes", "Node", is_namespaced=False)
POD = _core("pods", "Pod")
SERVICE = _core("services", "Service")
CONFIG_MAP = _core("configmaps", "ConfigMap")
EVENT = _core("events", "Event")
PERSISTENT_VOLUME_CLAIM = _core("persistentvolumeclaims", "PersistentVolumeClaim")
LEASE = ResourceKind(group="coordination.k8s.io", version="v1", plural="leases", kind="Lease")
JOB = ResourceKind(group="batch", version="v1", plural="jobs", kind="Job")
JOB_SET = ResourceKind(group="jobset.x-k8s.io", version="v1alpha2", plural="jobsets", kind="JobSet")
MPI_JOB = ResourceKind(group="kubeflow.org", version="v2beta1", plural="mpijobs", kind="MPIJob")
TRAIN_JOB = ResourceKind(
    group="trainer.kubeflow.org", version="v1alpha1", plural="trainjobs", kind="TrainJob"
)
TRAINING_RUNTIME = ResourceKind(
    group="trainer.kubeflow.org",
    version="v1alpha1",
    plural="trainingruntimes",
    kind="TrainingRuntime",
)
# What overrides of platforms create besides workloads, and where DRA drivers say what nodes have.
COMPUTE_DOMAIN = ResourceKind(
    group="resource.nvidia.com",
    version="v1beta1",
    plural="computedomains",
    kind="ComputeDomain",
)
RESOURCE_CLAIM_TEMPLATE = ResourceKind(
    group="resource.k8s.io",
    version="v1",
    plural="resourceclaimtemplates",
    kind="ResourceClaimTemplate",
)
RESOURCE_CLAIM = ResourceKind(
    group="resource.k8s.io", version="v1", plural="resourceclaims", kind="ResourceClaim"
)
RESOURCE_SLICE = ResourceKind(
    group="resource.k8s.io",
    version="v1",
    plural="resourceslices",
    kind="ResourceSlice",
    is_namespaced=False,
)
KINDS = (
    NODE,
    POD,
    SERVICE,
    CONFIG_MAP,
    PERSISTENT_VOLUME_CLAIM,
    EVENT,
    LEASE,
    JOB,
    JOB_SET,
    MPI_JOB,
    TRAIN_JOB,
    TRAINING_RUNTIME,
    COMPUTE_DOMAIN,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
)
_BY_NAME = {(each.api_version, each.kind): each for each in KINDS}

_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9})\d*)?(Z|[+-]\d{2}:\d{2})", re.ASCII
)


def kind_of(manifest: Object) -> ResourceKind:
    """Return the kind of a manifest; raises `UsageProblem` for one that a run never makes."""
    names = (str(manifest.get("apiVersion", "")), str(manifest.get("kind", "")))
    found = _BY_NAME.get(names)
    if found is None:
        choices = ", ".join(each.kind for each in KINDS if each.is_namespaced)
        raise UsageProblem(f"manifest of {' '.join(names) or 'no kind'}: choices: {choices}")
    return found


def kind_named(api_version: str, kind: str) -> ResourceKind | None:
    """Return the kind of these names, or None for one that we never make."""
    return _BY_NAME.get((api_version, kind))


def parse_time_ns(text: str | None) -> int | None:
    """Return UTC nanoseconds of an RFC 3339 time, or None where there is none."""
    found = _TIME.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(found[1] + found[3].replace("Z", "+00:00"))
    except ValueError:
        return None
    seconds = round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    return seconds * 10**9 + int((found[2] or "0").ljust(9, "0"))


def metadata_of(item: Object) -> Object:
    """Return the metadata, empty where the answer lacks it."""
    return part(item, "metadata")


def status_of(item: Object) -> Object:
    """Return the status, empty where the answer lacks it."""
    return part(item, "status")


def part(item: Object, name: str) -> Object:
    """Return an object inside an answer, empty where it is null, misshapen or missing."""
    found = item.get(name)
    return found if isinstance(found, Mapping) else {}


def condition(item: Object, *types: str) -> Object | None:
    """Return the first condition of one of these types whose status is True, or None."""
    for each in entries(status_of(item), "conditions"):
        if each.get("type") in types and each.get("status") == "True":
            return each
    return None


def entries(item: Object, name: str) -> tuple[Object, ...]:
    """Return the objects in a list of an answer; whatever is null or misshapen is left out."""
    found = item.get(name)
    return (
        tuple(each for each in found if isinstance(each, Mapping))
        if isinstance(found, list | tuple)
        else ()
    )
