"""A diagnosis as part of an item's report: its tests by stage, and what each node turned out to be."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_cre.judge.diagnose import faulty_nodes
from pytest_cre.judge.nodes import NodeFailure
from pytest_cre.judge.verdict import Code
from pytest_cre.plan.diagnose.model import (
    Conclusion,
    InfrastructureFault,
    NodeFinding,
    Outcome,
    State,
)

STATE_CODES: Mapping[State, Code] = {
    "healthy": "pass",
    "faulty": "fail",
    "infrastructure": "fail",
    "undetermined": "inconclusive",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TestReport:
    """One test of a diagnosis; `group` is the item's group of that name, with nodes and figures."""

    __test__ = False

    group: str
    stage: str
    round: int
    outcome: Outcome
    without_nvlink: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisReport:
    """What was tested and what came of it. Every node is in `nodes` once, by name."""

    rounds: int
    tests: tuple[TestReport, ...]
    nodes: tuple[NodeFinding, ...]
    infrastructure: tuple[InfrastructureFault, ...] = ()
    failed_nodes: tuple[NodeFailure, ...] = ()

    def count(self, state: State) -> int:
        """Return how many nodes are in a state."""
        return sum(each.state == state for each in self.nodes)

    def stage_rows(self) -> list[list[str]]:
        """Return stage, tests, passed, failed, without a limit, without a result."""
        rows = []
        for stage in dict.fromkeys(each.stage for each in self.tests):
            found = Counter(each.outcome for each in self.tests if each.stage == stage)
            numbers = (
                found.total(),
                found["passed"],
                found["failed"] + found["slow"],
                found["unjudged"],
                found["undetermined"],
            )
            rows.append([stage, *map(str, numbers)])
        return rows


def diagnosis_report(conclusion: Conclusion, groups: Collection[str]) -> DiagnosisReport:
    """Return the report of a diagnosis; `groups` are the tests that were run."""
    return DiagnosisReport(
        rounds=max((each.round for each in conclusion.trials if each.name in groups), default=0),
        tests=tuple(
            TestReport(
                group=each.name,
                stage=each.stage,
                round=each.round,
                outcome=conclusion.outcomes[each.name],
                without_nvlink=each.without_nvlink,
            )
            for each in conclusion.trials
            if each.name in groups
        ),
        nodes=conclusion.findings,
        infrastructure=conclusion.infrastructure,
        failed_nodes=faulty_nodes(conclusion),
    )


def diagnosis_from(given: Mapping[str, Any]) -> DiagnosisReport:
    """Return the report of a diagnosis that was written as plain JSON types."""
    return DiagnosisReport(
        rounds=given["rounds"],
        tests=tuple(TestReport(**each) for each in given["tests"]),
        nodes=tuple(NodeFinding(**_tuples(each, ("trials",))) for each in given["nodes"]),
        infrastructure=tuple(
            InfrastructureFault(**_tuples(each, ("domains", "nodes", "others", "trials")))
            for each in given["infrastructure"]
        ),
        failed_nodes=tuple(NodeFailure(**each) for each in given["failed_nodes"]),
    )


def _tuples(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {**given, **{name: tuple(given[name]) for name in names}}
