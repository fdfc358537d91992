"""The page that tells how upstream's figures differ has both numbers of each row as they are computed."""

from pathlib import Path
from string import ascii_uppercase

import pytest

from tests.measure.differences import training
from tests.measure.differences_logs import bandwidth, reading
from tests.measure.differences_points import points

DIFFERENCES = (*training(), *points(), *reading(), *bandwidth())
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "differences-from-upstream.md"
LINES = PAGE.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    "difference", DIFFERENCES, ids=lambda each: f"{each.trap}-{each.case[:40]}"
)
def test_row_of_the_page_has_the_figures_of_both(difference):
    assert difference.row in LINES


def test_figures_differ_except_where_the_page_shows_that_they_agree():
    same = [each.case for each in DIFFERENCES if each.theirs() == each.ours()]
    assert same == ["Fails after 600 s, checkpoint at 300 s"]


def test_every_trap_of_upstreams_arithmetic_has_a_row():
    assert {each.trap for each in DIFFERENCES} - {""} == set(ascii_uppercase[:14])


def test_page_has_no_row_with_a_figure_that_nothing_computes():
    rows = {each.row for each in DIFFERENCES}
    tables = [line for line in LINES if line.startswith("|") and any(c.isdigit() for c in line)]
    assert [line for line in tables if line not in rows] == []
