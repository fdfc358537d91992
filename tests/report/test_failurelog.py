"""Whose log tells a failure, in every file."""

import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from pytest_cre.evidence.model import LogStream, PodFacts, Problem
from pytest_cre.judge.problems import suspects
from pytest_cre.report.failurelog import failure_log
from pytest_cre.report.json import render_json
from pytest_cre.report.junit import case_properties
from pytest_cre.report.metrics_junit import render_metrics_junit
from pytest_cre.report.model import ItemReport, item_report


def pod(index, *, exit_code=1, reason="Error", finished_ns=1):
    return PodFacts(
        name=f"pod-{index}",
        uid=f"u{index}",
        node=f"node-{index}",
        completion_index=index,
        attempt=0,
        phase="Failed" if exit_code else "Succeeded",
        reason=reason,
        exit_code=exit_code,
        finished_ns=finished_ns,
    )


def log(index, data=None, **changes):
    data = f"log of {index}\n".encode() if data is None else data
    return LogStream(pod=f"pod-{index}", data=data, completion_index=index, **changes)


@pytest.fixture
def seen(check, group, item, evidence):
    def build(*, pods=(), logs=(), problems=()):
        (given,) = evidence(item(group(check(1.0)))).groups
        return replace(given, pods=tuple(pods), logs=tuple(logs), problems=tuple(problems))

    return build


def test_failure_log_is_of_the_pod_killed_for_memory(seen):
    pods = [
        pod(0, finished_ns=1),
        pod(1, exit_code=137, reason="OOMKilled", finished_ns=9),
        pod(2, finished_ns=2),
    ]
    found = failure_log(seen(pods=pods, logs=[log(0), log(1), log(2)]))
    assert (found.pod, found.node, found.exit_code) == ("pod-1", "node-1", 137)
    assert (found.reason, found.text) == ("OOMKilled", "log of 1\n")


def test_failure_log_is_of_the_first_exit_in_time(seen):
    pods = [pod(0, finished_ns=5), pod(1, exit_code=2, finished_ns=3), pod(2, exit_code=143)]
    found = failure_log(seen(pods=pods, logs=[log(0), log(1), log(2)]))
    assert (found.pod, found.exit_code) == ("pod-1", 2)


def test_failure_log_of_a_pod_without_a_log_is_empty_not_another_ones(seen):
    found = failure_log(seen(pods=[pod(0, exit_code=0), pod(1)], logs=[log(0), log(1, b"")]))
    assert (found.pod, found.text) == ("pod-1", "")


def test_failure_log_is_of_the_newest_container_that_wrote(seen):
    logs = [log(1, b"first\n"), log(1, b"second\n", restart_count=1), log(1, b"", restart_count=2)]
    assert failure_log(seen(pods=[pod(1)], logs=logs)).text == "second\n"


def test_failure_log_of_a_run_that_took_too_long_is_the_first_ranks(seen):
    problems = [Problem(code="run-timeout", message="took longer than 60 s")]
    pods = [pod(0, exit_code=143, finished_ns=9), pod(1, exit_code=137, finished_ns=1)]
    found = failure_log(seen(pods=pods, logs=[log(1), log(0)], problems=problems))
    assert (found.pod, found.exit_code, found.text) == ("pod-0", 143, "log of 0\n")


def test_failure_log_where_no_pod_ran_is_none(seen):
    assert failure_log(seen()) is None


def test_failure_log_of_a_diagnostic_is_the_cause_not_the_document(seen):
    tests = [{"name": f"test {number}", "status": "Pass"} for number in range(200)]
    tests[77]["status"] = "Fail"
    data = json.dumps({"tests": tests}, indent=1).encode() + b"\n"
    found = failure_log(seen(pods=[pod(0)], logs=[log(0, data)]))
    assert found.text == 'test 77: {"name": "test 77", "status": "Fail"}\n'


def failed_item(check, group, item, evidence, data=b"NCCL \x1b[31mWARN\x07\nHF_TOKEN=abcdef123\n"):
    verdict = item(group(check(371.4), reasons=["slow"]))
    given = evidence(verdict)
    (seen_group,) = given.groups
    seen_group = replace(
        seen_group, pods=(pod(0, exit_code=137, reason="OOMKilled"),), logs=(log(0, data),)
    )
    return item_report(
        verdict, replace(given, groups=(seen_group,)), node_id="x::y", duration_s=1.0
    )


def test_failure_log_is_the_same_in_json_and_junit_clean_and_without_credentials(
    check, group, item, evidence, run
):
    told = failed_item(check, group, item, evidence)
    report = run(told, result="FAILED")

    ((in_json,),) = ([group["failure_log"] for group in each["groups"]]
                     for each in json.loads(render_json(report))["items"])  # fmt: skip
    (error_output,) = ET.fromstring(render_metrics_junit(report)).iter("system-err")

    assert in_json == {
        "pod": "pod-0",
        "node": "node-0",
        "exit_code": 137,
        "reason": "OOMKilled",
        "text": "NCCL WARN\\x07\nHF_TOKEN=(not kept)\n",
    }
    assert error_output.text == (
        "log of pod pod-0 on node node-0, exit code 137 (OOMKilled):\n" + in_json["text"]
    )
    properties = dict(case_properties(told))
    assert properties["cre.failure_log.pod"] == "pod-0"
    assert properties["cre.failure_log.node"] == "node-0"
    assert properties["cre.failure_log.exit_code"] == "137"
    assert properties["cre.failure_log.reason"] == "OOMKilled"


def test_failure_log_crosses_a_process_unchanged(check, group, item, evidence):
    told = failed_item(check, group, item, evidence)
    assert ItemReport.from_dict(told.to_dict()) == told


def test_group_that_passed_or_never_ran_has_no_failure_log(check, group, item, evidence):
    for verdict in (item(group(check(412.0))), item(group(code="unmet", reasons=["no room"]))):
        told = item_report(verdict, evidence(verdict), node_id="x", duration_s=1.0)
        assert [each.failure_log for each in told.groups] == [None]


def test_cause_is_the_pod_that_failed_by_itself_not_its_peer_that_was_seen_first(seen):
    pods = [pod(0, finished_ns=1), pod(1, exit_code=9, finished_ns=2)]
    logs = [log(0, b"NCCL WARN ncclRemoteError: remote process exited\n"), log(1)]
    first = Problem(code="pod-failed", message="pod pod-0 failed", pod="pod-0", node="node-0")
    evidence = seen(pods=pods, logs=logs, problems=[first])
    assert [each.name for each in suspects(evidence)] == ["pod-1", "pod-0"]
    assert failure_log(evidence).pod == "pod-1"
