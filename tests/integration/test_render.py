"""Every entry, on every platform and architecture, at every scale, as every kind: it is taken."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.cluster.exchange import Request
from pytest_cre.cluster.objects import TRAINING_RUNTIME, kind_of
from pytest_cre.errors import ClusterProblem
from pytest_cre.plan.preview import preview

PLATFORMS = ("aws", "azure", "forge", "gcp", "mistral", "nscale", "oci", "onprem", "togetherai")
CACHE_S = 15.0
RUNTIME_UNKNOWN = "specified trainingRuntime must be created before"
INTEGER, TEXT = {"type": "integer"}, {"type": "string"}
# The driver's own definition, as far as overrides use it.
COMPUTE_DOMAINS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "computedomains.resource.nvidia.com"},
    "spec": {
        "group": "resource.nvidia.com",
        "scope": "Namespaced",
        "names": {"plural": "computedomains", "kind": "ComputeDomain"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "numNodes": INTEGER,
                                    "channel": {
                                        "type": "object",
                                        "properties": {
                                            "allocationMode": TEXT,
                                            "resourceClaimTemplate": {
                                                "type": "object",
                                                "properties": {"name": TEXT},
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(suites=[shipped_suites()], profiles=[shipped_profiles()])


@pytest.fixture(scope="module")
def ask(admin):
    """Send a request as an administrator, once; compute domains are served meanwhile."""
    exchange = admin.with_retry(replace(admin.retry, budget_s=0.0))._exchange
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    def sent(method, path, body=None):
        exchange.json(Request(method=method, path=path, words=method, body=body))

    sent("POST", crds, COMPUTE_DOMAINS)
    yield sent
    sent("DELETE", f"{crds}/{COMPUTE_DOMAINS['metadata']['name']}")


@pytest.fixture
def send(ask):
    """Ask the API server to take an object without keeping it; give what it says against it."""
    runtimes = set()

    def told(manifest):
        path = kind_of(manifest).path(manifest["metadata"]["namespace"])
        try:
            if manifest["kind"] == "TrainJob" and manifest["metadata"]["name"] not in runtimes:
                # A TrainJob is taken only where its runtime is there; one without an owner stays.
                runtimes.add(manifest["metadata"]["name"])
                ask("POST", TRAINING_RUNTIME.path("default"), runtime_of(manifest))
        except ClusterProblem as problem:
            return str(problem)
        deadline = time.monotonic() + CACHE_S
        while True:
            try:
                ask("POST", f"{path}?dryRun=All&fieldValidation=Strict", manifest)
            except ClusterProblem as problem:
                # Trainer's webhook asks a cache, which learns of a new runtime a moment later.
                if RUNTIME_UNKNOWN not in str(problem) or time.monotonic() > deadline:
                    return str(problem)
                time.sleep(0.1)
            else:
                return None

    yield told
    for name in runtimes:
        ask("DELETE", TRAINING_RUNTIME.path("default", name))


def runtime_of(train_job):
    """Return a runtime of the TrainJob's name, which is all that its admission looks at."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "node", "image": "x"}]}
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = {"metadata": {"labels": labels}, "spec": {"template": {"spec": pod}}}
    return {
        "apiVersion": TRAINING_RUNTIME.api_version,
        "kind": TRAINING_RUNTIME.kind,
        "metadata": {"name": train_job["metadata"]["name"], "namespace": "default"},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}},
        },
    }


def manifests_of(catalog, platform):
    """Yield every object that a run could create there, each once."""
    seen = set()
    for entry in catalog.entries.values():
        for name in entry.architectures or catalog.architectures:
            if entry.needs.has_nvlink and catalog.architecture(name).domain_gpus < 2:
                continue  # not applicable
            # What differs between kinds is seen at one scale, and the reverse.
            kinds, scales = list(entry.workloads), entry.all_scales
            for kind, scale in (
                *((kind, scales[0]) for kind in kinds),
                *((kinds[0], scale) for scale in scales[1:]),
            ):
                plan, _ = preview(
                    entry,
                    platform=platform,
                    architecture=catalog.architecture(name),
                    platforms=catalog.platforms,
                    nodes=8,
                    scripts=dict.fromkeys(entry.scripts, "pass"),
                    kind=kind,
                    scale=scale,
                )
                for manifest in plan.groups[0].manifests:
                    text = json.dumps(manifest, sort_keys=True)
                    if text not in seen:
                        seen.add(text)
                        yield json.loads(text)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_api_server_takes_what_is_rendered(catalog, send, platform):
    manifests = list(manifests_of(catalog, platform))
    assert len(manifests) > 100
    train_jobs = [each for each in manifests if each["kind"] == "TrainJob"]
    others = [each for each in manifests if each["kind"] != "TrainJob"]
    with ThreadPoolExecutor(8) as pool:
        told = [words for words in pool.map(send, others) if words is not None]
    assert told == []
    assert [words for each in train_jobs if (words := send(each)) is not None] == []
