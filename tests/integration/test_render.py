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
from pytest_cre.plan.podsites import all_templates, containers_of, editable
from pytest_cre.plan.preview import preview
from pytest_cre.plan.scales import nodes_per_group_of
from pytest_cre.plan.site import NO_SITE, Site

# All that a site can ask for at once, besides what it needs of the cluster.
SITE = Site(
    images={"nvcr.io/": "mirror.example.org/nvcr/"},
    image_pull_secrets=("regcred",),
    tolerations=({"key": "team", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},),
    service_account="bench",
    priority_class="high",
    scheduler="gang-scheduler",
    queue="gpu-queue",
    labels={"cost-centre": "42"},
    annotations={"contact": "gpu-team"},
    env={"HTTPS_PROXY": "http://proxy.example.org:3128"},
    nic_resource="rdma/hca",
    rdma_device_access="hostPath",
)
PLATFORMS = ("aws", "azure", "forge", "gcp", "mistral", "nscale", "oci", "onprem", "togetherai")
CACHE_S = 15.0
RUNTIMES = TRAINING_RUNTIME.path("default")
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
def refusals(ask):
    """Ask the API server to take objects without keeping them; give what it says against them.

    A TrainJob is taken only where its runtime is there, so these are made, and deleted at the end.
    """
    made = []

    def told(manifest):
        path = kind_of(manifest).path(manifest["metadata"]["namespace"])
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

    with ThreadPoolExecutor(8) as pool:

        def refused(manifests):
            last = [each for each in manifests if each["kind"] == "TrainJob"]
            others = [each for each in manifests if each["kind"] != "TrainJob"]
            words = list(pool.map(told, others))
            made.extend({each["metadata"]["name"] for each in last})
            list(pool.map(lambda name: ask("POST", RUNTIMES, runtime_of(name)), made))
            words += pool.map(told, last)
            return [each for each in words if each is not None]

        yield refused
        list(pool.map(lambda name: ask("DELETE", f"{RUNTIMES}/{name}"), made))


def runtime_of(name):
    """Return a runtime of a TrainJob's name, which is all that the TrainJob's admission looks at."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "node", "image": "x"}]}
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = {"metadata": {"labels": labels}, "spec": {"template": {"spec": pod}}}
    return {
        "apiVersion": TRAINING_RUNTIME.api_version,
        "kind": TRAINING_RUNTIME.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}},
        },
    }


def ways_of(entry, architecture):
    """Yield how an entry can run: kind, scale, options and site.

    What options and a site add is the same for every architecture: it is seen on two.
    """
    is_sample = architecture in ("h100", "gb200")
    # What differs between kinds is seen at one scale, and the reverse.
    kinds, scales = list(entry.workloads), entry.all_scales
    for kind in kinds:
        yield kind, scales[0], {}, NO_SITE
        if is_sample and entry.checkpoint is not None:
            yield kind, scales[0], {"enableCheckpoint": "true", "storageClassName": "nfs"}, NO_SITE
        if is_sample:
            yield kind, scales[0], {}, replace(SITE, has_host_network=kind != "mpiJob")
    for scale in scales[1:]:
        yield kinds[0], scale, {}, NO_SITE


def manifests_of(catalog, platform):
    """Return every object that a run could create there as JSON, each once."""
    seen = {}
    for entry in catalog.entries.values():
        for name in entry.architectures or catalog.architectures:
            if entry.needs.has_nvlink and catalog.architecture(name).domain_gpus < 2:
                continue  # not applicable
            for kind, scale, options, site in ways_of(entry, name):
                plan, ground = preview(
                    entry,
                    platform=platform,
                    architecture=catalog.architecture(name),
                    platforms=catalog.platforms,
                    nodes=nodes_per_group_of(scale) or 8,
                    scripts=dict.fromkeys(entry.scripts, "pass"),
                    kind=kind,
                    scale=scale,
                    options=options,
                    site=site,
                )
                check_pods(plan, ground.fitting)
                for manifest in plan.groups[0].manifests:
                    seen[json.dumps(manifest, sort_keys=True)] = None
    return seen


def check_pods(plan, fitting):
    """Look at what an API server takes as it is: each variable once, and no toleration lost."""
    group = plan.groups[0]
    matching = fitting.matching(
        plan.entry,
        kind=plan.kind,
        scale=plan.scale,
        nodes=len(group.group.nodes),
        options=plan.options,
    )
    wanted = [each for override in matching for each in override.tolerations]
    wanted += fitting.site.tolerations
    templates = all_templates(editable(group.manifests))
    assert templates
    for template in templates:
        place = (plan.entry.name, plan.kind, fitting.platform, fitting.architecture)
        tolerated = template["spec"]["tolerations"]
        assert [each for each in wanted if dict(each) not in tolerated] == [], place
        for container in containers_of(template):
            names = [each["name"] for each in container.get("env", ())]
            assert sorted(set(names)) == sorted(names), place


@pytest.fixture(scope="module")
def taken():
    """Texts of the objects that the API server has taken already, for another platform."""
    return set()


@pytest.mark.parametrize("platform", PLATFORMS)
def test_api_server_takes_what_is_rendered(catalog, refusals, taken, platform):
    texts = list(manifests_of(catalog, platform))
    assert len(texts) > 100
    assert refusals([json.loads(text) for text in texts if text not in taken]) == []
    taken.update(texts)
