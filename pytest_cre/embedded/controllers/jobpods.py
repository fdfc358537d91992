"""What a pod looks like that is made for a Job."""

import copy

from pytest_cre.embedded.jobrules import INDEX_ANNOTATION, TRACKING_FINALIZER
from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.store import Record

FAILURE_COUNT_ANNOTATION = "batch.kubernetes.io/job-index-failure-count"
_INDEX_VARIABLE = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {
        "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX_ANNOTATION}']"}
    },
}


def new_pod(job: Record, index: int | None, failures: int | None) -> Json:
    """Make a pod for a Job; `index` for Indexed ones, `failures` where each index has its limit."""
    template: Json = job.obj["spec"]["template"]
    metadata: Json = copy.deepcopy(template.get("metadata", {}))
    # What lists all nodes of a large group is shared by the pods: nothing changes it.
    shared = {"affinity": template["spec"]["affinity"]} if "affinity" in template["spec"] else {}
    own = {key: value for key, value in template["spec"].items() if key not in shared}
    spec: Json = {**copy.deepcopy(own), **shared}
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
        for container in (*(spec.get("initContainers") or []), *spec["containers"]):
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
