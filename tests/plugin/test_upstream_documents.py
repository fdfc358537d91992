"""Documents of upstream's, run as they are on simulated racks."""

import pytest

CERTIFICATION = """\
apiVersion: cre.nvidia.com/v1alpha1
kind: Certification
metadata: {name: gb200-cluster-validation}
spec:
  target: {nodeSelector: {nvidia.com/gpu.present: "true"}}
  numIterations: 2
  categories:
    - domain: communication
      variant: nccl-all-reduce
      options:
        testScale: intra-rack
        enableMNNVL: true
        thresholds: {busBandwidthGBps: "value >= 900"}
"""
SLOW_RACK = """\
extends: gb200-racks
links:
- match: {node: "gb200-rack-2-*"}
  factor: 0.6
"""
WORKLOAD = """\
apiVersion: nvcre.nvidia.com/v1alpha1
kind: WorkloadRun
metadata: {name: steps}
spec:
  image: example.org/megatron:1
  framework: {exec: {command: [sh, -c, "echo train"]}}
  numNodes: 2
  goodputMeasurement: {logProfileRef: megatron-training}
"""
SUITES = ("--pyargs", "pytest_cre.suites")


@pytest.fixture
def on_racks(certify, tmp_path):
    (tmp_path / "cert.yaml").write_text(CERTIFICATION)
    (tmp_path / "slow-rack.yaml").write_text(SLOW_RACK)
    (tmp_path / "run.yaml").write_text(WORKLOAD)

    def run(scenario, *arguments):
        return certify(*SUITES, "--cre-scenario", scenario, "--cre-evidence=evidence", *arguments)

    return run


def test_certification_on_healthy_racks_passes_by_its_own_threshold(on_racks, certify):
    done = on_racks("gb200-racks", "--cre-certification", "cert.yaml")

    (item,) = done.json()["items"]
    assert (done.code, done.json()["result"]) == (0, "PASSED")
    assert (
        item["node_id"]
        == "suites/test_communication.py::test_bandwidth[nccl-all-reduce@intra-rack]"
    )
    assert [group["checks"][0]["tier"] for group in item["groups"]] == ["given", "given"]
    assert item["options"]["numIterations"] == "2"
    assert certify.rejudged() == (done.folder / "r.json").read_text()


def test_certification_with_one_slow_rack_fails_and_names_the_group(on_racks, certify):
    done = on_racks("slow-rack.yaml", "--cre-certification", "cert.yaml")

    (item,) = done.json()["items"]
    assert (done.code, done.json()["result"]) == (1, "FAILED")
    assert {group["group"]: group["code"] for group in item["groups"]} == {
        "group-0": "pass",
        "group-1": "fail",
    }
    assert "group-1 (4 nodes: gb200-rack-2-0..3): busbw" in done.output
    assert certify.rejudged() == (done.folder / "r.json").read_text()


def test_workload_run_is_one_item_and_judged_by_what_it_measures(on_racks):
    done = on_racks("h100-2", "--cre-workload", "run.yaml")

    (item,) = done.json()["items"]
    assert item["node_id"] == "suites/test_custom.py::test_entry[steps]"
    assert item["code"] in ("inconclusive", "fail")  # `echo` prints no training step
    assert "no training step" in done.output


def test_certification_that_asks_for_what_we_cannot_do_ends_in_one_line(on_racks, tmp_path):
    bad = CERTIFICATION.replace("numIterations: 2", "saveTopK: 1")
    (tmp_path / "cert.yaml").write_text(bad)

    done = on_racks("gb200-racks", "--cre-certification", "cert.yaml")

    assert done.code == 4
    assert "cert.yaml:6:13: spec.saveTopK is not supported" in done.output
    assert "Traceback" not in done.output


def test_certification_and_workload_together_are_refused(on_racks):
    done = on_racks("h100-2", "--cre-certification=cert.yaml", "--cre-workload=run.yaml")

    assert done.code == 4
    assert "exclude each other" in done.output
