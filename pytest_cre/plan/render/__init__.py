"""A group of nodes to the objects that run an entry on it. Same input, same bytes."""

from collections.abc import Mapping, Sequence

from pytest_cre.catalog.checkpoint import CheckpointVolume, checkpoint_volume
from pytest_cre.catalog.entry import CatalogEntry, WorkloadKind
from pytest_cre.errors import CatalogProblem
from pytest_cre.plan.model import GroupPlan, NodeGroup
from pytest_cre.plan.names import group_labels, job_name
from pytest_cre.plan.overrides import NO_FITTING, Fitting
from pytest_cre.plan.render.indexed_job import INDEXED_JOB
from pytest_cre.plan.render.jobset import JOB_SET
from pytest_cre.plan.render.mpijob import MPI_JOB
from pytest_cre.plan.render.rendering import JOB_LABEL, Form, Manifest, Rendering
from pytest_cre.plan.render.trainjob import TRAIN_JOB
from pytest_cre.plan.taints import DEFAULT_TOLERATIONS

__all__ = ["JOB_LABEL", "render_group"]

_FORMS: Mapping[WorkloadKind, Form] = {
    "indexedJob": INDEXED_JOB,
    "jobSet": JOB_SET,
    "mpiJob": MPI_JOB,
    "trainJob": TRAIN_JOB,
}


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
    fitting: Fitting = NO_FITTING,
) -> GroupPlan:
    """Return the objects of one attempt on one group, in the order to create them.

    `owner` is name and UID of the run's ConfigMap, which owns every object. `options` are the
    entry's options, complete; `scripts` the text of each file in `entry.scripts`. Node names, UID
    and run id are put in as given, so placeholders come out as placeholders. The entry must name
    the kind. `fitting` changes the manifests as platform, architecture and site ask. Raises
    `CatalogProblem` for an option that no checkpoint volume can have.
    """
    form = _FORMS[kind]
    name = job_name(
        run_id=run_id,
        entry=entry.name,
        scale=scale,
        group=group.name,
        attempt=attempt,
        pod_suffix=form.pod_suffix,
    )
    labels = group_labels(
        run_id=run_id, entry_label=entry.label_value, group=group.name, attempt=attempt
    )
    metadata: Manifest = {
        "name": name,
        "namespace": namespace,
        "labels": dict(labels),
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": owner[0], "uid": owner[1]}
        ],
    }
    values = dict(options) | {
        "nodes": str(len(group.nodes)),
        "gpusPerNode": str(gpus_per_node),
        "gpus": str(len(group.nodes) * gpus_per_node),
        "masterAddress": form.first_host.format(name=name),
        "architecture": architecture or "unknown",
        "test": entry.test or "",
    }
    try:
        checkpoint = checkpoint_volume(entry.checkpoint, values)
    except CatalogProblem as problem:
        raise CatalogProblem(f"{entry.name}: {problem}") from None
    manifests = form.objects(
        Rendering(
            entry=entry,
            command=entry.workloads[kind],
            group=group,
            name=name,
            metadata=metadata,
            labels=labels,
            values=values,
            gpus_per_node=gpus_per_node,
            tolerations=tolerations,
            checkpoint=checkpoint,
        )
    )
    if entry.scripts:
        manifests = (_script_map(entry, metadata, scripts), *manifests)
    if checkpoint is not None:
        manifests = (_claim(checkpoint, metadata), *manifests)
    manifests, applied = fitting.fit(
        manifests,
        entry,
        kind=kind,
        scale=scale,
        nodes=len(group.nodes),
        values=values,
        name=name,
        options=options,
    )
    return GroupPlan(
        group=group,
        attempt=attempt,
        job_name=name,
        gpus_per_node=gpus_per_node,
        manifests=manifests,
        platform=fitting.platform,
        overrides=applied,
        max_restarts=checkpoint.max_restarts if checkpoint is not None else 0,
    )


def _claim(checkpoint: CheckpointVolume, metadata: Manifest) -> Manifest:
    """Return the claim of the volume; all pods of a life write to it, and the next life reads it."""
    storage_class = checkpoint.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": checkpoint.storage_size}},
        }
        | ({"storageClassName": storage_class} if storage_class is not None else {}),
    }


def _script_map(entry: CatalogEntry, metadata: Manifest, scripts: Mapping[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {script: scripts[script] for script in sorted(entry.scripts)},
    }
