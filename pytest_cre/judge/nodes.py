"""Nodes that a group's verdict speaks against, each with a reason a fleet's software can sort by."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pytest_cre.catalog.entry import DIAGNOSE
from pytest_cre.evidence.model import GroupEvidence, Problem
from pytest_cre.judge.problems import LOG
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailure:
    """A node and why it is under suspicion. `message` is for a reader."""

    node: str
    reason: NodeReason
    message: str


def node_failures(verdict: GroupVerdict, evidence: GroupEvidence) -> tuple[NodeFailure, ...]:
    """Return the nodes that speak against a pass, sorted by node and reason, each pair once.

    A limit that was missed speaks against every node of its group: which one is slow cannot be
    told from a figure of them all. In a diagnosis a test speaks against a node only where the node
    itself was seen to fail, for the other tests tell. Lost pods, interrupts and API trouble speak against none.
    """
    if verdict.code not in ("fail", "inconclusive", "error"):
        return ()
    is_of_diagnosis = evidence.scale == DIAGNOSE
    found: dict[tuple[str, str], NodeFailure] = {}
    for problem in evidence.problems:
        reason = _REASONS.get(problem.code)
        if reason is not None and not (is_of_diagnosis and reason not in _OF_THE_NODE):
            for node in _nodes_of(problem, evidence):
                failure = NodeFailure(node=node, reason=reason, message=problem.message)
                found.setdefault((node, reason), failure)
    if not is_of_diagnosis and not found and any(check.code == "fail" for check in verdict.checks):
        message = next(iter(verdict.reasons), "")
        for node in evidence.nodes:
            found[node, "ThresholdViolation"] = NodeFailure(
                node=node, reason="ThresholdViolation", message=message
            )
    return tuple(found[key] for key in sorted(found))


def _nodes_of(problem: Problem, evidence: GroupEvidence) -> Iterable[str]:
    if problem.node is not None:
        return (problem.node,)
    return evidence.nodes if problem.code in _OF_THE_GROUP else ()
