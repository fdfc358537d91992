from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_cre.judge.verdict import Check
from pytest_cre.judge.words import (
    check_words,
    number_words,
    percent_words,
    place_words,
    quantity_words,
)

NUMBERS = st.floats(min_value=1e-3, max_value=1e6)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (371.43, "371.4"),
        (400.0, "400"),
        (2648.6, "2649"),
        (0.7692307, "0.7692"),
        (1234567.0, "1234567"),
        (0.0, "0"),
        (2.5e-9, "2.500e-09"),
    ],
)
def test_number_words_four_digits_and_no_needless_zeros(value, words):
    assert number_words(value) == words


def test_quantity_words_ratio_and_count_have_no_unit():
    assert quantity_words(0.9, "ratio") == "0.9"
    assert quantity_words(16, "count") == "16"
    assert quantity_words(1.25, "s") == "1.25 s"


@pytest.mark.parametrize(
    ("ratio", "words"), [(-0.0716, "7.2 %"), (0.5, "50.0 %"), (-0.00002, "0.002 %"), (0, "0.0 %")]
)
def test_percent_words_never_shows_a_miss_as_zero(ratio, words):
    assert percent_words(ratio) == words


def check(limit, measured):
    return Check(
        metric=limit.metric,
        measured=measured,
        unit=limit.unit,
        limit=limit,
        margin=None,
        code="fail",
    )


def test_check_words_tells_metric_measured_margin_and_limit(limit):
    floor = limit(value=400.0, architecture="gb200")

    assert check_words(check(floor, 371.4)) == (
        "busbw 371.4 GB/s is 7.2 % below the gb200 limit 400 GB/s"
    )
    assert check_words(check(replace(floor, tier="simulated"), 500.0)) == (
        "busbw 500 GB/s is 25.0 % above the simulated gb200 limit 400 GB/s"
    )
    assert check_words(check(floor, 400.0)).endswith("is equal to the gb200 limit 400 GB/s")


@given(NUMBERS, NUMBERS)
@example(1.0, 1.0 + 2**-52)
@example(999999.9999999999, 1000000.0)
def test_check_words_different_numbers_never_look_the_same(one, other):
    from pytest_cre.catalog.limit import Limit

    floor = Limit(
        metric="busbw",
        operator=">=",
        value=other,
        unit="GB/s",
        entry="*",
        tier="published",
        statistic="max",
        source="",
        date="",
    )
    words = check_words(check(floor, one))

    measured, limited = words.split()[1], words.split()[-2]
    assert (measured == limited) == (one == other)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ((), "0 nodes"),
        (("gpu-3",), "node gpu-3"),
        (("rack-1-2", "rack-1-0", "rack-1-1", "rack-1-3"), "4 nodes: rack-1-0..3"),
        (("a-1", "a-2", "a-10", "b"), "4 nodes: a-1..2, a-10, b"),
        (("n08", "n09", "n10", "n11"), "4 nodes: n08..11"),
        (tuple("abcde"), "5 nodes: a, b, c and 2 more"),
    ],
)
def test_place_words_names_nodes_by_runs_of_their_numbers(nodes, words):
    assert place_words(nodes) == words
