"""Scale `diagnose` on simulated racks: the broken node or path is found, and nothing else blamed."""

import re
import xml.etree.ElementTree as ET

import pytest

QUICK = "tableTime: 40ms\ninitTime: 20ms\npodStartTime: 20ms\n"
RACKS = (
    "extends: gb200-racks\n"
    + QUICK
    + "nodes:\n"
    + "".join(
        f"- {{name: 'n{rack}-{{index}}', count: 4, gpu: gb200, rack: r{rack}}}\n"
        for rack in range(4)
    )
)
SLOW_NODE = "links: [{match: {node: n2-1}, factor: 0.6}]\n"
SLOW_WAY = 'links: [{match: {node: "n0-*"}, to: {node: "n3-*"}, factor: 0.6}]\n'
DEAD_NODE = "faults: [{match: {node: n2-1}, action: crash, exitCode: 9, message: Xid 79}]\n"
LOST_LOG = "faults: [{match: {node: n2-1}, action: evict, times: 1, after: {size: 1M}}]\n"
CATEGORY = "- {{domain: communication, variant: nccl-{}, options: {{{}}}}}\n"
CERTIFICATION = (
    "apiVersion: nvcre.nvidia.com/v1alpha1\nkind: Certification\nmetadata: {name: racks}\n"
    'spec:\n  target: {nodeSelector: {nvidia.com/gpu.present: "true"}}\n  categories:\n'
    + "".join(
        "  " + CATEGORY.format(variant, options)
        for options_of in (
            ("testScale: intra-node, enableMNNVL: true", '{busBandwidthGBps: "value >= 680"}'),
            ("testScale: intra-rack, enableMNNVL: true", '{busBandwidthGBps: "value >= 900"}'),
            ("testScale: diagnose, maxConcurrent: 8", ""),
            ("testScale: full-scale, maxBytes: 32G, numIterations: 10, numCycles: 10", ""),
        )
        for variant, options in (
            ("all-reduce", ", thresholds: ".join(filter(None, options_of))),
            ("alltoall", options_of[0]),
        )
    )
)
SUITES = ("--pyargs", "pytest_cre.suites")
DIAGNOSE = ("-k", "nccl-all-reduce", "--cre-scale", "diagnose")


@pytest.fixture
def on(certify, tmp_path):
    (tmp_path / "cert.yaml").write_text(CERTIFICATION)

    def run(scenario, *arguments):
        (tmp_path / "scenario.yaml").write_text(scenario)
        given = ("--cre-scenario", "scenario.yaml", "--cre-evidence=evidence", *arguments)
        return certify(*SUITES, *given)

    return run


def states(item):
    return {each["node"]: each["state"] for each in item["diagnosis"]["nodes"]}


def properties(done):
    root = ET.parse(done.folder / "r.xml").getroot()
    return {each.get("name"): each.get("value") for each in root.iter("property")}


def test_slow_node_among_sixteen_is_found_and_named_everywhere(on, certify):
    done = on(RACKS + SLOW_NODE, "--cre-certification", "cert.yaml", "-k", "reduce and diagnose")

    (item,) = done.json()["items"]
    assert (done.code, item["code"]) == (1, "fail")
    assert {node for node, state in states(item).items() if state == "faulty"} == {"n2-1"}
    assert list(states(item).values()).count("healthy") == 15
    (failure,) = item["diagnosis"]["failed_nodes"]
    assert (failure["node"], failure["reason"]) == ("n2-1", "ThresholdViolation")
    assert all(group["failed_nodes"] == [] for group in item["groups"])
    assert "communication/nccl-all-reduce@diagnose: fail: faulty: n2-1 (workload" in done.output
    assert re.search(r"^bisection +2 +1 +1 +0 +0$", done.output, re.MULTILINE)
    assert properties(done)["cre.diagnosis.faulty"] == "1"
    assert properties(done)["cre.failed_node.n2-1.thresholdviolation"].startswith(
        "faulty (workload"
    )
    cases = {each.get("name"): each for each in ET.parse(done.folder / "m.xml").iter("testcase")}
    assert cases["node n2-1"].find("failure") is not None
    assert cases["node n0-0"].find("failure") is None
    assert certify.rejudged() == (done.folder / "r.json").read_text()


def test_slow_way_between_two_racks_and_a_dead_node_elsewhere_are_both_found(on, certify):
    done = on(RACKS + SLOW_WAY + DEAD_NODE, *DIAGNOSE)

    (item,) = done.json()["items"]
    assert (done.code, item["code"]) == (1, "fail")
    (failure,) = item["diagnosis"]["failed_nodes"]
    assert (failure["node"], failure["reason"]) == ("n2-1", "WorkloadFailed")
    (fault,) = item["diagnosis"]["infrastructure"]
    assert (fault["domains"], fault["cause"]) == (["r0", "r3"], "fabric")
    cut_off = {node for node, state in states(item).items() if state == "infrastructure"}
    assert cut_off == {f"n{rack}-{slot}" for rack in (0, 3) for slot in range(4)}
    assert list(states(item).values()).count("healthy") == 7
    assert "infrastructure: between r0 and r3 (fabric" in done.output
    assert certify.rejudged() == (done.folder / "r.json").read_text()


def test_lost_test_is_made_again_and_all_is_well(on, certify):
    done = on(RACKS + LOST_LOG, *DIAGNOSE)

    (item,) = done.json()["items"]
    assert (done.code, item["code"]) == (0, "pass")
    assert [group["attempt"] for group in item["groups"] if group["is_retried"]] == [0]
    assert set(states(item).values()) == {"healthy"}
    assert certify.rejudged() == (done.folder / "r.json").read_text()


def test_whole_certification_passes_on_healthy_racks(on, certify):
    done = on("extends: gb200-racks\n" + QUICK, "--cre-certification", "cert.yaml")

    assert (done.code, done.json()["result"]) == (0, "PASSED")
    assert len(done.json()["items"]) == 8
    diagnosed = [item for item in done.json()["items"] if item["scale"] == "diagnose"]
    assert [len(item["diagnosis"]["tests"]) for item in diagnosed] == [5, 5]
    assert {item["options"]["numIterations"] for item in diagnosed} == {"5"}
    assert certify.rejudged() == (done.folder / "r.json").read_text()


def test_whole_certification_names_the_slow_rack_and_its_nodes(on):
    slow = 'links: [{match: {node: "gb200-rack-2-*"}, factor: 0.6}]\n'
    done = on("extends: gb200-racks\n" + QUICK + slow, "--cre-certification", "cert.yaml", "-k", "all-reduce and (rack or diagnose)")  # fmt: skip

    items = {item["scale"]: item for item in done.json()["items"]}
    assert done.code == 1
    assert {group["group"]: group["code"] for group in items["intra-rack"]["groups"]} == {
        "group-0": "pass",
        "group-1": "fail",
    }
    found = items["diagnose"]["diagnosis"]["failed_nodes"]
    assert [each["node"] for each in found] == [f"gb200-rack-2-{slot}" for slot in range(4)]
