"""Catalog entries on genuine Kubernetes, compared with the embedded cluster."""

import json

import pytest

from pytest_cre.cluster.objects import CONFIG_MAP, JOB, POD, SERVICE
from tests.integration.running import SEED

PICK = ("-k", "nccl-all-reduce or nemotron5-8b")
IDS = ("nccl-all-reduce", "nccl-all-reduce@intra-node", "nemotron5-8b")


@pytest.fixture(scope="module")
def genuine(start_certifying):
    return start_certifying(*PICK).result()


@pytest.fixture(scope="module")
def embedded(start_run, scenario):
    local = ("--cre-cluster=embedded", f"--cre-scenario={scenario}")
    return start_run(*local, f"--cre-simulated-seed={SEED}", *PICK).result()


def test_entries_pass_with_complete_evidence_and_nothing_left_behind(genuine):
    assert genuine.code == 0, genuine.output
    assert [genuine.item(name)["code"] for name in IDS] == ["pass"] * 3
    assert genuine.report["result"] == "PASSED"
    assert genuine.report["leftovers"] == []
    reasons = [group["reasons"] for name in IDS for group in genuine.item(name)["groups"]]
    assert not any(reasons)


def test_report_says_that_the_hardware_was_simulated(genuine):
    assert genuine.report["is_simulated"]
    assert "simulated hardware, not a certification" in genuine.output


def test_server_says_the_version_that_was_built(plane, genuine):
    assert (
        genuine.report["cluster"]["server_version"]
        == plane.api.call("GET", "/version")["gitVersion"]
    )


def test_no_object_of_the_run_is_there_afterwards(admin, genuine):
    for kind in (CONFIG_MAP, JOB, POD, SERVICE):
        assert admin.list(kind, label_selector="cre.pytest.org/run").items == ()


def test_bandwidth_tables_equal_those_of_the_embedded_cluster(genuine, embedded):
    assert embedded.code == 0, embedded.output
    ours, theirs = (run.measured("nccl-all-reduce")["bandwidth"] for run in (embedded, genuine))
    assert len(theirs["tables"]) == 1
    # 8 bytes to 16 GiB in steps of 2, ten times
    assert len(theirs["tables"][0]["rows"]) == 320
    assert theirs["tables"][0]["complete"]
    assert theirs["tables"][0]["ranks"] == 16
    assert theirs == ours


def test_training_steps_equal_those_of_the_embedded_cluster(genuine, embedded):
    def figures(run):
        training = run.measured("nemotron5-8b", pod=1)["training"]
        return [
            {name: step[name] for name in ("step", "step_time_s", "tflops_per_gpu", "loss")}
            for step in training["steps"]
        ]

    assert [step["step"] for step in figures(genuine)] == [1, 10, 20, 30, 40, 50]
    assert figures(genuine) == figures(embedded)


def test_audit_log_holds_the_runs_requests_under_the_harness_account_only(plane, genuine):
    lines = [json.loads(line) for line in plane.audit_log.read_text().splitlines()]
    run = genuine.report["run_id"]
    created = {
        line["user"]["username"]
        for line in lines
        if line["verb"] == "create"
        and line["objectRef"].get("resource") in ("configmaps", "jobs", "services")
        and run in line["objectRef"].get("name", "")
    }
    assert created == {"system:serviceaccount:default:pytest-cre"}
