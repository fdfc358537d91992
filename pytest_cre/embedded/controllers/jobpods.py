"""Pods of a Job: what a new one looks like, and how those that exist stand."""

import copy
from dataclasses import dataclass

from pytest_cre.embedded.jobrules import INDEX_ANNOTATION, TRACKING_FINALIZER
from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.podrules import is_pod_finished, pod_condition
from pytest_cre.embedded.store import Record

FAILURE_COUNT_ANNOTATION = "batch.kubernetes.io/job-index-failure-count"
_INDEX_VARIABLE = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {
        "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX_ANNOTATION}']"}
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """The pods of one Job, sorted by what they mean to it."""

    active: list[Record]
    terminating: list[Record]
    # Ended or lost for good, and not yet counted in the Job's status.
    new_succeeded: list[Record]
    new_failed: list[Record]

    @property
    def ready_count(self) -> int:
        """How many active pods are ready."""
        ready = (pod_condition(pod.obj, "Ready") for pod in self.active)
        return sum(1 for condition in ready if condition and condition.get("status") == "True")


def sort_pods(pods: list[Record], *, replaces_failed_only: bool) -> PodGroup:
    """Sort a Job's pods; without `replaces_failed_only` a pod being deleted has failed already."""
    active: list[Record] = []
    terminating: list[Record] = []
    new_succeeded: list[Record] = []
    new_failed: list[Record] = []
    for pod in pods:
        metadata: Json = pod.obj["metadata"]
        is_tracked = TRACKING_FINALIZER in (metadata.get("finalizers") or [])
        phase = pod.obj.get("status", {}).get("phase")
        is_deleting = bool(metadata.get("deletionTimestamp"))
        if not is_pod_finished(pod.obj):
            (terminating if is_deleting else active).append(pod)
        if not is_tracked:
            continue
        is_lost = is_deleting and metadata.get("deletionGracePeriodSeconds") == 0
        if phase == "Succeeded":
            new_succeeded.append(pod)
        elif phase == "Failed" or (is_deleting and (is_lost or not replaces_failed_only)):
            new_failed.append(pod)
    return PodGroup(
        active=active,
        terminating=terminating,
        new_succeeded=new_succeeded,
        new_failed=new_failed,
    )


def new_pod(job: Record, index: int | None, failures: int | None) -> Json:
    """Make a pod for a Job; `index` for Indexed ones, `failures` where each index has its limit."""
    template: Json = job.obj["spec"]["template"]
    metadata: Json = copy.deepcopy(template.get("metadata", {}))
    spec: Json = copy.deepcopy(template["spec"])
    name = job.key[1]
    prefix = f"{name}-"
    if index is not None:
        prefix = f"{name}-{index}-"
        metadata.setdefault("labels", {})[INDEX_ANNOTATION] = str(index)
        annotations = metadata.setdefault("annotations", {})
        annotations[INDEX_ANNOTATION] = str(index)
        if failures is not None:
            annotations[FAILURE_COUNT_ANNOTATION] = str(failures)
        spec.setdefault("hostname", f"{name}-{index}")
        for container in (*spec.get("initContainers", []), *spec["containers"]):
            env = container.setdefault("env", [])
            if not any(variable["name"] == _INDEX_VARIABLE["name"] for variable in env):
                env.append(copy.deepcopy(_INDEX_VARIABLE))
    metadata["generateName"] = prefix
    metadata["finalizers"] = [*metadata.get("finalizers", []), TRACKING_FINALIZER]
    metadata["ownerReferences"] = [
        {
            "apiVersion": job.kind.api_version,
            "kind": job.kind.kind,
            "name": name,
            "uid": job.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    return {"metadata": metadata, "spec": spec}


def index_of(pod: Record) -> int | None:
    """Give a pod's completion index, None when it has no valid one."""
    text = (pod.obj["metadata"].get("annotations") or {}).get(INDEX_ANNOTATION, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def parse_indexes(text: str) -> set[int]:
    """Read `0-3,7`."""
    indexes: set[int] = set()
    for part in text.split(","):
        first, _dash, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            indexes.update(range(int(first), int(last or first) + 1))
    return indexes


def format_indexes(indexes: set[int]) -> str:
    """Write `0-3,7`."""
    parts: list[str] = []
    ordered = sorted(indexes)
    start = 0
    for position, index in enumerate(ordered):
        if position + 1 < len(ordered) and ordered[position + 1] == index + 1:
            continue
        first = ordered[start]
        # Genuine controllers write a pair as `1,2` and a longer run as `1-3`.
        if position - start > 1:
            parts.append(f"{first}-{index}")
        else:
            parts += [str(one) for one in ordered[start : position + 1]]
        start = position + 1
    return ",".join(parts)
