import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.formats.selector import SelectorProblem, parse_selector

LABELS = {"app": "cre", "tier": "a", "nvidia.com/gpu.present": "true", "empty": ""}


@pytest.mark.parametrize(
    "text",
    [
        *["", "app=cre", "app==cre", "app = cre", "app!=other", "missing!=x", "empty=", "app"],
        *["!missing", "! missing", "tier in (a,b)", "tier in ( a , b )", "tier notin (b)"],
        *["missing notin (a)", "app=cre,tier in (a),!missing", " app=cre , tier=a "],
        *["nvidia.com/gpu.present=true", "empty in (,x)"],
    ],
)
def test_selector_that_holds_matches(text):
    assert parse_selector(text).matches(LABELS)


@pytest.mark.parametrize(
    "text",
    [
        *["app=other", "app!=cre", "missing=x", "missing", "!app", "tier in (b,c)"],
        *["tier notin (a)", "missing in (a)", "app=cre,tier=b", "app=", "missing="],
    ],
)
def test_selector_that_does_not_hold_does_not_match(text):
    assert not parse_selector(text).matches(LABELS)


def test_selector_of_an_object_without_labels_sees_none():
    assert parse_selector("!app").matches(None)
    assert not parse_selector("app").matches(None)


@pytest.mark.parametrize(
    "text",
    [
        *["app=cre,", ",app", "a b", "app=a b", "app in", "app in ()x", "app in (a", "in (a)"],
        *["app in (a b)", "-app=x", "app=-x", "app=x/y", "/app=x", "a/b/c=x", "app>>1", "!"],
        *["k" * 64 + "=x", "app=" + "v" * 64, "p" * 254 + "/app", "ä=b", "app=x\x00"],
    ],
)
def test_selector_that_kubernetes_refuses_is_refused_in_one_line(text):
    with pytest.raises(SelectorProblem) as caught:
        parse_selector(text)
    assert str(caught.value).startswith("label selector ")
    assert len(str(caught.value).splitlines()) == 1


@given(st.text("ab=!,() in/.-_", max_size=30))
def test_any_text_is_a_selector_or_refused(text):
    told = "one line"
    try:
        assert parse_selector(text).matches({"a": "b"}) in (True, False)
    except SelectorProblem as problem:
        told = str(problem)
    assert len(told.splitlines()) == 1


@given(st.dictionaries(st.sampled_from("abc"), st.sampled_from(["x", "y", ""]), max_size=3))
def test_requirement_and_its_opposite_split_all_objects(labels):
    for one, other in (("a=x", "a!=x"), ("a in (x,y)", "a notin (x,y)"), ("a", "!a")):
        assert parse_selector(one).matches(labels) != parse_selector(other).matches(labels)
