from dataclasses import replace

import pytest

from pytest_cre.errors import CatalogProblem, UnmetNeed
from pytest_cre.plan.platform import ground_of
from pytest_cre.plan.podsites import all_templates, gpu_containers
from pytest_cre.plan.site import NO_SITE, Site, mirrored, on_site
from pytest_cre.plan.sitefile import read_site, site_of

from .test_overrides import KINDS, bench, override, rendered  # noqa: F401 - a fixture

WHOLE = """\
images:
  nvcr.io/: mirror.example/nvcr/
imagePullSecrets: [regcred]
tolerations:
  - {key: team, value: gpu, effect: NoSchedule}
serviceAccountName: bench
priorityClassName: high
schedulerName: gang
queue: gpus
labels: {cost-centre: "42"}
annotations: {owner: me}
proxy:
  https: http://proxy:3128
  no: [10.0.0.0/8, .svc]
env: {NCCL_DEBUG: TRACE, HF_HOME: /cache}
nicResource: rdma/ib
"""
REACH = "rdmaDeviceAccess: hostPath\nhostNetwork: true\nfabric: infiniband\n"


def read(tmp_path, text):
    path = tmp_path / "site.yaml"
    path.write_text(text)
    return read_site(path)


def test_file_is_read_whole(tmp_path):
    site = read(tmp_path, WHOLE)
    assert site.images == {"nvcr.io/": "mirror.example/nvcr/"}
    assert (site.queue, site.scheduler, site.nic_resource) == ("gpus", "gang", "rdma/ib")
    assert site.tolerations[0]["key"] == "team"
    assert site.env == {
        "HF_HOME": "/cache", "HTTPS_PROXY": "http://proxy:3128", "NCCL_DEBUG": "TRACE",
        "NO_PROXY": "10.0.0.0/8,.svc", "https_proxy": "http://proxy:3128",
        "no_proxy": "10.0.0.0/8,.svc",
    }  # fmt: skip


def test_no_file_is_the_site_that_changes_nothing():
    assert site_of(None) == NO_SITE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("que: gpus\n", "1:1: que is an unknown key; did you mean 'queue'?"),
        ("queue: gpus\nqueue: a\n", "2:1: key 'queue' stands twice, first in line 1"),
        ("imagePullSecrets: a\n", "1:19: imagePullSecrets must be a list, got 'a'"),
        ("tolerations: [{key: a, effect: Never}]\n", "tolerations[0].effect must be one of NoSch"),
        ("tolerations: [{operator: Equal}]\n", "tolerations[0] needs a key, or operator Exists"),
        ("images: {nvcr.io/: mirror}\n", "images maps 'nvcr.io/' to 'mirror'; both or neither"),
        ("labels: {cre.pytest.org/run: x}\n", "labels holds 'cre.pytest.org/run', which every"),
        ("proxy: {http: 5}\n", "1:15: proxy.http must be a text, got 5"),
        (
            "rdmaDeviceAccess: host\n",
            "1:19: rdmaDeviceAccess must be one of devicePlugin, hostPath",
        ),
        ("hostNetwork: 'yes'\n", "1:14: hostNetwork must be true or false, got 'yes'"),
        ("fabric: ib\n", "1:9: fabric must be one of infiniband, roce, efa, tcpxo, socket, nvlink"),
        ("env: {A-B: x}\n", "must be a variable's name such as NCCL_DEBUG"),
        ("", "1:1: the file holds nothing"),
    ],
)
def test_mistake_is_told_with_file_and_line(tmp_path, text, words):
    with pytest.raises(CatalogProblem) as caught:
        read(tmp_path, text)
    assert words in str(caught.value)
    assert "site.yaml:" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_longest_beginning_of_an_image_is_replaced():
    images = {"nvcr.io/": "m/", "nvcr.io/nvidia/": "n/"}
    assert mirrored("nvcr.io/nvidia/pytorch:1", images) == "n/pytorch:1"
    assert mirrored("nvcr.io/x:1", images) == "m/x:1"
    assert mirrored("docker.io/x", images) == "docker.io/x"


@pytest.mark.parametrize("kind", KINDS)
def test_pods_of_every_kind_are_fitted_to_the_site(bench, kind, tmp_path):  # noqa: F811
    site = read(tmp_path, WHOLE.replace("nvcr.io/", "example.com/"))
    plain, plan = rendered(bench, kind), rendered(bench, kind, site=site)
    top = plan.manifests[-1]["metadata"]
    assert top["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"
    assert {"cost-centre": "42"}.items() <= top["labels"].items()
    assert top["labels"]["cre.pytest.org/run"] == "run-1"
    assert top["annotations"] == {"owner": "me"}
    for template in all_templates(plan.manifests):
        spec = template["spec"]
        assert spec["serviceAccountName"] == "bench"
        assert (spec["priorityClassName"], spec["schedulerName"]) == ("high", "gang")
        assert spec["imagePullSecrets"] == [{"name": "regcred"}]
        assert spec["tolerations"][-1]["key"] == "team"
        assert template["metadata"]["labels"]["cost-centre"] == "42"
        container = spec["containers"][0]
        assert container["image"] == "mirror.example/nvcr/pytorch:1"
        env = {each["name"]: each["value"] for each in container["env"]}
        assert env["HTTPS_PROXY"] == "http://proxy:3128"
        assert env["NCCL_DEBUG"] == "INFO"  # the entry's own value stands
    assert len(all_templates(plan.manifests)) == len(all_templates(plain.manifests))


@pytest.mark.parametrize("kind", ["indexedJob", "jobSet", "trainJob"])
def test_pods_reach_the_network_in_the_way_of_the_site(bench, kind, tmp_path):  # noqa: F811
    site = read(tmp_path, REACH)
    wanted = override("nics", nic_resource="rdma/ib")
    plan = rendered(bench, kind, wanted, site=site, nics={"rdma/ib": 8})
    templates = [each for each in all_templates(plan.manifests) if gpu_containers(each)]
    assert templates
    for template in templates:
        spec, container = template["spec"], template["spec"]["containers"][0]
        assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
        path = {"path": "/dev/infiniband", "type": "Directory"}
        assert {"name": "rdma-devices", "hostPath": path} in spec["volumes"]
        mount = {"name": "rdma-devices", "mountPath": "/dev/infiniband"}
        assert mount in container["volumeMounts"]
        assert container["securityContext"] == {
            "privileged": True,
            "capabilities": {"add": ["IPC_LOCK"]},
        }
        assert "rdma/ib" not in container["resources"]["limits"]


def test_mpi_job_on_the_network_of_its_nodes_is_an_unmet_need(bench, tmp_path):  # noqa: F811
    with pytest.raises(UnmetNeed, match="an MPIJob cannot use the nodes' own network, for its SSH"):
        rendered(bench, "mpiJob", site=read(tmp_path, "hostNetwork: true\n"))


def test_mpi_job_opens_the_devices_of_its_nodes(bench, tmp_path):  # noqa: F811
    plan = rendered(bench, "mpiJob", site=read(tmp_path, "rdmaDeviceAccess: hostPath\n"))
    held = [
        (bool(gpu_containers(each)), "rdma-devices" in str(each["spec"]))
        for each in all_templates(plan.manifests)
    ]
    assert sorted(held) == [(False, False), (True, True)]


def test_pods_without_traffic_stay_as_they_are(bench, tmp_path):  # noqa: F811
    gemm = replace(bench, measures="gemm", test=None)
    plain = rendered(gemm, "indexedJob")
    plan = rendered(gemm, "indexedJob", site=read(tmp_path, REACH))
    assert plan.manifests == plain.manifests


@pytest.mark.parametrize(
    ("text", "fabrics"),
    [
        ("fabric: infiniband\n", ("infiniband",)),
        ("rdmaDeviceAccess: hostPath\n", ("infiniband", "roce")),
        ("rdmaDeviceAccess: hostPath\nfabric: roce\n", ("roce",)),
        ("hostNetwork: true\n", ()),
    ],
)
def test_traffic_must_take_the_fabric_that_the_site_has(node, tmp_path, text, fabrics):
    nodes = (node("a"), node("b"))
    ground = ground_of("onprem", None, {}, nodes=nodes, site=read(tmp_path, text))
    assert ground.fabrics(nodes, {}) == fabrics
    assert ground.fabrics(nodes[:1], {}) == ()


def test_labels_of_ours_cannot_be_taken_over(bench):  # noqa: F811
    plan = rendered(bench, "indexedJob")
    (service, job) = on_site(plan.manifests, Site(labels={"cre.pytest.org/run": "other"}))
    assert service["metadata"]["labels"]["cre.pytest.org/run"] == "run-1"
    assert job["metadata"]["labels"]["cre.pytest.org/run"] == "run-1"
