"""Pods of a group: on its nodes only, with its GPUs, never restarted in place."""

from collections.abc import Mapping
from typing import Any

from pytest_cre.catalog.options import substitute
from pytest_cre.plan.render.rendering import Manifest, Rendering
from pytest_cre.plan.selection import GPU_RESOURCE

MAIN_CONTAINER = "main"
SCRIPTS_PATH = "/cre"
TERMINATION_GRACE_S = 10

Container = dict[str, Any]


def rank_container(rendering: Rendering, name: str = MAIN_CONTAINER) -> Container:
    """Return the container that runs the entry's command on a node's GPUs."""
    return command_container(rendering, name) | gpu_needs(rendering)


def command_container(rendering: Rendering, name: str = MAIN_CONTAINER) -> Container:
    """Return the container that runs the entry's command, without GPUs of its own."""
    command, values = rendering.command, rendering.values
    return base_container(rendering, name) | {
        "command": [substitute(text, values) for text in command.command],
        "args": [substitute(text, values) for text in command.args],
    }


def base_container(rendering: Rendering, name: str = MAIN_CONTAINER) -> Container:
    """Return the container with image, environment and files, that runs nothing yet."""
    entry = rendering.entry
    env = {"PYTHONUNBUFFERED": "1"} | dict(entry.env)
    mounts: list[Manifest] = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108
    if entry.scripts:
        mounts.append({"name": "scripts", "mountPath": SCRIPTS_PATH, "readOnly": True})
    if rendering.checkpoint is not None:
        mounts.append({"name": "checkpoints", "mountPath": rendering.checkpoint.path})
    return {
        "name": name,
        "image": entry.image,
        "env": [
            {"name": key, "value": substitute(env[key], rendering.values)} for key in sorted(env)
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def gpu_needs(rendering: Rendering) -> Container:
    """Return what a container needs besides to use a node's GPUs."""
    return {
        "resources": {"limits": {GPU_RESOURCE: str(rendering.gpus_per_node)}},
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},  # pinned memory for RDMA
    }


def pod_template(
    rendering: Rendering, container: Container, *, apart: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the template of pods on the group's nodes.

    `apart` are the labels of the pods of which each node takes one; None: of which it may take any
    number.
    """
    volumes: list[Manifest] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    if rendering.entry.scripts:
        volumes.append({"name": "scripts", "configMap": {"name": rendering.name}})
    if rendering.checkpoint is not None:
        claim = {"claimName": rendering.name}
        volumes.append({"name": "checkpoints", "persistentVolumeClaim": claim})
    return {
        "metadata": {"labels": rendering.pod_labels},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": TERMINATION_GRACE_S,
            "affinity": _affinity(rendering, apart),
            "tolerations": [dict(each) for each in rendering.tolerations],
            "containers": [container],
            "volumes": volumes,
        },
    }


def _affinity(rendering: Rendering, apart: Mapping[str, str] | None) -> dict[str, Any]:
    # A term on metadata.name takes exactly one name, and terms are alternatives.
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        for node in rendering.group.nodes
    ]
    nodes = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }
    if apart is None:
        return nodes
    return nodes | {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": dict(apart)},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        },
    }
