import pytest

from pytest_cre.judge.group import judge_group
from pytest_cre.judge.judged import is_met


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("value >= 340.0 || value == 0.0", "pass"),
        ("value in [340.5]", "pass"),
        ("value > 341 || value < 0", "fail"),
    ],
)
def test_expression_judges_the_number(evidence, bandwidth, limit, text, code):
    given = limit(value=None, expression=text, tier="given")
    verdict = judge_group(evidence(), bandwidth(), [given], missing="skip")
    assert verdict.code == code
    assert verdict.checks[0].margin is None
    if code == "fail":
        assert verdict.reasons == (f"busbw 340.5 GB/s does not meet {text!r}",)


def test_expression_without_an_answer_is_inconclusive(evidence, bandwidth, limit):
    given = limit(value=None, expression="1.0 / 0.0 > value || 1/0 == 1", tier="given")
    met = limit(value=None, expression="1/0 == 1", tier="given")
    assert judge_group(evidence(), bandwidth(), [given], missing="skip").code == "pass"
    verdict = judge_group(evidence(), bandwidth(), [met], missing="skip")
    assert verdict.code == "inconclusive"
    assert "divide by zero" in verdict.reasons[0]


@pytest.mark.parametrize(
    ("operator", "met"),
    [(">=", (False, True, True)), (">", (False, False, True)),
     ("<=", (True, True, False)), ("<", (True, False, False))],
)  # fmt: skip
def test_number_that_equals_its_limit_meets_only_the_open_operators(limit, operator, met):
    given = limit(operator=operator, value=10.0)
    assert tuple(is_met(given, value) for value in (9.0, 10.0, 11.0)) == met
