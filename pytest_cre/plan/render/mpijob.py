"""An MPIJob: a launcher that starts the ranks, and one worker on each node that hosts them.

The operator makes Service, host file and SSH keys. The image must hold an SSH server.
"""

from typing import Any

from pytest_cre.plan.render.pod import (
    base_container,
    command_container,
    gpu_needs,
    pod_template,
)
from pytest_cre.plan.render.rendering import (
    JOB_LABEL,
    TTL_AFTER_FINISHED_S,
    Form,
    Manifest,
    Rendering,
)

ROLE_LABEL = "training.kubeflow.org/job-role"  # set by the operator: launcher or worker
SSH_PORT = 22


def _objects(rendering: Rendering) -> tuple[Manifest, ...]:
    spec = {
        "slotsPerWorker": rendering.gpus_per_node,
        "sshAuthMountPath": "/root/.ssh",
        "mpiImplementation": "OpenMPI",
        "launcherCreationPolicy": "WaitForWorkersReady",  # else it fails on names not yet known
        "runPolicy": {
            "cleanPodPolicy": "None",  # whatever else deletes pods before their logs are read
            "backoffLimit": 0,
            "activeDeadlineSeconds": rendering.deadline_s,
            "ttlSecondsAfterFinished": TTL_AFTER_FINISHED_S,
        },
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": _launcher(rendering)},
            "Worker": {
                "replicas": rendering.nodes,
                "restartPolicy": "Never",
                "template": _worker(rendering),
            },
        },
    }
    return (
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": rendering.metadata,
            "spec": spec,
        },
    )


def _launcher(rendering: Rendering) -> dict[str, Any]:
    return pod_template(rendering, command_container(rendering))


def _worker(rendering: Rendering) -> dict[str, Any]:
    container = base_container(rendering) | gpu_needs(rendering)
    # Without a command the operator puts the SSH server there. Ready means that it listens, and
    # only then the launcher is created and the worker's name is published.
    container["readinessProbe"] = {
        "tcpSocket": {"port": SSH_PORT},
        "periodSeconds": 2,
        "failureThreshold": 300,
    }
    apart = {JOB_LABEL: rendering.name, ROLE_LABEL: "worker"}
    template = pod_template(rendering, container, apart=apart)
    # The MPIJob's own deadline ends the launcher alone; workers would hold their GPUs for ever.
    template["spec"]["activeDeadlineSeconds"] = rendering.deadline_s
    return template


MPI_JOB = Form(
    pod_suffix="-launcher-xxxxx",  # as long as -worker-9999999
    first_host="{name}-worker-0.{name}",
    objects=_objects,
)
