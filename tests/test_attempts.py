"""Further attempts: planned when wanted, refused by the budget, told when they are missing."""

from types import SimpleNamespace

import pytest

from pytest_cre.attempts import Attempts
from pytest_cre.errors import UnmetNeed


def evidence(group, attempt):
    return SimpleNamespace(group=group, attempt=attempt, key=(group, attempt))


def plan_of(attempt):
    groups = [
        SimpleNamespace(group=SimpleNamespace(name=name), attempt=attempt) for name in ("a", "b")
    ]
    return SimpleNamespace(groups=groups)


@pytest.fixture
def make():
    def build(most, admit=lambda _: None):
        return Attempts(plan_of=plan_of, wants=lambda tried: len(tried) < most, admit=admit)

    return build


def test_next_attempt_is_that_of_the_same_group(make):
    (plan,) = make(2)(evidence("b", 0))

    assert (plan.group.name, plan.attempt) == ("b", 1)


def test_group_that_has_enough_gets_none(make):
    attempts = make(2)
    attempts(evidence("a", 0))

    assert attempts(evidence("a", 1)) == ()
    assert attempts.problems([evidence("a", 0), evidence("a", 1)]) == ()


def test_attempt_that_does_not_fit_is_told_in_the_budgets_words(make):
    def admit(_):
        raise UnmetNeed("takes about 5m; 1m is left (--cre-deadline)")

    attempts = make(3, admit)

    assert attempts(evidence("a", 0)) == ()
    (problem,) = attempts.problems([evidence("a", 0)])
    assert problem.code == "interrupted"
    assert problem.message == (
        "a: attempt 2 was not run: takes about 5m; 1m is left (--cre-deadline)"
    )


def test_attempt_that_the_end_of_the_run_took_is_told(make):
    (problem,) = make(2).problems([evidence("a", 0), evidence("b", 0), evidence("b", 1)])

    assert problem.message == "a: attempt 2 was not run: the run ended before it"
