"""Names that Kubernetes would refuse are told when a file is read, wherever they may stand."""

import pytest

from pytest_cre.catalog.certification_file import read_certification
from pytest_cre.catalog.lint import lint_files
from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.errors import CatalogProblem

from .conftest import ARCHITECTURE, ENTRY

PLATFORM = """\
detect: [{providerId: "made://"}]
hardware: {h100: {fabric: roce}}
overrides:
  - name: one
    env: {A: b}
"""
SITE = "queue: gpu\nlabels: {team: a}\n"
IMAGE = "must be an image's name such as nvcr.io/nvidia/pytorch:26.01-py3, got "
LABEL = "must be a label's name such as team or example.org/team, got "
VALUE = "must be a label's value, at most 63 of A-Z a-z 0-9 and inner '-' '_' '.', got "
OBJECT = "must be an object's name of a-z, 0-9 and inner '-' '.', got "
DEVICES = "must be a resource's name such as rdma/ib, got "
IN_OVERRIDES = {
    "image: a b:1": f"5:12: overrides[0].image {IMAGE}'a b:1'",
    "resources: {rdma ib: 4}": "5:17: overrides[0].resources.rdma ib must be cpu, memory, ephem",
    "resources: {memory: 64 GB}": "5:25: resource memory must be a quantity such as 500m, 4 or 2Gi",
    "resources: {rdma/ib: 0.5}": "5:26: resource rdma/ib must be a whole number, got '0.5'",
    "resources: {rdma/ib: -4}": "5:26: resource rdma/ib must be a whole number, got '-4'",
    "resources: {memory: -1}": "5:25: resource memory must be nothing below 0, got '-1'",
    "nicResource: rdma/ ib": "5:18: nicResource must be a name such as rdma/ib, or auto",
    "annotations: {the contact: x}": f"5:19: overrides[0].annotations.the contact {LABEL}'the con",
    "labels: {a b: x}": f"5:14: overrides[0].labels.a b {LABEL}'a b'",
    "labels: {a: b c}": f"5:17: overrides[0].labels.a {VALUE}'b c'",
    "labels: {cre.pytest.org/run: x}": "5:13: overrides[0].labels holds 'cre.pytest.org/run', wh",
    "tolerations: [{key: my team, operator: Exists}]": f"overrides[0].tolerations[0].key {LABEL}",
    "tolerations: [{key: a, value: b c}]": f"overrides[0].tolerations[0].value {VALUE}'b c'",
}
IN_PLATFORMS = [
    ("{fabric: roce}", "{rackLabel: my rack}", f"hardware.h100.rackLabel {LABEL}'my rack'"),
    ('{providerId: "made://"}', "{labels: {a b: c}}", f"detect[0].labels.a b {LABEL}'a b'"),
    ('{providerId: "made://"}', "{labels: {a: b c}}", f"detect[0].labels.a {VALUE}'b c'"),
    (
        '{providerId: "made://"}',
        '{providerId: "x", resource: r}',
        f"detect[0].resource {DEVICES}'r'",
    ),
]
IN_SITES = {
    "labels: {team: the best}": f"1:16: labels.team {VALUE}'the best'",
    "labels: {the team: a}": f"1:10: labels.the team {LABEL}'the team'",
    "annotations: {the contact: a}": f"1:15: annotations.the contact {LABEL}'the contact'",
    "images: {nvcr.io/: 'https://mirror.example/'}": "1:20: images.nvcr.io/ must be the beginning of",
    "queue: gpu queue": f"1:8: queue {OBJECT}'gpu queue'",
    "serviceAccountName: Bench": f"1:21: serviceAccountName {OBJECT}'Bench'",
    "priorityClassName: very high": f"1:20: priorityClassName {OBJECT}'very high'",
    "imagePullSecrets: [a b]": f"1:20: imagePullSecrets[0] {OBJECT}'a b'",
    "queue: a\nnicResource: rdma hca": f"2:14: nicResource {DEVICES}'rdma hca'",
}
CERTIFICATION = """\
apiVersion: nvcre.nvidia.com/v1alpha1
kind: Certification
metadata: {name: mine}
spec:
  target: {}
  categories: [{domain: communication, variant: nccl-all-reduce}]
"""
IN_CERTIFICATIONS = [
    ("target: {}", "target: {nodeSelector: {a: b c}}", f"5:30: spec.target.nodeSelector.a {VALUE}"),
    (
        "target: {}",
        "target: {nodeNames: [Gpu_1]}",
        f"5:24: spec.target.nodeNames[0] {OBJECT}'Gpu_1'",
    ),
    ("spec:", "spec:\n  image: a b", f"5:10: spec.image {IMAGE}'a b'"),
    ("spec:", "spec:\n  nicResourceName: rdma", f"5:20: spec.nicResourceName {DEVICES}'rdma'"),
]
WORKLOAD = """\
apiVersion: nvcre.nvidia.com/v1alpha1
kind: WorkloadRun
metadata: {name: mine}
spec:
  image: example.org/bench:1
  framework: {exec: {command: [bench]}}
  numNodes: 1
  bandwidthMeasurement: {logProfileRef: nccl-bandwidth}
"""
IN_WORKLOADS = [
    ("bench:1", "ben ch:1", f"5:10: spec.image {IMAGE}'example.org/ben ch:1'"),
    (
        "numNodes: 1",
        "numNodes: 1\n  resources: {limits: {memory: 64 GB}}",
        "8:23: spec.resources.limits holds memory, which must be a quantity such as 500m, 4 or 2Gi",
    ),
    (
        "numNodes: 1",
        "numNodes: 1\n  resources: {limits: {rdma/ib: 0.5}}",
        "8:23: spec.resources.limits holds rdma/ib, which must be a whole number, got '0.5'",
    ),
]


def told(path):
    lines = lint_files([path]).lines
    assert all(len(line) < 300 for line in lines)
    return lines


@pytest.mark.parametrize("image", ["a b:1", "a:1 ", "https://a/b:1", "a/B:1", "a@sha256:1", "a:$b"])
def test_image_of_an_entry_that_no_kubelet_pulls_is_refused(folder, image):
    folder.entry(ENTRY.replace("example.org/bench:1", f'"{image}"'))
    assert folder.problem() == f"catalog/mine/bench.yaml:4:8: image {IMAGE}{image!r}"


@pytest.mark.parametrize("change", IN_OVERRIDES)
def test_name_in_an_override_is_refused(folder, change):
    path = folder.profiles / "platforms" / "made.yaml"
    path.parent.mkdir()
    path.write_text(PLATFORM)
    assert told(path) == ()
    path.write_text(PLATFORM.replace("env: {A: b}", change))
    assert any(IN_OVERRIDES[change] in line for line in told(path)), told(path)


@pytest.mark.parametrize(
    "change", ["labels: {a: '${job}-x'}", "image: 'example.org/${architecture}:1'"]
)
def test_text_that_a_run_fills_in_is_taken(folder, change):
    path = folder.profiles / "platforms" / "made.yaml"
    path.parent.mkdir()
    path.write_text(PLATFORM.replace("env: {A: b}", change))
    assert told(path) == ()


@pytest.mark.parametrize(("old", "new", "words"), IN_PLATFORMS)
def test_name_in_a_platform_is_refused(folder, old, new, words):
    path = folder.profiles / "platforms" / "made.yaml"
    path.parent.mkdir()
    path.write_text(PLATFORM.replace(old, new))
    assert words in told(path)[0]


@pytest.mark.parametrize("label", ["EXAMPLE X1", "nvidia.com/gpu.product=EXAMPLE-X1"])
def test_product_label_that_no_node_can_have_is_refused(folder, label):
    path = folder.architecture(ARCHITECTURE.replace("EXAMPLE-X1", label))
    assert told(path) == (
        f"profiles/architectures/x1.yaml:2:17: productLabels[0] {VALUE}{label!r}",
    )


@pytest.mark.parametrize("text", IN_SITES)
def test_name_in_a_site_file_is_refused(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    assert told(path) == ()
    path.write_text(text if "\n" in text or "queue" in text else f"{text}\nqueue: a\n")
    assert told(path)[0].startswith(f"site.yaml:{IN_SITES[text]}")


@pytest.mark.parametrize(
    ("kind", "document", "old", "new", "words"),
    [
        *(("Certification", CERTIFICATION, *each) for each in IN_CERTIFICATIONS),
        *(("WorkloadRun", WORKLOAD, *each) for each in IN_WORKLOADS),
    ],
)
def test_name_in_a_document_of_upstream_is_refused(
    tmp_path, monkeypatch, kind, document, old, new, words
):
    monkeypatch.chdir(tmp_path)
    catalog = load_catalog(suites=[shipped_suites()], profiles=[shipped_profiles()])
    path = tmp_path / "run.yaml"
    path.write_text(document)
    read_certification(path, catalog, kind)
    assert old in document
    path.write_text(document.replace(old, new, 1))
    with pytest.raises(CatalogProblem) as caught:
        read_certification(path, catalog, kind)
    assert str(caught.value).startswith(f"run.yaml:{words}")
