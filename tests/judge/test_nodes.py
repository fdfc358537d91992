from dataclasses import replace

import pytest

from pytest_cre.evidence.model import Problem
from pytest_cre.judge.group import judge_group
from pytest_cre.judge.nodes import node_failures


def named(evidence, measurement, limits=()):
    verdict = judge_group(evidence, measurement, limits, missing="record")
    return [(each.node, each.reason) for each in node_failures(verdict, evidence)]


def test_hardware_that_failed_is_a_fail_whatever_else_happened(evidence, bandwidth, limit):
    problems = (
        Problem(code="pod-evicted", message="pod was evicted", pod="p", node="node-1"),
        Problem(code="hardware-failed", message="node node-1: 7 GPUs are left", node="node-1"),
    )
    run = evidence(problems=problems)

    verdict = judge_group(run, bandwidth(), [limit()], missing="skip")

    assert verdict.code == "fail"
    assert verdict.reasons[0] == "node node-1: 7 GPUs are left"
    assert [(each.node, each.reason) for each in node_failures(verdict, run)] == [
        ("node-1", "HardwareFailureDetected")
    ]


@pytest.mark.parametrize("code", ["node-changed", "health-unknown"])
def test_node_of_which_nobody_knows_enough_makes_the_group_inconclusive(
    evidence, bandwidth, limit, code
):
    run = evidence(problems=(Problem(code=code, message="node node-0: it was rebooted"),))

    verdict = judge_group(run, bandwidth(), [limit()], missing="skip")

    assert verdict.code == "inconclusive"
    assert node_failures(verdict, run) == ()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("job-failed", "WorkloadFailed"),
        ("node-unreachable", "NodeUnreachable"),
        ("log-unavailable", "LogUnavailable"),
    ],
)
def test_problem_of_one_node_is_told_of_that_node(evidence, bandwidth, code, reason):
    run = evidence(problems=(Problem(code=code, message="why", node="node-1"),), job=None)

    assert named(run, bandwidth()) == [("node-1", reason)]


@pytest.mark.parametrize(("code", "reason"), [("run-timeout", "TimedOut"), ("stalled", "Stalled")])
def test_hang_is_told_of_every_node_of_the_group(evidence, bandwidth, code, reason):
    run = evidence(problems=(Problem(code=code, message="why"),), job=None)

    assert named(run, bandwidth()) == [("node-0", reason), ("node-1", reason)]


def test_missed_limit_speaks_against_every_node_of_the_group(evidence, bandwidth, limit):
    run = evidence()
    verdict = judge_group(run, bandwidth(), [limit(value=9999)], missing="skip")

    found = node_failures(verdict, run)

    assert [(each.node, each.reason) for each in found] == [
        ("node-0", "ThresholdViolation"), ("node-1", "ThresholdViolation"),
    ]  # fmt: skip
    assert "9999" in found[0].message


def test_pass_speaks_against_no_node(evidence, bandwidth, limit):
    assert named(evidence(), bandwidth(), [limit()]) == []


@pytest.mark.parametrize("code", ["interrupted", "api-error", "pod-deleted", "vanished"])
def test_trouble_that_is_nobody_s_hardware_speaks_against_no_node(evidence, bandwidth, code):
    run = evidence(problems=(Problem(code=code, message="why", node="node-1"),), job=None)

    assert named(run, bandwidth()) == []


@pytest.fixture
def failed(evidence):
    """A Job of which both pods ended with exit code 1, and of which the first one is blamed."""
    pods = tuple(
        replace(pod, phase="Failed", exit_code=1, reason="Error", finished_ns=1)
        for pod in evidence().pods
    )
    first = pods[0]
    blamed = Problem(code="job-failed", message="why", node=first.node, pod=first.name)
    job = replace(evidence().job, terminal="failed")
    return evidence(pods=pods, problems=(blamed,), job=job)


def test_pods_that_failed_together_are_told_of_all_their_nodes(failed, bandwidth):
    assert named(failed, bandwidth()) == [
        ("node-0", "WorkloadFailed"), ("node-1", "WorkloadFailed"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("speaks", "nodes"), [(("node-0",), ["node-1"]), (("node-0", "node-1"), [])]
)
def test_pod_that_lost_its_peer_is_not_told_of_its_node(failed, bandwidth, speaks, nodes):
    lost = b"ncclRemoteError: connection to a pod closed by remote peer\n"
    logs = tuple(
        replace(log, data=lost) if pod.node in speaks else log
        for log, pod in zip(failed.logs, failed.pods, strict=True)
    )

    assert named(replace(failed, logs=logs), bandwidth()) == [
        (node, "WorkloadFailed") for node in nodes
    ]


@pytest.mark.parametrize(
    ("exit_code", "reasons"),
    [(143, []), (137, []), (0, ["LogUnavailable"]), (3, ["LogUnavailable", "WorkloadFailed"])],
)
def test_log_of_a_pod_that_a_failed_job_ended_speaks_against_no_node(
    failed, bandwidth, exit_code, reasons
):
    first, other = failed.pods
    other = replace(other, exit_code=exit_code, phase="Failed" if exit_code else "Succeeded")
    lost = Problem(code="log-unavailable", message="gone", node=other.node, pod=other.name)
    run = replace(failed, pods=(first, other), problems=(*failed.problems, lost))

    assert named(run, bandwidth()) == [
        (first.node, "WorkloadFailed"), *((other.node, reason) for reason in reasons),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("end", "told"),
    [
        pytest.param(
            {"phase": "Running", "exit_code": None, "finished_ns": None}, b"", id="unseen"
        ),
        pytest.param({}, b"ncclRemoteError: a pod is away\n", id="left-alone"),
        pytest.param({"finished_ns": 5_000_000_000}, b"", id="late"),
    ],
)
def test_log_of_a_pod_that_went_down_with_another_speaks_against_no_node(
    failed, bandwidth, end, told
):
    first, other = failed.pods
    other = replace(other, **end)
    logs = tuple(
        replace(log, data=told, is_complete=False) if log.pod == other.name else log
        for log in failed.logs
    )
    cut = Problem(code="log-incomplete", message="it is gone", node=other.node, pod=other.name)
    run = replace(failed, pods=(first, other), logs=logs, problems=(*failed.problems, cut))

    assert named(run, bandwidth()) == [(first.node, "WorkloadFailed")]


@pytest.mark.parametrize("code", ["pod-evicted", "node-changed"])
def test_loss_explains_the_pod_that_failed_after_it(failed, bandwidth, code):
    loss = Problem(code=code, message="it is gone", node="node-1")
    verdict = judge_group(
        replace(failed, problems=(*failed.problems, loss)), bandwidth(), (), missing="record"
    )

    assert verdict.code == "inconclusive"
    assert named(replace(failed, problems=(*failed.problems, loss)), bandwidth()) == []


def test_attempt_that_was_made_again_speaks_against_no_node(evidence, bandwidth):
    run = evidence(problems=(Problem(code="node-unreachable", message="why", node="node-1"),))
    verdict = judge_group(run, bandwidth(), (), missing="record")

    assert len(node_failures(verdict, run)) == 1
    assert node_failures(replace(verdict, is_retried=True), run) == ()


def test_job_that_failed_without_a_failed_pod_is_told_of_no_limit_that_was_missed(
    evidence, bandwidth, limit
):
    job = replace(evidence().job, terminal="failed")
    run = evidence(job=job, problems=(Problem(code="job-failed", message="why"),))

    assert named(run, bandwidth(), [limit()]) == []
