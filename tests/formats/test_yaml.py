import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from pytest_cre.formats.scalars import written_text
from pytest_cre.formats.yaml import (
    MAX_DEPTH,
    YamlDocument,
    YamlProblem,
    parse_yaml,
    parse_yaml_documents,
    problems,
    validate,
)


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    size: int = Field(ge=1)
    ratio: float = Field(default=1.0, allow_inf_nan=False)


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    parts: list[Part] = []
    named: dict[str, Part] = {}


def problem_of(text, model=Whole):
    with pytest.raises(YamlProblem) as caught:
        validate(parse_yaml(text, "a.yaml"), model)
    return str(caught.value)


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        *[("no", "no"), ("on", "on"), ("y", "y"), ("1:30", "1:30"), ("2026-11-30", "2026-11-30")],
        *[("010", 10), ("0o10", 8), ("0x1F", 31), ("1_000", "1_000"), ("+5", 5), ("-0", 0)],
        *[("1e3", 1000.0), (".5", 0.5), ("5.", 5.0), ("1e-3", 0.001), ("-.inf", -math.inf)],
        *[("true", True), ("FALSE", False), ("tRUE", "tRUE"), ("null", None), ("~", None)],
        *[("", None), ("'5'", "5"), ('"true"', "true"), ("!!str 5", "5")],
        *[("!!float 3", 3.0), ("!!int 3", 3), ("=", "="), ("<<", "<<"), ("\u0661", "\u0661")],
    ],
)
def test_scalar_is_read_by_the_core_schema_of_yaml_1_2(scalar, value):
    found = parse_yaml(f"key: {scalar}\n", "a.yaml").data["key"]
    assert found == value
    assert isinstance(found, type(value))


@pytest.mark.parametrize("text", ["007", "1.50", "6e-4", "0o10", "+1", "16", "2.5", ".inf"])
def test_number_where_a_text_is_meant_keeps_what_was_written(text):
    assert written_text(parse_yaml(f"- {text}", "a.yaml").data[0]) == text


def test_place_of_a_value_is_its_line_and_column():
    document = parse_yaml("a: 1\nb:\n  - c: 5\n    d: [x, yy]\n", "dir/a.yaml")
    assert document.place(("b", 0, "d", 1)) == "dir/a.yaml:4:12"
    assert document.place(("b", 0, "c")) == "dir/a.yaml:3:8"
    assert document.place(("b", 0, "c"), of_key=True) == "dir/a.yaml:3:5"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a:\n\tb: 1", "a.yaml:2:1: ... token; indent with blanks, never with tabs"),
        ("a:\n  b: 1\n\tc: 2", "a.yaml:3:1: ... scalar; indent with blanks, never with tabs"),
        ("a: |\n\tb", "a.yaml:2:1: ... scalar; indent with blanks, never with tabs"),
        ("a: @b", "a.yaml:1:4: ... token; put a text with '@' in quotes"),
        ("a: >= 3", "a.yaml:1:5: ...; put a text that begins with '>' or '|' in quotes"),
        (
            "a: b: c",
            "a.yaml:1:5: ...; mend the indentation, or put a text that holds ': ' in quotes",
        ),
        (
            "a: [${b}]",
            "a.yaml:1:6: ...; close the bracket, or put a text that holds '{', '[' or ','",
        ),
        ("a: *b", "a.yaml:1:4: ...; put a text that begins with '*' in quotes"),
        ("a: 'b\nc: d", "a.yaml:2:5: ...; close the quote of line 1"),
        ("a:\n  b: 1\n c: 2", "a.yaml:3:2: ...; mend the indentation, or the quotes of the line"),
        ("- a\nb: 1", "a.yaml:2:1: ...; begin every item of the list with '-' in one column"),
        (
            'a: "C:\\path"',
            r"a.yaml:1:7: ...; in double quotes write '\\' for '\', or use single ones",
        ),
    ],
)
def test_slip_of_writing_is_told_with_what_to_do(text, words):
    with pytest.raises(YamlProblem) as caught:
        parse_yaml(text, "a.yaml")
    place, _, remedy = words.partition("...")
    assert str(caught.value).startswith(place)
    assert remedy in str(caught.value)


def test_place_of_something_missing_is_the_nearest_thing_around_it():
    document = parse_yaml("a: 1\nb:\n  - c: 5\n", "a.yaml")
    assert document.place(("b", 0, "nothing", "here")) == "a.yaml:3:5"
    assert document.place(("z",)) == "a.yaml:1:1"


def test_place_of_data_without_places_is_the_source():
    assert YamlDocument({"a": 1}, "node gpu-1", {}, {}).place(("a",)) == "node gpu-1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1", "a.yaml:2:1: malformed YAML: did not find expected ',' or ']'"),
        ("a: b: c", "a.yaml:1:5: malformed YAML: mapping values are not allowed in this context"),
        ("a: *x", "a.yaml:1:4: malformed YAML: found undefined alias"),
        ("a: 1\nb: \x07", r"a.yaml:2:4: malformed YAML: character '\x07' is not allowed"),
        ("a: \ud800", r"a.yaml:1:4: malformed YAML: character '\ud800' is not allowed"),
        ("", "a.yaml:1:1: the file holds nothing"),
        ("# only a comment\n", "a.yaml:1:1: the file holds nothing"),
        ("a: 1\n---\nb: 2\n", "a.yaml:3:1: a second YAML document starts here"),
        ("a: 1\nb: 2\na: 3\n", "a.yaml:3:1: key 'a' stands twice, first in line 1"),
        ("b: {1: x, '1': y}", "a.yaml:1:11: key '1' stands twice, first in line 1"),
        ("? [a]\n: b", "a.yaml:1:3: a key must be a text"),
        ("a: !thing x", "a.yaml:1:4: tag '!thing' is not supported"),
        ("a: !!python/name:os.system x", "tag '!!python/name:os.system' is not supported"),
        ("a: !!set {x}", "a.yaml:1:4: tag '!!set' is not supported"),
        ("a: !!int x", "a.yaml:1:4: 'x' is no int"),
        ("a: !!int true", "a.yaml:1:4: 'true' is no int"),
        ("a: 1e999", "a.yaml:1:4: number 1e999 is too large"),
        ("a: " + "9" * 5000, "is too large"),
        ("&a [*a]", f"nested deeper than {MAX_DEPTH} levels"),
        ("[" * 60_000, "malformed YAML: exceeded maximum nesting depth"),
        ("- " * 900, f"nested deeper than {MAX_DEPTH} levels"),
    ],
)
def test_document_that_cannot_be_used_is_refused_in_one_line_with_its_place(text, words):
    with pytest.raises(YamlProblem) as caught:
        parse_yaml(text, "a.yaml")
    assert words in str(caught.value)
    assert str(caught.value).startswith("a.yaml:")
    assert "\n" not in str(caught.value)


def test_alias_that_repeats_a_little_is_taken():
    assert parse_yaml("a: &x [1, 2]\nb: *x\n", "a.yaml").data == {"a": [1, 2], "b": [1, 2]}


def test_alias_bomb_is_refused_before_it_unfolds():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(YamlProblem, match="aliases repeat more than 10000 values"):
        parse_yaml("\n".join(lines), "a.yaml")


def test_several_documents_are_read_without_the_empty_ones():
    documents = parse_yaml_documents("---\na: 1\n---\n---\nb: 2\n", "a.yaml")
    assert [each.data for each in documents] == [{"a": 1}, {"b": 2}]
    assert documents[1].place(("b",)) == "a.yaml:5:4"


def test_document_of_the_right_form_becomes_the_model():
    text = "name: x\nparts: [{size: 007}, {size: 2, ratio: 1e-2}]\n"
    whole = validate(parse_yaml(text, "a.yaml"), Whole)
    assert [(part.size, part.ratio) for part in whole.parts] == [(7, 1.0), (2, 0.01)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name: 5", "a.yaml:1:7: name must be a text, got 5"),
        ("name:", "a.yaml:1:6: name must be a text, got nothing"),
        ("parts: []", "a.yaml:1:1: name is missing"),
        ("- 1", "a.yaml:1:1: the document must be a map, got a list"),
        ("name: x\nparts: 7", "a.yaml:2:8: parts must be a list, got 7"),
        (
            "name: x\nparts:\n  - sise: 1",
            "a.yaml:3:5: parts[0].sise is an unknown key; did you mean 'size'? "
            "choices: ratio, size",
        ),
        (
            "name: x\nparts:\n  - {size: 1, ratoi: 2}",
            "a.yaml:3:15: parts[0].ratoi is an unknown key; did you mean 'ratio'? "
            "choices: ratio, size",
        ),
        ("name: x\nparts: [{size: 0}]", "a.yaml:2:16: parts[0].size must be at least 1, got 0"),
        (
            "name: x\nparts: [{size: '5'}]",
            "a.yaml:2:16: parts[0].size must be a whole number, got '5'",
        ),
        (
            "name: x\nparts: [{size: 1.5}]",
            "a.yaml:2:16: parts[0].size must be a whole number, got 1.5",
        ),
        (
            "name: x\nparts: [{size: 1, ratio: .inf}]",
            "a.yaml:2:26: parts[0].ratio must be a finite number, got inf",
        ),
        (
            "name: x\nnamed: {a: {size: 1, z: 2}}",
            "a.yaml:2:22: named.a.z is an unknown key; choices: ratio, size",
        ),
        ("name: x\nnamed: {a: }", "a.yaml:2:12: named.a must be a map, got nothing"),
    ],
)
def test_mistake_of_form_is_told_with_place_subject_and_choices(text, line):
    assert problem_of(text) == line


def test_first_mistake_of_several_is_the_first_in_the_file():
    assert problem_of("parts: 3\nname: 5\n").startswith("a.yaml:1:8: parts")


def test_every_mistake_is_told_in_the_order_of_the_file():
    lines = problems(parse_yaml("parts: [{size: 0}]\nname: 5\nnam: 6\n", "a.yaml"), Whole)
    assert [line.split(" ")[0] for line in lines] == ["a.yaml:1:16:", "a.yaml:2:7:", "a.yaml:3:1:"]


def test_long_wrong_value_is_cut_in_the_message():
    assert len(problem_of(f"name: x\nparts: {'y' * 5000}")) < 200


def assert_read_or_refused(text):
    told = "a.yaml:"
    try:
        validate(parse_yaml(text, "a.yaml"), Whole)
    except YamlProblem as problem:
        told = str(problem)
    assert told.startswith("a.yaml:")
    assert len(told.splitlines()) == 1


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_in_one_line(text):
    assert_read_or_refused(text)


@given(st.text(alphabet="a:-[]{}&*!|>?'\"#%@`,\n\t 01.~<", max_size=60))
def test_any_text_of_yaml_marks_is_read_or_refused_in_one_line(text):
    assert_read_or_refused(text)


_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc"), inner, max_size=4),
    max_leaves=20,
)


@given(_PLAIN.filter(lambda data: data is not None))
def test_data_written_as_yaml_is_read_back_as_it_was(data):
    # Flow style with quoted texts means the same in YAML 1.1, which PyYAML writes, and 1.2.
    text = yaml.safe_dump(data, default_style='"', allow_unicode=False, width=10**6)
    assert parse_yaml(text, "a.yaml").data == data
