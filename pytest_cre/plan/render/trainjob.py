"""A TrainJob with a TrainingRuntime of its own, of which its controller makes a JobSet."""

from pytest_cre.plan.render.jobset import FIRST_HOST, POD_SUFFIX, jobset_spec
from pytest_cre.plan.render.rendering import Form, Manifest, Rendering

API_VERSION = "trainer.kubeflow.org/v1alpha1"
CONTAINER = "node"  # the name by which the controller finds the container that trains
_ANCESTOR = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}


def _objects(rendering: Rendering) -> tuple[Manifest, ...]:
    runtime = {
        "apiVersion": API_VERSION,
        "kind": "TrainingRuntime",
        "metadata": rendering.metadata,
        "spec": {
            # The torch policy gives torchrun its arguments as PET_* variables.
            "mlPolicy": {
                "numNodes": rendering.nodes,
                "torch": {"numProcPerNode": rendering.gpus_per_node},
            },
            "template": {
                "metadata": {"labels": rendering.pod_labels},
                "spec": jobset_spec(rendering, container=CONTAINER, job_labels=_ANCESTOR),
            },
        },
    }
    train_job = {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": rendering.metadata,
        "spec": {
            "runtimeRef": {
                "apiGroup": "trainer.kubeflow.org",
                "kind": "TrainingRuntime",
                "name": rendering.name,
            },
            "trainer": {
                "numNodes": rendering.nodes,
                "numProcPerNode": rendering.gpus_per_node,
            },
        },
    }
    return runtime, train_job


TRAIN_JOB = Form(pod_suffix=POD_SUFFIX, first_host=FIRST_HOST, objects=_objects)
