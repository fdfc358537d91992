"""An Indexed Job with a headless Service: no operator is needed."""

from typing import Any

from pytest_cre.plan.render.pod import MAIN_CONTAINER, pod_template, rank_container
from pytest_cre.plan.render.rendering import (
    JOB_LABEL,
    TTL_AFTER_FINISHED_S,
    Form,
    Manifest,
    Rendering,
)


def job_spec(rendering: Rendering, container: str = MAIN_CONTAINER) -> dict[str, Any]:
    """Return the spec of a Job with one pod on each node, as other kinds hold it too."""
    apart = {JOB_LABEL: rendering.name}
    template = pod_template(rendering, rank_container(rendering, container), apart=apart)
    template["spec"]["restartPolicy"] = "Never"
    return {
        "completionMode": "Indexed",
        "completions": rendering.nodes,
        "parallelism": rendering.nodes,
        "backoffLimit": 0,  # retries are the run's business, where they are seen
        "activeDeadlineSeconds": rendering.deadline_s,
        "podFailurePolicy": {
            "rules": [
                {
                    "action": "Ignore",
                    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                }
            ]
        },
        "template": template,
    }


def _objects(rendering: Rendering) -> tuple[Manifest, ...]:
    spec = job_spec(rendering) | {"ttlSecondsAfterFinished": TTL_AFTER_FINISHED_S}
    spec["template"]["spec"]["subdomain"] = rendering.name
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": rendering.metadata,
        "spec": spec,
    }
    return _headless_service(rendering), job


def _headless_service(rendering: Rendering) -> Manifest:
    """Return the Service that gives pods their host names, before they are ready too."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": rendering.metadata,
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {JOB_LABEL: rendering.name},
        },
    }


INDEXED_JOB = Form(pod_suffix="-99999-xxxxx", first_host="{name}-0.{name}", objects=_objects)
