"""JSON documents in logs, cut down to what tells a failure."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.measure.causes import causes, causes_only

STAMP = "2026-01-01T00:00:00.000000001Z "
DCGM = Path(__file__).parent.parent / "data" / "dcgm"


def stamped(text: str) -> bytes:
    return "".join(f"{STAMP}{line}\n" for line in text.splitlines()).encode()


def failed_report() -> dict:
    """The report of a healthy node, in which GPU 3 fails one test."""
    report = json.loads((DCGM / "level2-v4.json").read_text())
    test = report["DCGM Diagnostic"]["test_categories"][1]["tests"][0]
    result = next(each for each in test["results"] if each["entity_id"] == 1)
    result["status"] = "Fail"
    result["warnings"] = [{"error_id": 33, "warning": "GPU 1: row remap pending"}]
    return report


def test_report_of_a_diagnostic_is_cut_down_to_the_failed_result_with_its_place():
    text = json.dumps(failed_report(), indent=2)

    shown = causes_only(stamped(f"starting\n{text}\nexit code 226")).decode().splitlines()

    (told,) = (line for line in shown if "row remap pending" in line)
    assert '"status": "Fail"' in told
    assert told.startswith("DCGM Diagnostic > ")
    assert shown[0] == f"{STAMP}starting"
    assert shown[-1] == f"{STAMP}exit code 226"
    assert len(shown) < 8


@pytest.mark.parametrize("name", ["level1-v3.json", "level2-v4.json"])
def test_report_that_tells_no_failure_stays_as_it_is(name):
    data = stamped((DCGM / name).read_text())
    assert causes_only(data) == data


def test_report_of_an_older_diagnostic_is_cut_down_by_the_names_of_its_tests():
    shown = causes_only(stamped((DCGM / "level3-v3.json").read_text())).decode().splitlines()
    assert shown
    assert all(line.startswith("DCGM GPU Diagnostic > ") and "Fail" in line for line in shown)


def test_document_on_one_line_is_cut_down_too():
    text = json.dumps({**failed_report(), "padding": "x" * 2048})
    (told,) = causes_only(stamped(text)).decode().splitlines()
    assert "row remap pending" in told
    assert len(told) < 400


def test_short_document_and_structured_log_lines_stay_as_they_are():
    data = stamped('{"level": "error", "msg": "out of memory"}\n{\n "status": "failed"\n}')
    assert causes_only(data) == data


def test_document_whose_beginning_or_end_is_missing_stays_as_it_is():
    lines = stamped(json.dumps(failed_report(), indent=2)).splitlines(keepends=True)
    for data in (b"".join(lines[1:]), b"".join(lines[:-1])):
        assert causes_only(data) == data


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"status": "ok"}, []),
        ({"tests": [{"name": "memory", "ok": False}]}, ['memory: {"name": "memory", "ok": false}']),
        ({"a": {"error": "x"}}, ['a: {"error": "x"}']),
        ({"a": {"error": None, "errors": []}}, []),
        ({"status": "FAILED", "parts": [{"status": "fail"}, {"status": "pass"}]},
         ['document: {"status": "FAILED"}', 'parts[0]: {"status": "fail"}']),
        ({"out_of_bounds": {"okay": "false"}}, ['out_of_bounds: {"okay": "false"}']),
    ],
)  # fmt: skip
def test_causes_are_the_innermost_parts_that_tell_a_failure(document, told):
    assert causes(document) == told


def test_hostile_documents_tell_few_and_short_lines():
    deep: dict = {}
    for _ in range(5000):
        deep = {"error": "x" * 100, "inner": deep}
    many = {"tests": [{"status": "fail", "text": "y" * 10_000} for _ in range(5000)]}
    for document in (deep, many):
        told = causes(document)
        assert len(told) == 200
        assert max(map(len, told)) <= 2000


@given(st.lists(st.sampled_from([b"{\n", b"}\n", b"{", b'{"a": "fail"}\n', b"x\n", b"\xff\n"])))
def test_any_log_without_long_documents_is_unchanged(parts):
    data = b"".join(parts)
    assert causes_only(data) == data
