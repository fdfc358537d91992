import pytest

from pytest_cre.evidence.model import Exclusion, GroupEvidence, Problem, WorkflowEvidence
from pytest_cre.judge.run import judge_item, run_result, worst
from pytest_cre.judge.verdict import GroupVerdict, ItemVerdict

CORDONED = Exclusion(node="node-9", reason="cordoned", message="spec.unschedulable is true")


def workflow(**changes):
    return WorkflowEvidence(entry="training/x", scale="full-scale", groups=(), **changes)


def group(code, name="group-0"):
    return GroupVerdict(group=name, nodes=("node-0",), code=code)


def result(*codes, planned=None, excluded=(), accepted=(), missing="skip"):
    items = [ItemVerdict(entry="training/x", scale="full-scale", code=code) for code in codes]
    return run_result(
        items,
        planned=len(items) if planned is None else planned,
        excluded=excluded,
        accepted_exclusions=accepted,
        missing=missing,
    )


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["pass", "no-limit"], "no-limit"),
        (["no-limit", "unmet"], "unmet"),
        (["unmet", "inconclusive"], "inconclusive"),
        (["inconclusive", "fail"], "fail"),
        (["fail", "error"], "error"),
        (["pass", "pass"], "pass"),
    ],
)
def test_worst_code_of_groups_follows_the_order(codes, expected):
    assert worst(codes) == worst(reversed(codes)) == expected
    assert judge_item(workflow(), [group(code) for code in codes]).code == expected


def test_judge_item_leftovers_are_an_error_though_every_group_passed():
    verdict = judge_item(workflow(leftovers=("Job/default/cre-job",)), [group("pass")])

    assert verdict.code == "error"
    assert verdict.reasons == ("objects were left behind: Job/default/cre-job",)


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        ("api-error", "error"),
        ("interrupted", "inconclusive"),
        ("unschedulable", "unmet"),
        ("job-failed", "fail"),
        ("a-kind-not-known-yet", "inconclusive"),
    ],
)
def test_judge_item_own_problems_count_beside_the_groups(problem, code):
    evidence = workflow(problems=(Problem(code=problem, message="words", node="node-3"),))
    verdict = judge_item(evidence, [group("pass")])

    assert (verdict.code, verdict.reasons) == (code, ("node node-3: words",))


def test_judge_item_nothing_was_run_is_unmet_never_a_pass():
    assert judge_item(workflow(), []).code == "unmet"


def test_judge_item_group_without_a_verdict_is_an_error():
    planned = GroupEvidence(
        entry="training/x",
        scale="full-scale",
        group="group-1",
        attempt=0,
        nodes=("node-1",),
        gpus_per_node=8,
        ranks_planned=8,
        architecture=None,
        is_simulated=False,
        job=None,
    )
    evidence = WorkflowEvidence(entry="training/x", scale="full-scale", groups=(planned,))

    verdict = judge_item(evidence, [group("pass")])
    assert (verdict.code, verdict.reasons) == ("error", ("groups without a verdict: group-1",))


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["pass", "pass"], "PASSED"),
        (["pass", "not-applicable"], "PASSED"),
        (["not-applicable"], "INCOMPLETE"),
        (["no-limit", "pass"], "INCOMPLETE"),
        (["unmet", "pass"], "INCOMPLETE"),
        ([], "INCOMPLETE"),
        (["inconclusive", "pass"], "FAILED"),
        (["fail", "unmet"], "FAILED"),
        (["error", "fail"], "ERROR"),
    ],
)
def test_run_result_of_item_codes(codes, expected):
    assert result(*codes) == expected


def test_run_result_planned_item_that_never_ran_is_incomplete():
    assert result("pass", planned=2) == "INCOMPLETE"


def test_run_result_excluded_node_is_incomplete_unless_its_reason_is_accepted():
    assert result("pass", excluded=(CORDONED,)) == "INCOMPLETE"
    assert result("pass", excluded=(CORDONED,), accepted=("tainted",)) == "INCOMPLETE"
    assert result("pass", excluded=(CORDONED,), accepted=("cordoned",)) == "PASSED"


def test_run_result_recorded_figures_without_limit_do_not_make_it_incomplete():
    assert result("no-limit", "pass", missing="record") == "PASSED"
    assert result("no-limit", missing="record") == "INCOMPLETE"


def test_run_result_failure_outranks_what_was_not_tested():
    assert result("fail", planned=3, excluded=(CORDONED,)) == "FAILED"
