import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.catalog.entry import CatalogEntry, OptionSpec
from pytest_cre.catalog.loader import Catalog
from pytest_cre.catalog.options import check_options, resolve_options, substitute
from pytest_cre.errors import CatalogProblem, UsageProblem


def make_entry(name="communication/bench", **patterns):
    options = {
        option: OptionSpec(name=option, default="1", pattern=pattern)
        for option, pattern in patterns.items()
    }
    return CatalogEntry(
        name=name,
        description="",
        measures="bandwidth",
        image="x",
        workloads={},
        log_profile="p",
        timeout_s=1,
        start_timeout_s=1,
        options=options,
    )


def test_options_are_the_given_values_over_the_defaults_sorted_by_name():
    entry = make_entry(steps="[0-9]+", bytes="[0-9]+", any=None)
    assert list(resolve_options(entry, {"steps": "7"}).items()) == [
        ("any", "1"),
        ("bytes", "1"),
        ("steps", "7"),
    ]


def test_option_that_the_entry_does_not_have_is_refused_with_the_choices():
    with pytest.raises(UsageProblem) as caught:
        resolve_options(make_entry(maxBytes="[0-9]+"), {"maxByte": "1"})
    assert str(caught.value) == (
        "option 'maxByte' is unknown to communication/bench; did you mean 'maxBytes'? "
        "choices: maxBytes"
    )


@pytest.mark.parametrize("value", ["", "x", "12 ", "12\n", "\n12", "1;rm", "12\x00", "\udcff"])
def test_option_value_must_match_the_whole_pattern(value):
    with pytest.raises(UsageProblem) as caught:
        resolve_options(make_entry(steps="[0-9]+"), {"steps": value})
    message = str(caught.value)
    assert message.startswith("option 'steps' of communication/bench must match [0-9]+, got '")
    assert len(message.splitlines()) == 1


def test_options_of_a_run_must_be_known_to_some_entry_and_right_for_each():
    one, two = make_entry("a/one", steps="[0-9]+"), make_entry("a/two", steps="[5-9]", size=None)
    catalog = Catalog(entries={"a/one": one, "a/two": two})
    check_options(catalog, {"steps": "7", "size": "x"})
    with pytest.raises(UsageProblem, match=r"^option 'step' is unknown; did you mean 'steps'\?"):
        check_options(catalog, {"step": "7"})
    with pytest.raises(UsageProblem, match=r"^option 'steps' of a/two must match"):
        check_options(catalog, {"steps": "10"})


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("${a}", "1"),
        ("x=${a}/${b}", "x=1/${a}"),
        ("$(JOB_COMPLETION_INDEX)", "$(JOB_COMPLETION_INDEX)"),
        ("$$", "$"),
        ("$${a}", "${a}"),
        ("$$${a}", "$1"),
        ("$a $HOME", "$a $HOME"),
        ("", ""),
    ],
)
def test_names_are_replaced_once_and_nothing_else_is(text, result):
    assert substitute(text, {"a": "1", "b": "${a}"}) == result


@pytest.mark.parametrize("text", ["${c}", "${}", "${a", "${ a }", "${${a}}"])
def test_name_that_is_unknown_or_not_closed_is_refused(text):
    with pytest.raises(CatalogProblem, match=r"; .*choices: a$"):
        substitute(text, {"a": "1"})


@given(st.text("$({a})"), st.text())
def test_substitution_of_anything_replaces_or_refuses(text, value):
    told = ""
    try:
        assert "${a}" in text or substitute(text, {"a": value}).count("$") <= text.count("$")
    except CatalogProblem as problem:
        told = str(problem)
    assert len(told.splitlines()) <= 1
