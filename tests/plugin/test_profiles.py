"""Hardware profiles end to end: what does not apply, what is unmet, what real limits would say."""

from xml.etree import ElementTree

import pytest

SUITES = ("--pyargs", "pytest_cre.suites")
QUICK = "extends: {}\ntableTime: 100ms\ninitTime: 50ms\n"


@pytest.fixture
def on(certify, tmp_path):
    def run(scenario, *arguments, more=""):
        (tmp_path / "mine.yaml").write_text(QUICK.format(scenario) + more)
        return certify(*SUITES, "--cre-scenario=mine.yaml", *arguments)

    return run


def codes_of(done):
    return {item["entry"].partition("/")[2]: item["code"] for item in done.json()["items"]}


def test_entry_for_other_hardware_is_not_applicable_and_no_stain(on, tmp_path):
    done = on("l40s-4", "-k", "loopback or gemm")

    assert done.code == 0, done.output
    assert codes_of(done) == {
        "nccl-loopback": "pass",
        "nccl-loopback-nvswitch": "not-applicable",
        "gemm": "pass",
    }
    assert "certification PASSED: 1 not applicable, 2 passed" in done.output
    words = "communication/nccl-loopback-nvswitch needs NVLink between the GPUs of a node"
    skipped = [
        case.get("message")
        for case in ElementTree.parse(tmp_path / "r.xml").iter("skipped")
        if case.get("message")
    ]
    assert any(words in message for message in skipped)
    report = done.json()
    assert report["platform"] == {
        "name": "simulated",
        "settings": "simulated",
        "told_by": "no providerID, label cre.pytest.org/simulated=true",
    }
    assert report["warnings"] == []


def test_racks_run_inside_each_domain_by_its_own_limit(on):
    done = on("gb300-racks", "-k", "nccl-all-reduce", "--cre-scale=intra-rack")

    assert done.code == 0, done.output
    (item,) = done.json()["items"]
    assert [len(group["nodes"]) for group in item["groups"]] == [4, 4]
    assert {check["limit"] for group in item["groups"] for check in group["checks"]} == {875}


def test_published_limits_say_what_a_real_cluster_would_be_judged_by(on):
    # 364.9 GB/s at 4 GiB are published of four nodes with EFA; nothing is of their all-gather.
    done = on(
        "h200-4", "-k", "(all-reduce or all-gather) and not intra", "--cre-simulated-by=published"
    )

    assert done.code == 10, done.output
    assert codes_of(done) == {"nccl-all-reduce": "pass", "nccl-all-gather": "no-limit"}
    (item,) = [item for item in done.json()["items"] if item["code"] == "pass"]
    checks = {check["metric"]: check for check in item["groups"][0]["checks"]}
    assert (checks["busbw"]["limit"], checks["busbw"]["size_bytes"]) == (328.4, 4 << 30)
    assert {check["tier"] for check in checks.values()} == {"published"}
    assert "simulated hardware, not a certification" in done.output


def test_need_that_is_not_met_is_told_before_anything_runs(on):
    done = on("h100-2", "-k", "all-reduce or nemotron5-8b", more="hardware: {h100: {nics: 0}}\n")

    assert done.code == 10, done.output
    assert [(item["scale"], item["code"]) for item in done.json()["items"]] == [
        ("full-scale", "unmet"),
        ("intra-node", "pass"),
        ("full-scale", "unmet"),
    ]
    assert done.json()["items"][0]["text"].startswith(
        "communication/nccl-all-reduce needs NICs on each node: cre.pytest.org/nics is not "
        "allocatable on any of the 2 nodes; give the scenario's hardware nics"
    )
