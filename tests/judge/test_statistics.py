import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.judge.statistics import Repeats, answer_of, interval_of, t_quantile

# Standard tables of Student's t distribution, one-sided.
TABLE = {
    (0.95, 1): 6.313752, (0.95, 2): 2.919986, (0.95, 3): 2.353363, (0.95, 10): 1.812461,
    (0.975, 1): 12.706205, (0.975, 4): 2.776445, (0.975, 5): 2.570582, (0.975, 30): 2.042272,
    (0.99, 2): 6.964557, (0.99, 6): 3.142668, (0.995, 9): 3.249836, (0.999, 4): 7.173182,
}  # fmt: skip


@pytest.mark.parametrize(("probability", "degrees"), TABLE)
def test_t_quantile_is_that_of_the_tables(probability, degrees):
    assert t_quantile(probability, degrees) == pytest.approx(TABLE[probability, degrees], abs=5e-6)


def test_interval_of_one_value_tells_nothing():
    found = interval_of([400.0], Repeats())

    assert (found.mean, found.low, found.high) == (400.0, -math.inf, math.inf)


def test_interval_is_mean_plus_minus_t_times_the_standard_error():
    # Mean 10, standard deviation 1, n 3; one look at 5 %: t(0.95, 2) = 2.919986.
    found = interval_of([9.0, 10.0, 11.0], Repeats(least=3, most=3))

    assert found.mean == 10
    assert found.low == pytest.approx(10 - 2.919986 / math.sqrt(3), abs=1e-5)
    assert found.high == pytest.approx(10 + 2.919986 / math.sqrt(3), abs=1e-5)


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ([400.0, 401.0], "more"),
        ([400.0, 401.0, 402.0], "pass"),
        ([300.0, 301.0, 302.0], "fail"),
        ([360.0, 365.0, 371.0], "more"),
        ([360.0, 365.0, 371.0, 358.0, 372.0, 361.0, 369.0], "inconclusive"),
    ],
)
def test_answer_for_a_floor_follows_the_interval(values, answer):
    assert answer_of(values, operator=">=", limit=365.0, repeats=Repeats()) == answer


@pytest.mark.parametrize(
    ("values", "answer"), [([0.050, 0.051, 0.0505], "pass"), ([0.080, 0.081, 0.0805], "fail")]
)
def test_answer_for_a_ceiling_is_the_other_way_round(values, answer):
    assert answer_of(values, operator="<=", limit=0.064, repeats=Repeats()) == answer


def test_repeats_without_noise_equal_to_the_limit_pass():
    assert answer_of([5.0] * 3, operator=">=", limit=5.0, repeats=Repeats()) == "pass"


@pytest.mark.parametrize(
    "changes", [{"least": 1}, {"least": 4, "most": 3}, {"error": 0.0}, {"error": 0.5}]
)
def test_repeats_that_give_no_interval_are_refused(changes):
    with pytest.raises(ValueError, match=r"need|must"):
        Repeats(**changes)


@given(
    values=st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=7),
    limit=st.floats(1e-3, 1e6),
    factor=st.floats(1e-3, 1e3),
)
def test_answer_does_not_depend_on_the_unit(values, limit, factor):
    repeats = Repeats(least=2)
    found = interval_of(values, repeats)
    ends = (abs(found.low - limit), abs(found.high - limit))
    if min(ends) < 1e-6 * max(1.0, limit):
        return  # rounding decides
    scaled = [value * factor for value in values]
    assert answer_of(values, operator=">=", limit=limit, repeats=repeats) == answer_of(
        scaled, operator=">=", limit=limit * factor, repeats=repeats
    )


def rates(true_mean, *, limit=100.0, spread=2.0, trials=4_000, repeats=None):
    """Return how often a figure with this true mean passes, fails and stays inconclusive."""
    draw, repeats = random.Random(20261130), repeats or Repeats()
    count = dict.fromkeys(("pass", "fail", "inconclusive"), 0)
    for _ in range(trials):
        values = []
        answer = "more"
        while answer == "more":
            values.append(draw.gauss(true_mean, spread))
            answer = answer_of(values, operator=">=", limit=limit, repeats=repeats)
        count[answer] += 1
    return {name: number / trials for name, number in count.items()}


def test_error_rates_by_simulation_stay_below_what_is_allowed():
    """The worst case of a false pass is a true mean just below the limit; of a false fail, at it."""
    at_limit = rates(100.0)

    assert at_limit["pass"] <= 0.05
    assert at_limit["fail"] <= 0.05
    # The figures that docs/explanation/verdicts.md states, to the digit that it shows.
    assert at_limit["pass"] == pytest.approx(0.03, abs=0.01)
    assert rates(97.0)["pass"] <= 0.001
    assert rates(103.0)["fail"] <= 0.001


def test_clear_figures_are_decided_early_and_near_ones_seldom():
    assert rates(110.0)["pass"] >= 0.999
    assert rates(90.0)["fail"] >= 0.999
    assert rates(100.0)["inconclusive"] >= 0.9
