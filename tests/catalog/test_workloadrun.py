"""Upstream's WorkloadRun as an entry of one run."""

import pytest

from pytest_cre.catalog.certification_file import certification_of
from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.errors import CatalogProblem
from pytest_cre.evidence.model import NodeFacts
from pytest_cre.plan.preview import preview

MPI = """\
apiVersion: nvcre.nvidia.com/v1alpha1
kind: WorkloadRun
metadata: {name: my-nccl}
spec:
  image: example.org/nccl:1
  framework:
    mpi:
      mpirunPath: /usr/local/mpi/bin/mpirun
      binary: /usr/local/bin/all_reduce_perf_mpi
      args: ["-b", 8, "-e", 32G]
  numNodes: 4
  bandwidthMeasurement: {logProfileRef: nccl-bandwidth, testType: all_reduce}
  thresholds: {busBandwidthGBps: "value >= 300"}
"""
TORCH = """\
apiVersion: nvcre.nvidia.com/v1alpha1
kind: WorkloadRun
metadata: {name: my-training}
spec:
  image: example.org/train:1
  framework: {torch: {script: /opt/train.py, args: ["--name", "a${b}$(HOSTNAME)$$"]}}
  numNodes: 2
  env: [{name: KEY, value: "${not} filled in"}]
  config: {inline: {train.conf: "x = ${y}"}}
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
  volumeMounts: [{name: data, mountPath: /data}]
  resources: {limits: {memory: 800Gi}}
  enableMNNVL: false
  goodputMeasurement: {logProfileRef: megatron-training, sampleInterval: 10s}
"""


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(suites=(shipped_suites(),), profiles=(shipped_profiles(),))


@pytest.fixture
def read(catalog):
    return lambda text: certification_of(text, "run.yaml", catalog, "WorkloadRun")


@pytest.fixture
def job(read, catalog):
    """Return the objects of the workload on two H100 nodes."""
    found = read(TORCH)
    applied = found.applied(catalog)
    plan, _ = preview(
        applied.entries["workload/my-training"],
        platform="onprem",
        architecture=applied.architectures["h100"],
        platforms=applied.platforms,
        nodes=tuple(
            NodeFacts(name=f"n{index}", uid=f"u{index}", labels={}, gpus_allocatable=8,
                      is_ready=True, is_cordoned=False)
            for index in range(2)
        ),
        scripts={},
    )  # fmt: skip
    return plan.groups[0].manifests


def test_mpi_workload_is_an_entry_of_kind_mpi_job(read):
    found = read(MPI)
    (entry,) = found.entries
    command = entry.workloads["mpiJob"]

    assert (entry.name, list(entry.workloads)) == ("workload/my-nccl", ["mpiJob"])
    assert (entry.measures, entry.test, entry.log_profile) == (
        "bandwidth",
        "all_reduce",
        "nccl-bandwidth",
    )
    assert command.command == ("/usr/local/mpi/bin/mpirun",)
    assert command.args[-5:] == ("/usr/local/bin/all_reduce_perf_mpi", "-b", "8", "-e", "32G")
    assert "--allow-run-as-root" in command.args


def test_num_nodes_is_the_exact_size_of_a_group(read):
    (category,) = read(MPI).categories

    assert [category.group_size(nodes) for nodes in (8, 4, 2)] == [4, 4, 4]


def test_thresholds_of_a_workload_are_given_limits(read, catalog):
    (limit,) = read(MPI).applied(catalog).entries["workload/my-nccl"].limits

    assert (limit.tier, limit.metric, limit.value) == ("given", "busbw", 300)


def test_texts_of_the_document_reach_the_pod_as_they_are(job):
    config, *_, workload = job
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    env = {each["name"]: each["value"] for each in container["env"]}

    assert container["args"][-3:] == ["/opt/train.py", "--name", "a${b}$(HOSTNAME)$$"]
    assert env["KEY"] == "${not} filled in"
    assert env["NCCL_MNNVL_ENABLE"] == "0"
    assert config["data"] == {"train.conf": "x = ${y}"}


def test_config_and_volumes_are_mounted_beside_what_every_pod_has(job):
    config, *_, workload = job
    pod = workload["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert {each["mountPath"] for each in container["volumeMounts"]} >= {
        *("/dev/shm", "/config", "/data"),
    }
    (volume,) = (each for each in pod["volumes"] if each["name"] == "config")
    assert volume["configMap"]["name"] == config["metadata"]["name"]


def test_resources_of_a_workload_stand_beside_its_gpus(job):
    limits = job[-1]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]

    assert (limits["memory"], limits["nvidia.com/gpu"]) == ("800Gi", "8")


def test_sample_interval_is_told_to_have_no_effect(read):
    (note,) = read(TORCH).notes

    assert "sampleInterval has no effect" in note


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("numNodes: 4", "numNodes: 4\n  checkpoint: {storageSize: 1Ti}", "checkpoint is not supported"),
        ("numNodes: 4", "numNodes: 4\n  mlnxPerNode: 2", "mlnxPerNode is not supported"),
        ("numNodes: 4", "numNodes: 4\n  overrides: [{}]", "overrides is not supported"),
        ("numNodes: 4", "numNodes: 4\n  nodes: 4", "nodes is an unknown key"),
        ("numNodes: 4", "numNodes: 4\n  env: [{name: A, valueFrom: {}}]", "valueFrom is not supported"),
        ("numNodes: 4", "numNodes: 4\n  env: [{name: A}, {name: A}]", "holds A twice"),
        ("numNodes: 4", "numNodes: 4\n  resources: {limits: {nvidia.com/gpu: 1}}", "gpusPerNode sets"),
        ("  mpi:", "  exec: {command: [a]}\n    mpi:", "must hold one of torch, mpi, exec"),
        ("logProfileRef: nccl-bandwidth", "logProfileRef: nccl-band", "'nccl-band' is unknown"),
        ("logProfileRef: nccl-bandwidth", "logProfileRef: megatron-training", "reads training"),
        ("bandwidthMeasurement", "goodputMeasurement", "reads bandwidth, goodputMeasurement wants"),
        (
            "  bandwidthMeasurement: {logProfileRef: nccl-bandwidth, testType: all_reduce}\n",
            "",
            "what is not measured cannot be judged",
        ),
        ("busBandwidthGBps", "avgStepTimeSec", "nothing gives avgStepTimeSec"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_in_one_line_with_its_place(read, old, new, words):
    with pytest.raises(CatalogProblem) as raised:
        read(MPI.replace(old, new))

    assert str(raised.value).startswith("run.yaml:")
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_fields_that_are_not_supported_are_all_named_at_once(read):
    with pytest.raises(CatalogProblem) as raised:
        read(MPI + "  overrides: [x]\n  checkpoint: {}\n")
    assert str(raised.value) == (
        "run.yaml:14:14: spec.overrides, spec.checkpoint (15:15) are not supported; take them out, "
        "or run this in another way"
    )
