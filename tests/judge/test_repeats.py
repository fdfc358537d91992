"""Several attempts on a group: the interval of their figures decides, guards and failures do not wait."""

from dataclasses import replace

import pytest

from pytest_cre.catalog.entry import Repeat
from pytest_cre.catalog.loader import Catalog
from pytest_cre.evidence.model import JobFacts, Problem, WorkflowEvidence

GIB = 1 << 30
THRICE = Repeat(least=3, most=7)
FAILED = JobFacts(kind="Job", name="cre-job", uid="u-1", terminal="failed")


@pytest.fixture
def repeated(evidence, bandwidth, table, row, entry, limit, monkeypatch):
    """Judge attempts with these bus bandwidths by a limit of 365 GB/s; None: the workload failed."""

    def judge(*values, limits=None, lost=(), repeat=THRICE):
        from pytest_cre.assessment import Assessor

        given = limits or (limit(value=365.0),)
        catalog = Catalog(entries={entry().name: entry(repeat=repeat, limits=given)})
        groups, measured = [], {}
        for attempt, value in enumerate(values):
            problems = (Problem(code="pod-evicted", message="gone"),) if attempt in lost else ()
            group = evidence(attempt=attempt, problems=problems)
            if value is None:
                group = replace(group, job=FAILED)
            groups.append(group)
            rows = (row(16 * GIB, value or 1.0, value or 1.0),)
            measured[group.key] = bandwidth(table(rows=rows))
        assessor = Assessor(catalog, simulated_limits={}, missing_limit="skip", logs_place=None)
        monkeypatch.setattr(assessor, "measure_group", lambda group: measured[group.key])
        whole = WorkflowEvidence(entry=entry().name, scale="full-scale", groups=tuple(groups))
        verdict = assessor.judge(whole, measured, assessor.limits(whole, measured))
        return verdict, assessor.wants_more(groups)

    return judge


@pytest.mark.parametrize(
    ("values", "code", "wants"),
    [
        ([400.0], "inconclusive", True),
        ([400.0, 401.0], "inconclusive", True),
        ([400.0, 401.0, 402.0], "pass", False),
        ([300.0, 301.0, 302.0], "fail", False),
        ([360.0, 365.0, 371.0], "inconclusive", True),
        ([360.0, 365.0, 371.0, 358.0, 372.0, 361.0, 369.0], "inconclusive", False),
    ],
)
def test_interval_decides_for_all_attempts_or_asks_for_another(repeated, values, code, wants):
    verdict, wants_more = repeated(*values)

    assert (verdict.code, wants_more) == (code, wants)
    assert {group.code for group in verdict.groups} == {code}


def test_every_attempt_keeps_its_own_figure(repeated):
    verdict, _ = repeated(360.0, 365.0, 371.0)

    assert [group.attempt for group in verdict.groups] == [0, 1, 2]
    assert [group.checks[0].measured for group in verdict.groups] == [360.0, 365.0, 371.0]
    assert verdict.groups[2].checks[0].margin == pytest.approx(371 / 365 - 1)


def test_one_lucky_attempt_does_not_pass_a_group_below_its_limit(repeated):
    verdict, _ = repeated(366.0, 340.0, 341.0, 339.0, 340.0)

    assert verdict.code != "pass"


def test_undecided_limit_tells_mean_interval_and_count(repeated):
    # Mean 365.333, s 5.50757, t(0.99, 2) = 6.964557: half width 22.1 GB/s.
    verdict, _ = repeated(360.0, 365.0, 371.0)

    assert verdict.groups[0].reasons == (
        "busbw 365.3 GB/s over 3 repeats (343.2 GB/s to 387.5 GB/s) does not decide the published "
        "limit 365 GB/s",
    )


def test_too_few_repeats_say_so(repeated):
    verdict, _ = repeated(400.0)

    assert "over 1 repeats of at least 3 tells nothing" in verdict.groups[0].reasons[0]


def test_attempt_that_failed_fails_the_group_and_is_not_repeated(repeated):
    verdict, wants_more = repeated(400.0, None)

    assert (verdict.code, wants_more) == ("fail", False)


def test_attempt_that_was_lost_is_inconclusive_and_is_not_repeated(repeated):
    verdict, wants_more = repeated(400.0, 401.0, 402.0, 403.0, lost=(1,))

    assert (verdict.code, wants_more) == ("inconclusive", False)
    assert [group.code for group in verdict.groups] == ["pass", "inconclusive", "pass", "pass"]


def test_expression_is_judged_at_each_attempt(repeated, limit):
    odd = limit(value=None, expression="value > 365.0", tier="given")
    verdict, _ = repeated(400.0, 364.0, 402.0, limits=(odd,))

    assert [group.code for group in verdict.groups] == ["pass", "fail", "pass"]


def test_one_limit_that_is_missed_ends_the_repeats_though_another_is_open(repeated, limit):
    limits = (limit(value=365.0), limit(operator="<=", value=100.0))

    verdict, wants_more = repeated(360.0, 365.0, 371.0, limits=limits)

    assert (verdict.code, wants_more) == ("fail", False)


def test_entry_without_repeat_is_judged_at_each_attempt_and_wants_none(repeated):
    verdict, wants_more = repeated(400.0, 300.0, repeat=None)

    assert ([group.code for group in verdict.groups], wants_more) == (["pass", "fail"], False)


def test_repeats_without_a_limit_are_the_least_number(repeated, limit):
    elsewhere = (limit(entry="training/*"),)

    assert [repeated(*[1.0] * count, limits=elsewhere)[1] for count in (1, 2, 3)] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("is_simulated", [True, False])
def test_limit_of_real_hardware_is_told_where_only_simulation_keeps_it_from_judging(
    evidence, bandwidth, entry, limit, is_simulated
):
    from pytest_cre.assessment import Assessor

    site = limit(tier="site", entry=entry().name, place="x1.yaml:16:5")
    catalog = Catalog(entries={entry().name: entry(limits=(site,))})
    assessor = Assessor(catalog, simulated_limits={}, missing_limit="skip", logs_place=None)
    group = evidence(is_simulated=is_simulated)
    whole = WorkflowEvidence(entry=entry().name, scale="full-scale", groups=(group,))
    measured = {group.key: bandwidth()}

    verdict = assessor.judge(whole, measured, assessor.limits(whole, measured))

    told = [each for each in verdict.groups[0].reasons if "--cre-simulated-by published" in each]
    assert (verdict.code, len(told)) == (("no-limit", 1) if is_simulated else ("pass", 0))
    assert all("1 limit of tier site (x1.yaml:16:5) would judge it" in each for each in told)


def test_limit_at_a_size_without_a_row_is_told_with_the_largest_row(
    evidence, bandwidth, entry, limit
):
    from pytest_cre.assessment import Assessor

    far = limit(entry=entry().name, statistic="at-size", size_bytes=1 << 40, place="x1.yaml:16:5")
    catalog = Catalog(entries={entry().name: entry(limits=(far,))})
    assessor = Assessor(catalog, simulated_limits={}, missing_limit="skip", logs_place=None)
    group = evidence()
    whole = WorkflowEvidence(entry=entry().name, scale="full-scale", groups=(group,))
    measured = {group.key: bandwidth()}

    (reason,) = assessor.judge(whole, measured, assessor.limits(whole, measured)).groups[0].reasons

    assert reason.endswith(
        "; the limit at 1 TiB (x1.yaml:16:5) needs a row of that size, the largest is 17179869184 B"
    )
