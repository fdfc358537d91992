"""Nodes that a group's verdict speaks against, each with a reason a fleet's software can sort by."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pytest_cre.catalog.entry import DIAGNOSE
from pytest_cre.evidence.blame import failed_on_their_own, failed_pods
from pytest_cre.evidence.model import GroupEvidence, Problem
from pytest_cre.judge.problems import LOG, LOST, pod_words
from pytest_cre.judge.verdict import GroupVerdict

NodeReason = Literal[
    "HardwareFailureDetected",
    "WorkloadFailed",
    "Stalled",
    "TimedOut",
    "NodeUnreachable",
    "LogUnavailable",
    "ThresholdViolation",
]
_REASONS: Mapping[str, NodeReason] = {
    "hardware-failed": "HardwareFailureDetected",
    "job-failed": "WorkloadFailed",
    "pod-failed": "WorkloadFailed",
    "stalled": "Stalled",
    "run-timeout": "TimedOut",
    "node-unreachable": "NodeUnreachable",
    **dict.fromkeys(LOG, "LogUnavailable"),
}
_OF_THE_NODE = frozenset({"HardwareFailureDetected", "NodeUnreachable"})
_OF_THE_GROUP = frozenset({"stalled", "run-timeout"})  # nobody knows which of its nodes it was
_OF_PODS = frozenset({"job-failed", "pod-failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailure:
    """A node and why it is under suspicion. `message` is for a reader."""

    node: str
    reason: NodeReason
    message: str


def node_failures(verdict: GroupVerdict, evidence: GroupEvidence) -> tuple[NodeFailure, ...]:
    """Return the nodes that speak against a pass, sorted by node and reason, each pair once.

    A limit that was missed speaks against every node of its group: which one is slow cannot be
    told from a figure of them all. A workload that failed speaks against the nodes of the pods that
    failed by themselves, and against none where nobody can tell which did. In a diagnosis a test
    speaks against a node only where the node itself was seen to fail, for the other tests tell.
    Lost pods, interrupts and API trouble speak against none, and a loss explains whatever failed
    after it and which logs ended early. A Job that failed ends its other pods and takes their logs
    along: what these lack speaks against no node.
    Nor does an attempt that was made again speak against any.
    """
    if verdict.is_retried or verdict.code not in ("fail", "inconclusive", "error"):
        return ()
    is_of_diagnosis = evidence.scale == DIAGNOSE
    codes = {each.code for each in evidence.problems}
    only_of_nodes = is_of_diagnosis or not LOST.isdisjoint(codes)
    has_failed = not _OF_PODS.isdisjoint(codes)
    ended = _ended_by_the_failure(evidence) if has_failed else frozenset()
    found: dict[tuple[str, str], NodeFailure] = {}
    for problem in evidence.problems:
        reason = _REASONS.get(problem.code)
        if reason == "LogUnavailable" and problem.pod in ended:
            continue
        if reason is not None and not (only_of_nodes and reason not in _OF_THE_NODE):
            for node, message in _spoken_against(problem, evidence):
                failure = NodeFailure(node=node, reason=reason, message=message)
                found.setdefault((node, reason), failure)
    missed = any(check.code == "fail" for check in verdict.checks)
    if missed and not (is_of_diagnosis or has_failed or found):
        message = next(iter(verdict.reasons), "")
        for node in evidence.nodes:
            found[node, "ThresholdViolation"] = NodeFailure(
                node=node, reason="ThresholdViolation", message=message
            )
    return tuple(found[key] for key in sorted(found))


def _ended_by_the_failure(evidence: GroupEvidence) -> frozenset[str]:
    """Return the names of pods that went down with those that failed by themselves.

    Also those of which no end was ever seen: they were deleted while they ran.
    """
    own = {pod.name for pod in failed_on_their_own(evidence.last_pods, evidence.logs)}
    return frozenset(
        pod.name for pod in evidence.pods if pod.phase != "Succeeded" and pod.name not in own
    )


def _spoken_against(problem: Problem, evidence: GroupEvidence) -> Iterable[tuple[str, str]]:
    """Return the nodes that a problem speaks against, each with why."""
    if problem.code in _OF_PODS and len(evidence.nodes) == 1:
        return ((evidence.nodes[0], problem.message),)
    if problem.code in _OF_PODS and failed_pods(evidence.last_pods):
        own = failed_on_their_own(evidence.last_pods, evidence.logs)
        return [
            (pod.node, problem.message if pod.name == problem.pod else pod_words(pod))
            for pod in own
            if pod.node is not None
        ]
    if problem.node is not None:
        return ((problem.node, problem.message),)
    nodes = evidence.nodes if problem.code in _OF_THE_GROUP else ()
    return [(node, problem.message) for node in nodes]
