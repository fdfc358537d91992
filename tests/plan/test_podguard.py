"""What an override takes away from pods, or makes of them, is told with its place."""

import pytest

from pytest_cre.errors import CatalogProblem
from pytest_cre.plan.podsites import all_templates, gpu_containers

from .test_overrides import KINDS, bench, override, rendered  # noqa: F401

PATCHES = {
    "removes the pod": ({"op": "remove", "path": "/spec"}, "takes the containers away"),
    "removes the container": (
        {"op": "remove", "path": "/spec/containers/0"},
        "takes the GPUs away; claim them by another name in the same override",
    ),
    "makes a text of a container": (
        {"op": "replace", "path": "/spec/containers/0", "value": "x"},
        "leaves no map as an item of spec.containers",
    ),
    "adds a text to the containers": (
        {"op": "add", "path": "/spec/containers/-", "value": "x"},
        "leaves no map as an item of spec.containers",
    ),
    "adds a variable that is there": (
        {
            "op": "add",
            "path": "/spec/containers/0/env/-",
            "value": {"name": "NCCL_DEBUG", "value": "WARN"},
        },
        "sets variable NCCL_DEBUG a second time; use env",
    ),
    "adds a variable without a name": (
        {"op": "add", "path": "/spec/containers/0/env/-", "value": {"value": "WARN"}},
        "leaves a variable of container",
    ),
    "removes a toleration": (
        {"op": "remove", "path": "/spec/tolerations/0"},
        "loses tolerations that were there; use tolerations",
    ),
    "makes a text of the tolerations": (
        {"op": "replace", "path": "/spec/tolerations/0", "value": "x"},
        "leaves no map as an item of spec.tolerations",
    ),
}
MERGES = {
    "spec": ({"pod": {"spec": None}}, "takes the containers away"),
    "metadata that is none": ({"pod": {"metadata": "x"}}, "leaves no map as metadata"),
    "metadata": ({"pod": {"metadata": None}}, "changes label app.kubernetes.io/managed-by"),
    "our label": (
        {"pod": {"metadata": {"labels": {"cre.pytest.org/run": "x"}}}},
        "changes label cre.pytest.org/run, by which the run finds its pods",
    ),
    "annotations that are none": (
        {"pod": {"metadata": {"annotations": "x"}}},
        "leaves no map as metadata.annotations",
    ),
    "resources": ({"container": {"resources": None}}, "takes the GPUs away"),
    "resources that are none": ({"container": {"resources": "x"}}, "leaves no map as resources of"),
    "limits that are none": (
        {"container": {"resources": {"limits": "x"}}},
        "leaves no map as resources.limits of",
    ),
    "name": ({"container": {"name": None}}, "leaves a container without name or image"),
    "mounts": ({"container": {"volumeMounts": "x"}}, "leaves no list as volumeMounts of"),
    "GPUs": ({"resources": {"nvidia.com/gpu": None}}, "takes the GPUs away"),
}


@pytest.mark.parametrize("kind", ["indexedJob", "jobSet"])
@pytest.mark.parametrize("name", PATCHES)
def test_patch_that_spoils_pods_is_refused(bench, kind, name):  # noqa: F811
    operation, words = PATCHES[name]
    tolerations = ({"key": "team", "operator": "Exists"},)
    parts = override("before", tolerations=tolerations), override(patch=(operation,))
    with pytest.raises(CatalogProblem) as caught:
        rendered(bench, kind, *parts)
    assert str(caught.value).startswith(f"f.yaml:1:1: override one on {bench.name}: {words}")


@pytest.mark.parametrize("name", MERGES)
def test_merge_that_spoils_pods_is_refused(bench, name):  # noqa: F811
    parts, words = MERGES[name]
    with pytest.raises(CatalogProblem) as caught:
        rendered(bench, "indexedJob", override(**parts))
    assert str(caught.value).startswith(f"f.yaml:1:1: override one on {bench.name}: {words}")


@pytest.mark.parametrize("kind", KINDS)
def test_gpus_may_be_claimed_by_another_name(bench, kind):  # noqa: F811
    plan = rendered(
        bench,
        kind,
        override(resources={"nvidia.com/gpu": None}, claims={"gpus": "${job}-gpus"}),
    )
    holders = [
        each for template in all_templates(plan.manifests) for each in gpu_containers(template)
    ]
    assert holders
    assert all(each["resources"]["claims"] == [{"name": "gpus"}] for each in holders)
