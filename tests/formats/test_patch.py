import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.formats.patch import MAX_COPIES, PatchProblem, json_patch, merge_patch

# The table of RFC 7386, appendix A: original, patch, result.
MERGES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), MERGES)
def test_merge_patch_follows_rfc_7386(target, patch, result):
    before = copy.deepcopy(target)
    assert merge_patch(target, patch) == result
    assert target == before


OPERATIONS = [
    ({"a": 1}, {"op": "add", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
    ({"a": 1}, {"op": "add", "path": "/a", "value": 2}, {"a": 2}),
    ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
    ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
    ({"a": 1}, {"op": "add", "path": "", "value": [1]}, [1]),
    ({"a": 1, "b": 2}, {"op": "remove", "path": "/a"}, {"b": 2}),
    ({"a": [1, 2]}, {"op": "remove", "path": "/a/0"}, {"a": [2]}),
    ({"a": [1, 2]}, {"op": "replace", "path": "/a/1", "value": 9}, {"a": [1, 9]}),
    ({"a": {"b": 1}}, {"op": "move", "from": "/a/b", "path": "/c"}, {"a": {}, "c": 1}),
    ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/c"}, {"a": {"b": 1}, "c": {"b": 1}}),
    ({"a/b": 1, "m~n": 2}, {"op": "remove", "path": "/a~1b"}, {"m~n": 2}),
    ({"m~n": 2}, {"op": "replace", "path": "/m~0n", "value": 3}, {"m~n": 3}),
    ({"": 1}, {"op": "replace", "path": "/", "value": 2}, {"": 2}),
    ({"a": 1.0}, {"op": "test", "path": "/a", "value": 1}, {"a": 1.0}),
    ({"a": None}, {"op": "test", "path": "/a", "value": None}, {"a": None}),
]


@pytest.mark.parametrize(("target", "operation", "result"), OPERATIONS)
def test_json_patch_follows_rfc_6902(target, operation, result):
    before = copy.deepcopy(target)
    assert json_patch(target, [operation]) == result
    assert target == before


@pytest.mark.parametrize(
    ("target", "operation", "words"),
    [
        ({}, {"op": "remove", "path": "/a"}, "nothing at /a"),
        ({}, {"op": "replace", "path": "/a", "value": 1}, "nothing at /a"),
        ({}, {"op": "add", "path": "/a/b", "value": 1}, "nothing at /a"),
        ({"a": 1}, {"op": "add", "path": "/a/b", "value": 1}, "neither an object nor a list"),
        ({"a": [1]}, {"op": "add", "path": "/a/2", "value": 1}, "past the end"),
        ({"a": [1]}, {"op": "remove", "path": "/a/1"}, "past the end"),
        ({"a": [1]}, {"op": "remove", "path": "/a/-"}, "'-' is not an index"),
        ({"a": [1]}, {"op": "remove", "path": "/a/00"}, "'00' is not an index"),
        ({"a": [1]}, {"op": "remove", "path": "/a/\u0661"}, "is not an index"),
        ({"a": 1}, {"op": "test", "path": "/a", "value": True}, "test failed at '/a'"),
        ({"a": {"b": 1}}, {"op": "move", "from": "/a", "path": "/a/b"}, "into itself"),
        ({}, {"op": "add", "path": "a", "value": 1}, "must be a JSON pointer"),
        ({}, {"op": "add", "path": "/~2", "value": 1}, "'~' is written ~0"),
        ({}, {"op": "add", "path": "/a"}, "has no value"),
        ({}, {"op": "append", "path": "/a"}, "unknown operation 'append'; choices: add"),
        ({}, {"path": "/a"}, "unknown operation None"),
        ({}, {"op": "add", "value": 1}, "must be a JSON pointer"),
        ({}, "add", "must be an object"),
    ],
)
def test_json_patch_that_cannot_be_applied_is_refused_and_changes_nothing(target, operation, words):
    before = copy.deepcopy(target)
    with pytest.raises(PatchProblem, match=words):
        json_patch(target, [{"op": "add", "path": "/z", "value": 0}, operation])
    assert target == before


def test_json_patch_that_is_no_list_is_refused():
    with pytest.raises(PatchProblem, match="must be a list"):
        json_patch({}, {"op": "add"})


def test_json_patch_that_doubles_the_document_too_often_is_refused():
    doubling = {"op": "copy", "from": "", "path": "/a"}
    assert json_patch({}, [doubling] * 2) == {"a": {"a": {}}}
    with pytest.raises(PatchProblem, match="copy operations"):
        json_patch({}, [doubling] * (MAX_COPIES + 1))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=10,
)


@given(_JSON, _JSON)
def test_merge_patch_of_anything_leaves_both_as_they_were(target, patch):
    before = json.dumps([target, patch])
    result = merge_patch(target, patch)
    assert json.dumps([target, patch]) == before
    assert merge_patch(result, patch) == result


@given(
    _JSON,
    st.lists(
        st.fixed_dictionaries(
            {"op": st.sampled_from(["add", "remove", "test"])},
            optional={"path": st.sampled_from(["", "/a", "/a/0", "/-"]), "value": _JSON},
        )
    ),
)
def test_json_patch_of_anything_is_applied_or_refused(target, operations):
    before = json.dumps(target)
    told = "one line"
    try:
        json_patch(target, operations)
    except PatchProblem as problem:
        told = str(problem)
    assert len(told.splitlines()) == 1
    assert json.dumps(target) == before
