"""An attempt that was lost may be made again: which may, what the item comes to, what is told."""

from dataclasses import replace

import pytest

from pytest_cre.assessment import Assessor
from pytest_cre.catalog.entry import Repeat
from pytest_cre.catalog.loader import Catalog
from pytest_cre.evidence.model import JobFacts, Problem, WorkflowEvidence
from pytest_cre.judge.retries import retried

GIB = 1 << 30
FAILED = JobFacts(kind="Job", name="cre-job", uid="u-1", terminal="failed")
LOST = Problem(code="node-unreachable", message="node node-1: it is no longer in the cluster")


@pytest.fixture
def tried(evidence, bandwidth, table, row, entry, limit, monkeypatch):
    """Judge attempts by a limit of 365 GB/s: a bandwidth, or the problems that an attempt ended with."""

    def judge(*attempts, retries=1, repeat=None, iterations=1, job=None, wrong=(0, 0)):
        catalog = Catalog(
            entries={
                entry().name: entry(retries=retries, repeat=repeat, limits=(limit(value=365.0),))
            }
        )
        groups, measured = [], {}
        for number, each in enumerate(attempts):
            is_figure = isinstance(each, float)
            group = evidence(attempt=number, problems=() if is_figure else tuple(each))
            groups.append(replace(group, job=job) if job and not is_figure else group)
            value = each if is_figure else 100.0
            rows = (row(16 * GIB, value, value, wrong=wrong if not is_figure else (0, 0)),)
            measured[group.key] = bandwidth(table(rows=rows))
        assessor = Assessor(catalog, simulated_limits={}, missing_limit="skip", logs_place=None)
        monkeypatch.setattr(assessor, "measure_group", lambda group: measured[group.key])
        whole = WorkflowEvidence(entry=entry().name, scale="full-scale", groups=tuple(groups))
        verdict = assessor.judge(whole, measured, assessor.limits(whole, measured))
        return verdict, assessor.wants_more(groups, iterations=iterations)

    return judge


@pytest.mark.parametrize(
    "code",
    [
        *("node-unreachable", "pod-evicted", "pod-deleted", "vanished", "node-changed"),
        *("api-error", "unschedulable", "start-timeout"),
        *("log-gap", "log-incomplete", "log-unavailable"),
    ],
)
def test_attempt_that_tells_nothing_is_made_again(tried, code):
    job = FAILED if code in ("unschedulable", "start-timeout") else None
    _, wants_more = tried([Problem(code=code, message="what befell it")], job=job)

    assert wants_more


@pytest.mark.parametrize("code", ["interrupted", "hardware-failed"])
def test_interrupt_and_failed_hardware_are_not_tried_again(tried, code):
    _, wants_more = tried([Problem(code=code, message="so it is"), LOST])

    assert not wants_more


@pytest.mark.parametrize("code", ["job-failed", "run-timeout", "stalled"])
def test_workload_that_failed_is_not_tried_again(tried, code):
    _, wants_more = tried([Problem(code=code, message="it failed")], job=FAILED)

    assert not wants_more


def test_figure_below_its_limit_is_never_tried_again(tried):
    verdict, wants_more = tried(300.0, retries=10)

    assert (verdict.code, wants_more) == ("fail", False)


def test_wrong_values_are_never_tried_again_even_of_a_lost_attempt(tried):
    verdict, wants_more = tried([LOST], wrong=(3, 0))

    assert (verdict.code, wants_more) == ("inconclusive", False)


def test_entry_without_retries_is_not_tried_again(tried):
    verdict, wants_more = tried([LOST], retries=0)

    assert (verdict.code, wants_more) == ("inconclusive", False)


def test_pass_at_the_second_attempt_passes_and_tells_after_what(tried):
    verdict, wants_more = tried([LOST], 400.0)

    assert (verdict.code, wants_more) == ("pass", False)
    lost, passed = verdict.groups
    assert (lost.code, lost.is_retried) == ("inconclusive", True)
    assert (passed.code, passed.is_retried) == ("pass", False)
    assert passed.warnings[0] == (
        "passed at attempt 2 of 2 after: node node-1: it is no longer in the cluster"
    )


def test_limit_missed_at_the_second_attempt_fails_and_is_not_tried_again(tried):
    verdict, wants_more = tried([LOST], 300.0, retries=5)

    assert (verdict.code, wants_more) == ("fail", False)
    assert verdict.groups[1].warnings[0].startswith("failed at attempt 2 of 2 after: node node-1")


def test_retries_that_are_used_up_leave_the_last_attempts_verdict(tried):
    verdict, wants_more = tried([LOST], [LOST], retries=1)

    assert (verdict.code, wants_more) == ("inconclusive", False)
    assert [group.is_retried for group in verdict.groups] == [True, False]


def test_all_lost_attempts_before_it_are_told(tried):
    gap = Problem(code="log-gap", message="log of pod cre-job-0: lines may be missing")
    verdict, _ = tried([LOST], [gap], 400.0, retries=2)

    assert verdict.code == "pass"
    assert verdict.groups[2].warnings[0] == (
        "passed at attempt 3 of 3 after: node node-1: it is no longer in the cluster; "
        "log of pod cre-job-0: lines may be missing"
    )


def test_lost_attempt_counts_neither_as_repeat_nor_as_iteration(tried):
    repeat = Repeat(least=3, most=7)
    verdict, wants_more = tried([LOST], 400.0, 401.0, 402.0, repeat=repeat)

    assert (verdict.code, wants_more) == ("pass", False)
    assert tried([LOST], 400.0, repeat=repeat)[1]
    assert tried([LOST], 400.0, iterations=2)[1]
    assert not tried([LOST], 400.0, 400.0, iterations=2)[1]


def test_attempt_lost_after_one_that_failed_is_not_tried_again(tried):
    _, wants_more = tried(300.0, [LOST], iterations=2)

    assert not wants_more


@pytest.mark.parametrize(
    ("lost", "retries", "made_again"),
    [
        ((True, False), 1, (True, False)),
        ((True, False), 0, (False, False)),
        ((True,), 3, (False,)),
        ((True, True, True), 1, (True, False, False)),
        ((False, True, False), 2, (False, True, False)),
    ],
)
def test_retried_attempts_are_the_first_lost_ones_that_another_followed(lost, retries, made_again):
    assert retried(lost, retries) == made_again
