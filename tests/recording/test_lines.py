"""A log as a recording, read by the simulator, and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.recording.lines import first_time_ns, recorded, replayed
from pytest_cre.simulator.recordings import load_recording
from tests.recording.conftest import START_NS, stamped


def record(data, **changes):
    facts = {"started_ns": START_NS, "finished_ns": START_NS + 5 * 10**9, "exit_code": 0}
    return recorded(data, lambda text: text, **{**facts, **changes})


def test_recording_tells_start_end_exit_code_and_each_line_with_its_time():
    header, first, second = record(stamped(["a", "b"]), exit_code=3).splitlines()
    assert json.loads(header) == {
        "recording": "cre.recording/1",
        "exit_code": 3,
        "started_ns": START_NS,
        "ended_ms": 5000.0,
    }
    assert json.loads(first) == {"offset_ms": 0.0, "text": "a"}
    assert json.loads(second) == {"offset_ms": 1.0, "text": "b"}


lines = st.lists(st.binary(max_size=30).map(lambda each: each.replace(b"\n", b"")), max_size=8)


@given(lines, st.booleans(), st.integers(0, 10**10))
def test_recording_of_any_log_gives_the_log_again(texts, is_whole, step_ns):
    data = b"".join(
        stamped([""], START_NS + number * step_ns).rstrip(b"\n") + text + b"\n"
        for number, text in enumerate(texts)
    )
    data = data if is_whole or not data else data[:-1]
    assert replayed(record(data), started_ns=START_NS) == data


@given(lines)
def test_simulator_writes_the_bytes_that_were_recorded(tmp_path_factory, texts):
    stamp = stamped([""]).rstrip(b"\n")
    path = tmp_path_factory.mktemp("r") / "0.jsonl"
    path.write_text(record(b"".join(stamp + text + b"\n" for text in texts)))
    recording = load_recording(path)
    assert b"".join(each.data for each in recording.outputs) == b"".join(
        text + b"\n" for text in texts
    )


def test_line_longer_than_a_runtimes_record_becomes_one_again():
    whole = b"x" * 16_384 + b"y" * 10
    stamp = stamped([""]).rstrip(b"\n")
    data = stamp + whole[:16_384] + stamp + whole[16_384:] + b"\n"
    (line,) = record(data).splitlines()[1:]
    assert json.loads(line)["text"].encode() == whole


@pytest.mark.parametrize("data", [b"", b"no time here\n"])
def test_log_without_a_time_has_none(data):
    assert first_time_ns(data) == 0


def test_line_without_a_time_has_that_of_the_line_before():
    data = stamped(["a", "b"]) + b"torn\n"
    assert [json.loads(each)["offset_ms"] for each in record(data).splitlines()[1:]] == [0, 1, 1]
