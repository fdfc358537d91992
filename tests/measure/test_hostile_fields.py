"""Hostile values in every field: never an exception, never a control character, never complete by them."""

import gzip
import json
from math import isfinite

import pytest

from pytest_cre.measure.document import document_text
from pytest_cre.report.measurement import measurement_text
from tests.measure.megatron import EPOCH_NS, step_line
from tests.measure.reading import measured
from tests.measure.tables import stamped, table, text

SECOND = 10**9
TABLE = text(table())
STEPS = [step_line(n, EPOCH_NS + n * SECOND, SECOND, total=60) for n in range(1, 61)]
TRAINING = text(stamped(STEPS))
EVIL = "\x1b]0;evil\x07\x1b[2J\x9b31m\u202e\u2028\x85\x00"


def numbers_in(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for each in value for number in numbers_in(each)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def shown(measurement):
    """Return text form and document, after a look at what no output may hold."""
    form, document = measurement_text(measurement), "".join(document_text(measurement))
    assert max(map(len, form.splitlines()), default=0) <= 100
    assert all(each.isprintable() for line in form.split("\n") for each in line)
    assert document.isascii()
    assert all(isfinite(number) for number in numbers_in(json.loads(document)))
    return form, json.loads(document)


@pytest.mark.parametrize(
    "data",
    {
        "nothing": b"",
        "zeros": b"\0" * 5000,
        "compressed": gzip.compress(TABLE * 20, mtime=0),
        "wide characters": TRAINING.decode().encode("utf-16-le"),
        "zeros in a table": TABLE.replace(b"float", b"fl\0oat"),
        "zeros in steps": TRAINING.replace(b"iteration", b"iter\0ation"),
        "a table's numbers": TABLE.replace(b"float", b"1e309"),
        "two tables of different ranks": text([*table(ranks=2), *table(ranks=8)]),
        "counter of 21 digits": TRAINING.replace(b"/      60", b"/" + b"9" * 21),
        "steps of nothing": b"iteration 0/ 0 | elapsed time per iteration (ms): 0 | lm loss: 0 |\n"
        * 50,
        "year 1": TRAINING.replace(b"2026-01-05", b"0001-01-05"),
        "year 9999": TRAINING.replace(b"2026-01-05", b"9999-12-31"),
    }.items(),
    ids=lambda each: each[0],
)
def test_garbage_is_never_complete(data):
    measurement = measured(data[1])
    shown(measurement)
    assert measurement.status in ("incomplete", "no-data")


@pytest.mark.parametrize(
    "value", ["inf", "-inf", "nan", "1e309", "-65.54", "0x41", "65.5.4", "6e+"]
)
@pytest.mark.parametrize("column", ["time", "algbw", "busbw"])
def test_number_of_a_table_that_is_none_leaves_it_incomplete(value, column):
    cell = {"time": b"  665.36", "algbw": b"   43.69", "busbw": b"   65.54"}[column]
    assert cell in TABLE
    measurement = measured(TABLE.replace(cell, b"  " + value.encode()))
    shown(measurement)
    assert measurement.status == "incomplete"


@pytest.mark.parametrize(
    "value", ["inf", "-inf", "nan", "1e309", "-1000.0", "0", "9" * 40, "1.2.3"]
)
@pytest.mark.parametrize(
    ("field", "attribute"),
    [
        ("(ms): 1000.0", "step_time_s"),
        ("(TFLOP/s/GPU): 400.0", "tflops_per_gpu"),
        ("lm loss: 1.218497E+01", "loss"),
    ],
)
def test_number_of_a_step_that_cannot_be_is_absent(value, field, attribute):
    label = field.partition(":")[0]
    log = TRAINING.replace(field.encode(), f"{label}: {value}".encode())
    measurement = measured(log)
    _, document = shown(measurement)
    steps = document["training"]["steps"]
    assert [each["step"] for each in steps] == list(range(1, 61))
    told = {each[attribute] for each in steps}
    assert len(told) == 1
    # A line that ends in its loss may be cut there, so that a number is what stands before.
    assert told <= ({None, 1.0, 1.2, 0.0, -1000.0, 1e40} if attribute == "loss" else {None, 1.2})
    assert document["training"]["ledger_s"]["useful"] == pytest.approx(60)


def fields_of(lines):
    for at, line in enumerate(lines):
        words = line.split(" ")
        for place, word in enumerate(words):
            if word:
                yield at, [*words[:place], word[:1] + EVIL + word[1:], *words[place + 1 :]]


@pytest.mark.parametrize("name", ["table", "training"])
def test_controls_in_any_field_reach_no_terminal(name):
    failing = ["Test NCCL failure x.cu:1 'bad", "n:1:2 [0] NCCL INFO Using network IB"]
    lines = (
        [*table(), *failing]
        if name == "table"
        else [*stamped(STEPS[:22]), "Traceback (most recent call last):", "ValueError: bad"]
    )
    for at, words in fields_of(lines):
        if name == "training" and 0 < at < 21:
            continue  # alike
        shown(measured(text([*lines[:at], " ".join(words), *lines[at + 1 :]])))


def test_names_that_a_log_gives_are_shown_without_controls():
    found = measured(
        text(
            [
                *table(start=f"all{EVIL}_perf")[:-4],
                f"# nccl-tests version {EVIL} nccl-headers=1 nccl-library=1",
                f"n:1:2 [0] NCCL INFO Using network {EVIL}x",
                f"h: Test NCCL failure a.cu:1 '{EVIL}",
            ]
        )
    )
    form, _ = shown(found)
    assert found.status == "failed"
    assert "failure" in form
