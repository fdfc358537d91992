"""The JSON document: its letter, and that it is valid whatever was measured."""

import json
from pathlib import Path

from pytest_cre.measure.document import document_text, to_document
from pytest_cre.measure.reasons import FLAGS, REASONS
from tests.measure.megatron import EPOCH_NS, step_line
from tests.measure.reading import measured
from tests.measure.tables import stamped, table, text

SECOND = 10**9
KEYS = {
    "schema",
    "inputs",
    "kind",
    "profile",
    "status",
    "reasons",
    "bandwidth",
    "training",
    "dropped",
}
TABLE_KEYS = {
    "test",
    "rows",
    "avg_busbw_gbs",
    "out_of_bounds",
    "complete",
    "ranks",
    "nccl_version",
    "tool_version",
}
TRAINING_KEYS = {
    "framework",
    "steps",
    "checkpoints",
    "attempts",
    "failure",
    "summary",
    "ledger_s",
    "window_s",
    "ratios",
    "flags",
}
SUMMARY_KEYS = {
    "first_step",
    "last_step",
    "highest_step",
    "step_records",
    "avg_step_time_s",
    "avg_tflops_per_gpu",
    "interruptions",
}
LEDGER = {
    "useful",
    "rework",
    "hang",
    "checkpoint_blocking",
    "schedule",
    "reschedule",
    "init",
    "load",
    "warmup",
    "straggler",
    "eval",
    "other",
}


def training_log(steps=30):
    return text(stamped([step_line(n, EPOCH_NS + n * SECOND, SECOND) for n in range(1, steps + 1)]))


def test_bandwidth_document_has_the_agreed_form():
    document = to_document(measured(text(table())))
    assert set(document) == KEYS
    assert (document["schema"], document["kind"], document["training"]) == (
        "cre.measure/1",
        "bandwidth",
        None,
    )
    (found,) = document["bandwidth"]["tables"]
    assert set(found) == TABLE_KEYS
    assert found["out_of_bounds"] == {"count": 0, "ok": True}
    assert found["rows"][0] == {
        "size_bytes": 1024,
        "count": 256,
        "dtype": "float",
        "redop": "sum",
        "root": -1,
        "out_of_place": {"time_us": 20.24, "algbw_gbs": 0.68, "busbw_gbs": 1.02, "wrong": 0},
        "in_place": {"time_us": 20.24, "algbw_gbs": 0.85, "busbw_gbs": 1.27, "wrong": 0},
    }
    assert document["bandwidth"]["max_busbw_gbs"] == {"out_of_place": 65.54, "in_place": 65.79}
    assert document["dropped"] == {
        "lines_too_long": 0,
        "undecodable_bytes": 0,
        "unmatched_lines": 4,
    }


def test_training_document_has_the_agreed_form():
    document = to_document(measured(training_log()))
    training = document["training"]
    assert set(training) >= TRAINING_KEYS
    assert set(training["summary"]) >= SUMMARY_KEYS
    assert set(training["ledger_s"]) == LEDGER
    assert set(training["ratios"]) == {
        "goodput",
        "ledger",
        "runtime",
        "strict_durable",
        "throughput_fraction",
    }
    assert training["steps"][9] == {
        "step": 10,
        "time": "2026-01-05T00:00:10Z",
        "step_time_s": 1.0,
        "tflops_per_gpu": 400.0,
        "loss": 12.18497,
        "covers": 1,
    }
    assert len(training["steps"]) == 30


def test_document_of_nothing_has_nulls_and_no_data():
    document = to_document(measured(b"hello\n"))
    assert (document["kind"], document["status"], document["profile"]) == ("none", "no-data", None)
    assert document["bandwidth"] is None
    assert document["training"] is None


def test_streamed_text_is_the_same_document():
    for log in (text(table()), training_log(2500), b"", training_log(0)):
        measurement = measured(log)
        assert json.loads("".join(document_text(measurement))) == to_document(measurement)


def test_same_bytes_give_the_same_text():
    log = training_log()
    assert list(document_text(measured(log))) == list(document_text(measured(log)))


def test_numbers_that_are_none_are_null_never_nan():
    rows = [line.replace("65.79", "  nan").replace("65.54", "  inf") for line in table()]
    written = "".join(document_text(measured(text(rows))))
    assert "NaN" not in written
    assert "Infinity" not in written


def test_reference_page_tells_every_reason_and_flag():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "measure.md").read_text()
    for code, words in {**REASONS, **FLAGS}.items():
        assert f"| `{code}` | {words}" in page
