import pytest

from pytest_cre.judge.curve import algbw_by_size, largest_dip, latency_by_size, plateau
from pytest_cre.judge.group import judge_group
from pytest_cre.judge.judged import judged_value

MIB, GIB = 1 << 20, 1 << 30


def test_plateau_is_the_median_of_the_sizes_within_a_factor_of_eight():
    by_size = {GIB: 300.0, 2 * GIB: 310.0, 4 * GIB: 350.0, 8 * GIB: 340.0, 512 * MIB: 10.0}
    assert plateau(by_size) == 325.0
    assert plateau({}) is None


@pytest.mark.parametrize(
    ("by_size", "dip"),
    [
        ({64 * MIB: 100.0, 128 * MIB: 200.0, 256 * MIB: 300.0}, (0.0, 256 * MIB)),
        ({64 * MIB: 350.0, 128 * MIB: 280.0, 256 * MIB: 360.0}, (0.2, 128 * MIB)),
        ({64 * MIB: 400.0, 128 * MIB: 390.0, 256 * MIB: 195.0}, (0.5, 256 * MIB)),
        # Below 64 MiB protocols change, and with them healthy curves.
        ({16 * MIB: 200.0, 32 * MIB: 50.0, 64 * MIB: 210.0, 128 * MIB: 220.0}, (0.0, 128 * MIB)),
        ({64 * MIB: 400.0}, None),
        ({}, None),
        ({64 * MIB: 0.0, 128 * MIB: 1.0}, None),
    ],
)
def test_dip_is_the_largest_drop_between_neighbouring_sizes(by_size, dip):
    found = largest_dip(by_size)
    assert found == (pytest.approx(dip[0]), dip[1]) if dip else found is None


def test_latency_takes_the_slower_half_and_algorithm_bandwidth_too(table, row, bandwidth):
    measured = bandwidth(table(rows=(row(8, 2.0, 3.0), row(16, 4.0, None)))).bandwidth
    assert latency_by_size(measured) == {8: 1.0, 16: 1.0}
    assert algbw_by_size(measured) == {8: 1.0, 16: 2.0}


def test_limit_of_dips_fails_a_curve_that_dips(evidence, bandwidth, table, row, limit):
    rows = (row(GIB, 350.0, 350.0), row(2 * GIB, 290.0, 300.0), row(4 * GIB, 360.0, 360.0))
    dip = limit("dip", "<=", 0.14, statistic="value", entry="communication/*")
    verdict = judge_group(evidence(), bandwidth(table(rows=rows)), [dip, limit()], missing="skip")
    assert verdict.code == "fail"
    assert verdict.reasons == ("dip 0.1714 is 22.4 % above the h100 limit 0.14",)


def test_limit_of_the_plateau_judges_the_median_of_the_largest_sizes(bandwidth, limit):
    assert judged_value(limit(statistic="plateau"), bandwidth()) == (337.35 + 340.5) / 2


@pytest.mark.parametrize(
    ("metric", "operator", "value"), [("dip", "<=", 0.5), ("ledger_share", "<=", 0.9)]
)
def test_guard_alone_never_passes_a_run(
    evidence, bandwidth, training, limit, metric, operator, value
):
    is_dip = metric == "dip"
    measurement = bandwidth() if is_dip else training()
    guard = limit(metric, operator, value, statistic="value", category=None if is_dip else "hang")
    verdict = judge_group(evidence(), measurement, [guard], missing="skip")
    assert verdict.code == "no-limit"
    assert {check.code for check in verdict.checks} == {"pass", "no-limit"}


def test_guard_beside_a_floor_passes_with_it(evidence, bandwidth, limit):
    guard = limit("dip", "<=", 0.5, statistic="value")
    assert judge_group(evidence(), bandwidth(), [guard, limit()], missing="fail").code == "pass"


@pytest.mark.parametrize(
    ("metric", "category", "measured"),
    [
        ("ledger_time", "hang", 100.0),
        # Of 1200 s, 500 s went into schedule, reschedule, init, load and warm-up.
        ("ledger_share", "hang", 100 / 700),
        ("ledger_share", "useful", 100 / 700),
        ("ledger_share", "init", 100 / 1200),
    ],
)
def test_ledger_is_judged_by_category_and_start_up_eats_no_share(
    training, limit, metric, category, measured
):
    given = limit(metric, "<=", 1.0, statistic="value", category=category)
    assert judged_value(given, training()) == pytest.approx(measured)


def test_ledger_limit_says_which_category(evidence, training, limit):
    given = limit("ledger_share", ">=", 0.95, statistic="value", category="useful")
    verdict = judge_group(evidence(), training(), [given], missing="skip")
    assert verdict.reasons == ("ledger_share of useful 0.1429 is 85.0 % below the h100 limit 0.95",)


def test_ceiling_of_nothing_lost_is_missed_without_a_percentage(evidence, training, limit):
    given = limit("ledger_time", "<=", 0.0, statistic="value", category="rework")
    verdict = judge_group(
        evidence(), training(), [given, limit("goodput", value=0.5)], missing="skip"
    )
    assert verdict.code == "fail"
    assert verdict.reasons == ("ledger_time of rework 100 s is above the h100 limit 0 s",)


def test_doubtful_ledger_is_inconclusive(evidence, training, limit):
    given = limit("ledger_share", "<=", 0.5, statistic="value", category="hang")
    measurement = training(flags=("log_gap",))
    verdict = judge_group(
        evidence(), measurement, [given, limit("step_time", "<=", 2.0)], missing="skip"
    )
    assert verdict.code == "inconclusive"


def test_guard_on_what_a_small_table_cannot_show_is_left_out(
    evidence, bandwidth, table, row, limit
):
    small = bandwidth(table(rows=(row(MIB, 400.0, 400.0),)))
    dip = limit("dip", "<=", 0.14, statistic="value")
    assert judge_group(evidence(), small, [dip, limit()], missing="skip").code == "pass"
