"""A group of nodes to the objects that run an entry on it. Same input, same bytes."""

import math
from collections.abc import Callable, Mapping, Sequence

from pytest_cre.catalog.entry import CatalogEntry, WorkloadKind
from pytest_cre.catalog.options import substitute
from pytest_cre.plan.model import GroupPlan, NodeGroup
from pytest_cre.plan.names import group_labels, job_name
from pytest_cre.plan.selection import GPU_RESOURCE
from pytest_cre.plan.taints import DEFAULT_TOLERATIONS

MAIN_CONTAINER = "main"
JOB_LABEL = "cre.pytest.org/job"
SCRIPTS_PATH = "/cre"
TTL_AFTER_FINISHED_S = 3600  # a safety net only: the run deletes its objects itself
DEADLINE_MARGIN_S = 300  # the run's own deadlines come first
TERMINATION_GRACE_S = 10

Manifest = Mapping[str, object]


def render_group(
    entry: CatalogEntry,
    kind: WorkloadKind,
    group: NodeGroup,
    *,
    scale: str,
    architecture: str | None,
    gpus_per_node: int,
    run_id: str,
    owner: tuple[str, str],
    namespace: str,
    options: Mapping[str, str],
    scripts: Mapping[str, str],
    attempt: int = 0,
    tolerations: Sequence[Mapping[str, str]] = DEFAULT_TOLERATIONS,
) -> GroupPlan:
    """Return the objects of one attempt on one group, in the order to create them.

    `owner` is name and UID of the run's ConfigMap, which owns every object. `options` are the
    entry's options, complete; `scripts` the text of each file in `entry.scripts`. Node names, UID
    and run id are put in as given, so placeholders come out as placeholders.
    """
    name = job_name(
        run_id=run_id,
        entry=entry.name,
        scale=scale,
        group=group.name,
        attempt=attempt,
    )
    labels = dict(
        group_labels(
            run_id=run_id, entry_label=entry.label_value, group=group.name, attempt=attempt
        )
    )
    metadata: Manifest = {
        "name": name,
        "namespace": namespace,
        "labels": labels,
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": owner[0], "uid": owner[1]}
        ],
    }
    values = dict(options) | {
        "nodes": str(len(group.nodes)),
        "gpusPerNode": str(gpus_per_node),
        "gpus": str(len(group.nodes) * gpus_per_node),
        "masterAddress": f"{name}-0.{name}",
        "architecture": architecture or "unknown",
    }
    container = _container(entry, kind, values, gpus_per_node)
    template = _pod_template(entry, group, name, labels, container, tolerations)
    workload = _RENDERERS[kind](entry, group, metadata, template)
    manifests = [_headless_service(metadata), workload]
    if entry.scripts:
        manifests.insert(0, _script_map(entry, metadata, scripts))
    return GroupPlan(
        group=group,
        attempt=attempt,
        job_name=name,
        gpus_per_node=gpus_per_node,
        manifests=tuple(manifests),
    )


def _script_map(
    entry: CatalogEntry, metadata: Mapping[str, object], scripts: Mapping[str, str]
) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {script: scripts[script] for script in sorted(entry.scripts)},
    }


def _headless_service(metadata: Mapping[str, object]) -> Manifest:
    """Return the Service that gives pods their host names, before they are ready too."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {JOB_LABEL: metadata["name"]},
        },
    }


def _container(
    entry: CatalogEntry, kind: WorkloadKind, values: Mapping[str, str], gpus_per_node: int
) -> dict[str, object]:
    command = entry.workloads[kind]
    env = {"PYTHONUNBUFFERED": "1"} | dict(entry.env)
    mounts: list[dict[str, object]] = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108
    if entry.scripts:
        mounts.append({"name": "scripts", "mountPath": SCRIPTS_PATH, "readOnly": True})
    return {
        "name": MAIN_CONTAINER,
        "image": entry.image,
        "command": [substitute(text, values) for text in command.command],
        "args": [substitute(text, values) for text in command.args],
        "env": [{"name": name, "value": substitute(env[name], values)} for name in sorted(env)],
        "resources": {"limits": {GPU_RESOURCE: str(gpus_per_node)}},
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},  # pinned memory for RDMA
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _pod_template(
    entry: CatalogEntry,
    group: NodeGroup,
    job: str,
    labels: Mapping[str, str],
    container: Mapping[str, object],
    tolerations: Sequence[Mapping[str, str]],
) -> Manifest:
    volumes: list[dict[str, object]] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    if entry.scripts:
        volumes.append({"name": "scripts", "configMap": {"name": job}})
    return {
        "metadata": {"labels": {**labels, JOB_LABEL: job}},
        "spec": {
            "restartPolicy": "Never",
            "subdomain": job,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": TERMINATION_GRACE_S,
            "affinity": _affinity(group, job),
            "tolerations": [dict(each) for each in tolerations],
            "containers": [container],
            "volumes": volumes,
        },
    }


def _indexed_job(
    entry: CatalogEntry, group: NodeGroup, metadata: Manifest, template: Manifest
) -> Manifest:
    pods = len(group.nodes)
    deadline_s = math.ceil(entry.start_timeout_s + entry.timeout_s) + DEADLINE_MARGIN_S
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completionMode": "Indexed",
            "completions": pods,
            "parallelism": pods,
            "backoffLimit": 0,  # retries are the run's business, where they are seen
            "activeDeadlineSeconds": deadline_s,
            "ttlSecondsAfterFinished": TTL_AFTER_FINISHED_S,
            "podFailurePolicy": {
                "rules": [
                    {
                        "action": "Ignore",
                        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                    }
                ]
            },
            "template": template,
        },
    }


def _affinity(group: NodeGroup, job: str) -> dict[str, object]:
    """Return: on the group's nodes only, and one pod of the Job on each."""
    # A term on metadata.name takes exactly one name, and terms are alternatives.
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        for node in group.nodes
    ]
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {JOB_LABEL: job}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        },
    }


_Renderer = Callable[[CatalogEntry, NodeGroup, Manifest, Manifest], Manifest]
_RENDERERS: Mapping[WorkloadKind, _Renderer] = {"indexedJob": _indexed_job}
RENDERED_KINDS: frozenset[WorkloadKind] = frozenset(_RENDERERS)
