"""Times that a recorded program printed, at the time of its replay."""

import json
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.simulator.shifting import NS, Shift

RECORDED = datetime(2026, 3, 30, 12, 0, 0, tzinfo=UTC)
REPLAYED = datetime(2027, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC)


def shift(**changes):
    given_ns = {
        "recorded_ns": int(RECORDED.timestamp()) * NS,
        "lasted_ns": 3600 * NS,
        "replayed_ns": int(REPLAYED.timestamp()) * NS + 250_000_000,
    }
    return Shift(**{**given_ns, **changes})


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("[2026-03-30 12:00:01.500000] iteration 1", "[2027-01-01 00:00:01.750000] iteration 1"),
        ("2026-03-30T12:00:10Z start", "2027-01-01T00:00:10Z start"),
        ("2026-03-30 12:00:10,125 INFO", "2027-01-01 00:00:10,375 INFO"),
        ("I0330 12:00:59.750000 12 x.cc:1] a", "I0101 00:01:00.000000 12 x.cc:1] a"),
        ("local 2026-03-30 21:00:00 here", "local 2027-01-01 09:00:00 here"),
        ("built 2024-01-01 00:00:00", "built 2024-01-01 00:00:00"),
        ("no time: 2026-13-45 12:00:00", "no time: 2026-13-45 12:00:00"),
        ("12345-03-30 12:00:00", "12345-03-30 12:00:00"),
    ],
)
def test_times_of_the_recorded_run_move_and_others_stay(text, moved):
    assert shift().moved(text.encode()).decode() == moved


@given(st.binary())
def test_any_output_is_moved_or_left_alone(data):
    shift().moved(data)


def test_replay_prints_its_own_time(machines):
    recorded_ns = int(RECORDED.timestamp()) * NS
    header = {"recording": "cre.recording/1", "started_ns": recorded_ns}
    line = {"offset_ms": 5, "text": "at 2026-03-30 12:00:00.005000"}
    (machines.folder / "a.jsonl").write_text(f"{json.dumps(header)}\n{json.dumps(line)}\n")
    world = machines.world("extends: h100-2\nrecordings: [{match: {}, file: a.jsonl}]\n")
    (played,) = machines.play(world, [machines.pod(["x"], node="h100-0", index=0)])
    printed = datetime.fromisoformat(played.text.removeprefix("at ").strip() + "+00:00")
    assert abs(printed.timestamp() - time.time()) < 5
