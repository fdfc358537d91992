"""A JobSet of one Indexed Job. Its controller makes the headless Service, named like the set."""

from typing import Any

from pytest_cre.plan.render.indexed_job import job_spec
from pytest_cre.plan.render.pod import MAIN_CONTAINER
from pytest_cre.plan.render.rendering import TTL_AFTER_FINISHED_S, Form, Manifest, Rendering

# What a TrainJob demands of its runtime as well, so both kinds have pods of the same names.
REPLICATED_JOB = "node"
POD_SUFFIX = f"-{REPLICATED_JOB}-0-99999-xxxxx"
FIRST_HOST = f"{{name}}-{REPLICATED_JOB}-0-0.{{name}}"


def jobset_spec(
    rendering: Rendering,
    *,
    container: str = MAIN_CONTAINER,
    job_labels: Manifest | None = None,
) -> dict[str, Any]:
    """Return the spec of a JobSet; `job_labels` are further labels of its Job, not of the pods."""
    return {
        "failurePolicy": {"maxRestarts": 0},  # a restart deletes pods and logs of the one before
        "ttlSecondsAfterFinished": TTL_AFTER_FINISHED_S,
        "replicatedJobs": [
            {
                "name": REPLICATED_JOB,
                "replicas": 1,
                "template": {
                    "metadata": {"labels": {**rendering.pod_labels, **(job_labels or {})}},
                    "spec": job_spec(rendering, container),
                },
            }
        ],
    }


def _objects(rendering: Rendering) -> tuple[Manifest, ...]:
    return (
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": rendering.metadata,
            "spec": jobset_spec(rendering),
        },
    )


JOB_SET = Form(pod_suffix=POD_SUFFIX, first_host=FIRST_HOST, objects=_objects)
