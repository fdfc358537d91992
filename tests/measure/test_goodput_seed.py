"""The seed's run of 1,000 steps under each definition: 1080 steps of 1 s, two crashes, ten saves of 10 s.

Where a definition needs something that the exact intervals do not hold, its terms are given by hand.
"""

from fractions import Fraction

import pytest

from pytest_cre.measure.formula import FormulaTerms, formula_ratio
from tests.measure.histories import SECOND, ledger_s, measured, ns


def seed(reschedule_s: int, **params):
    """Return the account where so much of each 60 s restart passes before the new process starts."""
    restart = f"pass {reschedule_s}; start; pass {60 - reschedule_s}; ready"
    return measured(
        f"open; start; ready 0; 2 * (run 100; save 10); run 50; crash; {restart} 200;"
        f"5 * (run 100; save 10); run 30; crash; {restart} 700; 3 * (run 100; save 10); end",
        **params,
    )


def test_throughput_fraction_counts_steps_that_were_lost():
    assert seed(60).ratios["throughput_fraction"] == float(Fraction(54, 65))


@pytest.mark.parametrize("name", ["ledger", "runtime", "strict_durable"])
def test_seed_ratio_is_target_steps_over_wall_time(name):
    assert seed(60).ratios[name] == seed(0).ratios[name] == float(Fraction(10, 13))


@pytest.mark.parametrize(
    ("reschedule_s", "expected"),
    [(0, Fraction(10, 13)), (30, Fraction(25, 31)), (40, Fraction(50, 61)), (60, Fraction(50, 59))],
)
def test_goodput_rises_with_the_part_of_a_restart_that_is_reschedule(reschedule_s, expected):
    run = seed(reschedule_s)
    assert (
        run.ratios["goodput"] == float(expected) == float(Fraction(1000, 1300 - 2 * reschedule_s))
    )
    assert round(seed(0).ratios["goodput"], 3) == 0.769
    assert round(seed(60).ratios["goodput"], 3) == 0.847


def test_goodput_of_exits_seen_too_early_counts_lost_work_as_reschedule():
    # The last 30 s of each attempt left no line and no exit: they look like a part of the restart.
    run = measured(
        "open; start; ready 0; 2 * (run 100; save 10); run 20; pass 30; pass 60; start; ready 200;"
        "5 * (run 100; save 10); pass 30; pass 60; start; ready 700; 3 * (run 100; save 10); end"
    )
    assert ledger_s(run) == {
        "useful": 1000,
        "rework": 20,
        "reschedule": 180,
        "checkpoint_blocking": 100,
    }
    assert run.ratios["goodput"] == float(Fraction(25, 28))
    assert run.flags == ("exit_unknown",)


def test_goodput_without_sight_of_failures_is_save_over_save_and_work():
    run = measured("open; start; ready 0; 10 * (run 108; save 10); end")
    assert run.ratios["goodput"] == float(Fraction(54, 59))


@pytest.mark.parametrize(
    ("terms_s", "expected"),
    [
        ((1299, 80, 3, 120, 100), Fraction(332, 393)),  # from the first line on, every step printed
        ((1299, 80, 123, 0, 100), Fraction(332, 433)),
        ((1290, 80, 30, 120, 100), Fraction(32, 39)),  # a line every 10 steps
        ((1290, 80, 150, 0, 100), Fraction(32, 43)),
        ((1250, 80, 150, 120, 100), Fraction(80, 113)),  # a line every 50 steps
        ((1250, 80, 270, 0, 100), Fraction(16, 25)),
        (
            (390, 80, 0, 120, 100),
            Fraction(1, 3),
        ),  # the window begins at the second crash, the losses do not
    ],
)
def test_formula_at_the_points_that_a_log_shows_differs_from_the_exact_one(terms_s, expected):
    t_w, t_ch, t_rm, t_re, t_save = map(ns, terms_s)
    terms = FormulaTerms(t_w=t_w, t_ch=t_ch, t_rm=t_rm, t_re=t_re, t_save=t_save)
    assert formula_ratio(terms) == float(expected)


@pytest.mark.parametrize(("every", "executed"), [(10, 1080), (50, 1050)])
def test_goodput_does_not_depend_on_how_often_a_log_prints(every, executed):
    script = (
        "open; start; ready 0; 2 * (run 100 every E; save 10); run 50 every E; crash; pass 60; start;"
        "ready 200; 5 * (run 100 every E; save 10); run 30 every E; crash; pass 60; start; ready 700;"
        "3 * (run 100 every E; save 10); end"
    ).replace("E", str(every))
    for interval in (every, None):
        run = measured(script, log_interval=interval)
        assert run.ratios["goodput"] == float(Fraction(50, 59))
        assert run.executed_steps == executed
        assert run.log_interval == every


def test_reference_of_the_seed_is_found_without_being_told():
    run = seed(60, reference_step_s=None)
    assert run.reference_step_s == 1
    assert run.ratios == seed(60).ratios
    assert run.window_ns == 1300 * SECOND
