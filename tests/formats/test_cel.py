import pytest

from pytest_cre.formats.cel import CelProblem, compile_predicate


@pytest.mark.parametrize(
    ("text", "values", "answer"),
    [
        ("value >= 900", {"value": 900.0}, True),
        ("value >= 0.85 && value < 1", {"value": 900.0}, False),
        ("value > 10 || 1/0 > 1", {"value": 11.0}, True),
        ("node.status.phase == 'Ready'", {"node": {"status": {"phase": "Ready"}}}, True),
        ("has(node.spec.unschedulable)", {"node": {"spec": {}}}, False),
    ],
)
def test_answer_is_that_of_the_expression(text, values, answer):
    assert compile_predicate(text, tuple(values)).holds(values) is answer


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no CEL expression: "),
        ("value >", "is no CEL expression: "),
        ("other > 1", "undeclared reference to 'other'"),
        ("1 + 1", "must say true or false, such as value >= 900"),
        ("'a' * 3", "is no CEL expression: "),
        ("v" * 3000, "is longer than 2048 characters"),
    ],
)
def test_expression_that_cannot_be_one_is_refused(text, words):
    with pytest.raises(CelProblem) as caught:
        compile_predicate(text, ("value",))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["1/0 == 1", "value.nope == 1", "value", "size(value) > 1", "nested.a.b == 1"],
)
def test_expression_without_an_answer_is_a_problem_and_never_true(text):
    predicate = compile_predicate(text, ("value", "nested"))
    with pytest.raises(CelProblem, match="must say true or false"):
        predicate.holds({"value": 1.0, "nested": {}})


def test_expression_that_would_take_for_ever_is_stopped():
    inner = "true"
    numbers = "[1,2,3,4,5,6,7,8,9,10]"
    for name in "abcdefg":
        inner = f"{numbers}.all({name}, {inner})"
    with pytest.raises(CelProblem, match="budget"):
        compile_predicate(inner, ("value",)).holds({"value": 1.0})
