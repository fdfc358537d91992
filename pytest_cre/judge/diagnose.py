"""The verdict of a diagnosis: what is broken, and whether everything else is known to be well."""

from collections.abc import Mapping, Sequence

from pytest_cre.evidence.model import WorkflowEvidence
from pytest_cre.judge.missing import MissingLimit
from pytest_cre.judge.nodes import NodeFailure
from pytest_cre.judge.problems import Finding
from pytest_cre.judge.run import own_findings, worst
from pytest_cre.judge.verdict import Code, GroupVerdict, ItemVerdict
from pytest_cre.judge.words import nodes_words
from pytest_cre.plan.diagnose.course import replayed
from pytest_cre.plan.diagnose.model import Conclusion, InfrastructureFault, NodeFinding, Outcome
from pytest_cre.plan.wording import listed

TRIALS_SHOWN = 4
CAUSES = {
    "workload": "fails whatever joins it to others",
    "fabric": "its network",
    "nvlink": "its NVLink to other nodes",
}
DOUBTS = {
    "no-result": "a test that it took part in came to no result",
    "no-limit": "a limit was missed, and its own tests have none",
    "intermittent": "a group failed once, and neither again nor in its parts",
    "untested": "no good node was there to test it with",
}
_OUTCOMES: Mapping[Code, Outcome] = {"pass": "passed", "no-limit": "unjudged", "fail": "slow"}


def outcome_of(finding: Finding, verdict: GroupVerdict) -> Outcome:
    """Return what one attempt of a test came to; `verdict` must not fail for a missing limit."""
    if finding.code is not None:
        return "failed" if finding.code == "fail" else "undetermined"
    return _OUTCOMES.get(verdict.code, "undetermined")


def judge_diagnosis(
    evidence: WorkflowEvidence,
    groups: Sequence[GroupVerdict],
    outcomes: Mapping[str, Outcome],
    *,
    missing: MissingLimit,
) -> ItemVerdict:
    """Return the verdict of a diagnosis, gone through again from its tests' outcomes.

    A faulty node and a fault of the infrastructure fail it; a node of which nothing is known makes
    it inconclusive, or unmet where no test ever ran; a test without a limit, no-limit. So it is a
    pass only where every node has passed every test, each judged by a limit.
    """
    codes, reasons = own_findings(evidence, groups)
    if evidence.diagnosis is None:
        conclusion = None
        codes.append("inconclusive")
        reasons.append("the diagnosis was cut off: what it began with is not known")
    else:
        conclusion = replayed(evidence.diagnosis, outcomes)
        found = [*_broken_codes(conclusion), *_doubt_codes(conclusion, groups)]
        unjudged = [name for name, outcome in outcomes.items() if outcome == "unjudged"]
        words = [*faulty_words(conclusion), *fault_words(conclusion), *doubt_words(conclusion)]
        if unjudged:
            found.append("fail" if missing == "fail" else "no-limit")
            words.append(f"no limit applies to {len(unjudged)} tests: {listed(unjudged, 5)}")
        codes += found
        reasons = [*words, *reasons]
    codes += [each.code for each in groups if each.code == "error" and not each.is_retried]
    return ItemVerdict(
        entry=evidence.entry,
        scale=evidence.scale,
        code=worst(codes),
        groups=tuple(groups),
        reasons=tuple(dict.fromkeys(reasons)),
        diagnosis=conclusion,
    )


def faulty_nodes(conclusion: Conclusion) -> tuple[NodeFailure, ...]:
    """Return the faulty nodes, in the form in which other items name theirs."""
    return tuple(
        NodeFailure(
            node=each.node,
            reason="WorkloadFailed"
            if any(conclusion.outcomes.get(name) == "failed" for name in each.trials)
            else "ThresholdViolation",
            message=finding_words(each),
        )
        for each in conclusion.of("faulty")
    )


def finding_words(finding: NodeFinding) -> str:
    """Return why a node is not healthy: `faulty (fabric: its network); tests bisection-r2-0`."""
    reason = finding.reason or ""
    known = DOUBTS if finding.state == "undetermined" else CAUSES
    why = "" if finding.state == "infrastructure" else f": {known.get(reason, reason)}"
    shown = f"; {_tests(finding.trials)}" if finding.trials else ""
    return f"{finding.state} ({reason}{why}){shown}"


def faulty_words(conclusion: Conclusion) -> list[str]:
    """Return one line for each faulty node."""
    return [
        f"faulty: {each.node} ({each.reason}: {CAUSES[str(each.reason)]}; {_tests(each.trials)})"
        for each in conclusion.of("faulty")
    ]


def fault_words(conclusion: Conclusion) -> list[str]:
    """Return one line for each fault of the infrastructure."""
    return [
        f"infrastructure: {fault_place(each)} ({each.cause}; {_tests(each.trials)})"
        for each in conclusion.infrastructure
    ]


def fault_place(fault: InfrastructureFault) -> str:
    """Return where a fault is: `between rack-1 and rack-2`."""
    if fault.is_of_domains:
        if len(fault.domains) == 1:
            return f"{fault.domains[0]} as a whole"
        return f"between {' and '.join(fault.domains)}"
    inside = f" in {fault.domains[0]}" if len(fault.domains) == 1 else ""
    if not fault.others:
        return f"among {listed(fault.nodes, 5)}{inside}"
    return f"between {listed(fault.nodes, 5)} and {listed(fault.others, 5)}{inside}"


def doubt_words(conclusion: Conclusion) -> list[str]:
    """Return one line for each reason for which nodes are undetermined."""
    found: dict[str, list[str]] = {}
    for each in conclusion.of("undetermined"):
        found.setdefault(str(each.reason), []).append(each.node)
    return [
        f"undetermined: {nodes_words(len(nodes))}, {listed(nodes, 5)} ({reason}: {DOUBTS[reason]})"
        for reason, nodes in found.items()
    ]


def _tests(trials: Sequence[str]) -> str:
    """Return the tests that showed something, the last ones: they are about the fewest nodes."""
    return f"tests {listed(list(reversed(trials)), TRIALS_SHOWN)}"


def _broken_codes(conclusion: Conclusion) -> list[Code]:
    return ["fail"] if conclusion.of("faulty") or conclusion.infrastructure else []


def _doubt_codes(conclusion: Conclusion, groups: Sequence[GroupVerdict]) -> list[Code]:
    if not conclusion.of("undetermined"):
        return []
    never_ran = all(each.code == "unmet" for each in groups)
    return ["unmet" if groups and never_ran else "inconclusive"]
