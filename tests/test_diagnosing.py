"""A diagnosis while it runs: rounds, tests made again, tests that do not fit."""

from types import SimpleNamespace

import pytest

from pytest_cre.diagnosing import Diagnosing
from pytest_cre.errors import UnmetNeed
from pytest_cre.evidence.model import DiagnosisSetup

SETUP = DiagnosisSetup(domains={f"r{rack}n{slot}": f"r{rack}" for rack in (1, 2) for slot in range(4)})  # fmt: skip
FIRST, SECOND = "intra-screening-r1-0", "intra-screening-r1-1"


def evidence(group, attempt=0, outcome="passed"):
    return SimpleNamespace(group=group, attempt=attempt, outcome=outcome)


def plan_of(trials, attempt):
    return [
        SimpleNamespace(group=SimpleNamespace(name=each.name, nodes=each.nodes), attempt=attempt)
        for each in trials
    ]


@pytest.fixture
def make():
    def build(admit=lambda _: None):
        return Diagnosing(
            SETUP,
            plan_of=plan_of,
            is_retry=lambda seen: seen[-1].outcome == "undetermined" and len(seen) == 1,
            outcome=lambda seen: seen[-1].outcome,
            admit=admit,
        )

    return build


def names(plans):
    return [(plan.group.name, plan.attempt) for plan in plans]


def test_next_round_begins_when_the_last_test_of_this_one_has_ended(make):
    diagnosing = make()

    assert names(diagnosing(evidence(FIRST))) == []
    assert names(diagnosing(evidence(SECOND))) == [("inter-screening-r2-0", 0)]
    assert names(diagnosing(evidence("inter-screening-r2-0"))) == []
    assert diagnosing.problems([evidence(FIRST)]) == ()


def test_lost_test_is_made_again_once_and_then_counts(make):
    diagnosing = make()
    diagnosing(evidence(SECOND))

    assert names(diagnosing(evidence(FIRST, outcome="undetermined"))) == [(FIRST, 1)]
    further = diagnosing(evidence(FIRST, 1, outcome="failed"))
    assert names(further) == [("bisection-r2-0", 0), ("bisection-r2-1", 0)]


def test_test_that_does_not_fit_is_undetermined_and_told(make):
    def admit(plan):
        if plan.group.name.startswith("inter"):
            raise UnmetNeed("1m is left (--cre-deadline)")

    diagnosing = make(admit)
    diagnosing(evidence(FIRST))

    assert names(diagnosing(evidence(SECOND))) == []
    (problem,) = diagnosing.problems([evidence(FIRST), evidence(SECOND)])
    assert problem.code == "interrupted"
    assert problem.message == "inter-screening-r2-0 was not run: 1m is left (--cre-deadline)"


def test_test_that_the_end_of_the_run_took_is_told(make):
    diagnosing = make()
    diagnosing(evidence(FIRST))

    (problem,) = diagnosing.problems([evidence(FIRST)])
    assert problem.message == f"{SECOND} was not run: the run ended before it"
