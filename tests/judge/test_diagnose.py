"""The verdict of a diagnosis: what is broken fails it, what is not known never passes."""

from dataclasses import replace

import pytest

from pytest_cre.evidence.model import DiagnosisSetup, Problem, WorkflowEvidence
from pytest_cre.judge.diagnose import faulty_nodes, finding_words, judge_diagnosis, outcome_of
from pytest_cre.judge.nodes import node_failures
from pytest_cre.judge.problems import Finding
from pytest_cre.judge.run import judge_item
from pytest_cre.judge.verdict import GroupVerdict
from pytest_cre.plan.diagnose.course import Diagnosis

SETUP = DiagnosisSetup(
    domains={f"r{rack}n{slot}": f"rack-{rack}" for rack in (1, 2) for slot in range(4)}
)
CODES = {"passed": "pass", "unjudged": "no-limit", "undetermined": "inconclusive"}


def workflow(**changes):
    given = {"entry": "communication/x", "scale": "diagnose", "groups": (), "diagnosis": SETUP}
    return WorkflowEvidence(**(given | changes))


@pytest.fixture
def judged():
    """The verdict of a diagnosis whose tests come to what `outcome` says of their nodes."""

    def build(outcome, *, missing="skip", codes=CODES, **changes):
        diagnosis = Diagnosis(SETUP)
        outcomes = {}
        groups = []
        while diagnosis.conclusion is None:
            for trial in diagnosis.current:
                outcomes[trial.name] = outcome(trial)
                code = codes.get(outcomes[trial.name], "fail")
                groups.append(GroupVerdict(group=trial.name, nodes=trial.nodes, code=code))
                diagnosis.tell(trial.name, outcomes[trial.name])
        return judge_diagnosis(workflow(**changes), groups, outcomes, missing=missing)

    return build


def with_node(node, outcome):
    return lambda trial: outcome if node in trial.nodes else "passed"


def test_diagnosis_whose_every_test_passed_is_a_pass(judged):
    verdict = judged(lambda _: "passed")

    assert (verdict.code, verdict.reasons) == ("pass", ())
    assert len(verdict.diagnosis.of("healthy")) == 8


@pytest.mark.parametrize(
    ("outcome", "reason"), [("failed", "WorkloadFailed"), ("slow", "ThresholdViolation")]
)
def test_faulty_node_fails_it_and_is_named_with_its_reason(judged, outcome, reason):
    verdict = judged(with_node("r2n3", outcome))
    (failure,) = faulty_nodes(verdict.diagnosis)

    assert verdict.code == "fail"
    assert verdict.reasons[0].startswith(
        "faulty: r2n3 (workload: fails whatever joins it to others; tests confirmation-r5-0, "
    )
    assert (failure.node, failure.reason) == ("r2n3", reason)


def test_fault_between_racks_fails_it_and_names_both(judged):
    verdict = judged(
        lambda trial: "slow" if len({node[:2] for node in trial.nodes}) > 1 else "passed"
    )

    assert verdict.code == "fail"
    assert verdict.reasons[0].startswith("infrastructure: between rack-1 and rack-2 (fabric; tests")
    assert faulty_nodes(verdict.diagnosis) == ()
    assert finding_words(verdict.diagnosis.findings[0]).startswith("infrastructure (fabric); tests")


def test_undetermined_node_makes_it_inconclusive(judged):
    verdict = judged(
        lambda trial: "undetermined" if trial.name == "intra-screening-r1-0" else "passed"
    )

    assert verdict.code == "inconclusive"
    assert verdict.reasons == (
        "undetermined: 4 nodes, r1n0, r1n1, r1n2, r1n3 "
        "(no-result: a test that it took part in came to no result)",
    )


@pytest.mark.parametrize(
    ("missing", "code"), [("skip", "no-limit"), ("record", "no-limit"), ("fail", "fail")]
)
def test_test_without_a_limit_is_never_a_pass(judged, missing, code):
    verdict = judged(
        lambda trial: "unjudged" if trial.stage == "inter-screening" else "passed", missing=missing
    )

    assert verdict.code == code
    assert verdict.reasons == ("no limit applies to 1 tests: inter-screening-r2-0",)
    assert verdict.diagnosis.of("faulty") == ()


def test_diagnosis_of_which_nothing_ran_is_unmet(judged):
    verdict = judged(lambda _: "undetermined", codes={"undetermined": "unmet"})

    assert verdict.code == "unmet"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"leftovers": ("Job/a/b",)}, "error"),
        ({"problems": (Problem(code="interrupted", message="x was not run"),)}, "inconclusive"),
    ],
)
def test_what_befell_the_item_counts_besides(judged, changes, code):
    assert judged(lambda _: "passed", **changes).code == code


def test_test_in_error_is_an_error_of_the_item(judged):
    verdict = judged(
        lambda trial: "undetermined" if trial.name == "inter-screening-r2-0" else "passed",
        codes={"passed": "pass", "undetermined": "error"},
    )

    assert verdict.code == "error"


def test_diagnosis_that_was_cut_off_is_inconclusive_though_its_tests_passed():
    group = GroupVerdict(group="intra-screening-r1-0", nodes=("a", "b"), code="pass")
    verdict = judge_diagnosis(workflow(diagnosis=None), [group], {}, missing="skip")

    assert (verdict.code, verdict.diagnosis) == ("inconclusive", None)


def test_test_that_never_came_to_an_end_is_missing_and_not_taken_for_passed(judged):
    whole = judged(lambda _: "passed")
    verdict = judge_diagnosis(
        workflow(), whole.groups, {"intra-screening-r1-0": "passed"}, missing="skip"
    )

    assert verdict.code == "inconclusive"
    assert {each.node for each in verdict.diagnosis.of("undetermined")} >= {"r2n0", "r2n3"}


@pytest.mark.parametrize(
    ("finding", "code", "outcome"),
    [
        (None, "pass", "passed"),
        (None, "fail", "slow"),
        (None, "no-limit", "unjudged"),
        (None, "inconclusive", "undetermined"),  # a figure in doubt
        ("fail", "fail", "failed"),
        ("inconclusive", "inconclusive", "undetermined"),  # logs that cannot be had, no table
        ("unmet", "unmet", "undetermined"),
        ("error", "error", "undetermined"),
    ],
)
def test_outcome_of_a_test_tells_workload_limit_and_nothing_apart(finding, code, outcome):
    verdict = GroupVerdict(group="g", nodes=(), code=code)

    assert outcome_of(Finding(code=finding), verdict) == outcome


def test_test_of_a_diagnosis_blames_only_nodes_that_were_seen_to_fail(evidence):
    problems = (
        Problem(code="pod-failed", message="exit code 1", node="node-0"),
        Problem(code="hardware-failed", message="it is cordoned", node="node-1"),
    )
    verdict = GroupVerdict(group="group-0", nodes=("node-0", "node-1"), code="fail")
    group = evidence(problems=problems)

    blamed = [each.node for each in node_failures(verdict, replace(group, scale="diagnose"))]
    assert blamed == ["node-1"]
    assert len(node_failures(verdict, group)) == 2


def test_other_items_have_no_diagnosis():
    assert judge_item(workflow(scale="full-scale", diagnosis=None), []).diagnosis is None
