"""What `pytest-cre measure` is fed: event sequences and their exit codes, odd files, odd terminals."""

import io
import json
import os
import socket
import sys
from threading import Thread

import pytest

from pytest_cre.cli import main
from tests.measure.megatron import EPOCH_NS, step_line
from tests.measure.tables import stamped, table, text

SECOND = 10**9
BEGUN = "{e: open, t: 0}, {e: proc_start, t: 0}, {e: load_end, t: 0, n: 0}"
STEPS = "{e: steps, first: 1, last: 100, t: 1, dt: 1}"
SAVE = "{e: save_start, t: 100, n: 100}, {e: save_end, t: 110, n: 100}"
MORE = "{e: steps, first: 101, last: 150, t: 111, dt: 1}"
RUN = text(stamped([step_line(n, EPOCH_NS + n * SECOND, SECOND, total=30) for n in range(1, 31)]))


@pytest.fixture
def measure(capsys):
    def run(*arguments):
        code = main(["measure", *map(str, arguments), "--format", "json"])
        printed = capsys.readouterr()
        return code, [json.loads(line) for line in printed.out.splitlines()], printed.err

    return run


@pytest.fixture
def events(tmp_path):
    def write(*sequences, params="{s_ref: 1}"):
        path = tmp_path / "events.yaml"
        if len(sequences) == 1:
            path.write_text(f"params: {params}\nevents: [{sequences[0]}]\n")
        else:
            rows = (f"- {{params: {params}, events: [{each}]}}\n" for each in sequences)
            path.write_text("vectors:\n" + "".join(rows))
        return path

    return write


WHOLE = f"{BEGUN}, {STEPS}, {{e: end, t: 100}}"
FAILED = f"{BEGUN}, {STEPS}, {SAVE}, {MORE}, {{e: abort, t: 160, reason: crash}}"
RUNNING = f"{BEGUN}, {STEPS}, {{e: close, t: 100}}"


@pytest.mark.parametrize(
    ("sequences", "code", "statuses"),
    [
        ([WHOLE], 0, ["complete"]),
        ([FAILED], 1, ["failed"]),
        ([RUNNING], 10, ["incomplete"]),
        (["{e: open, t: 0}"], 10, ["no-data"]),
        ([WHOLE, WHOLE], 0, ["complete", "complete"]),
        ([WHOLE, RUNNING], 10, ["complete", "incomplete"]),
        ([RUNNING, FAILED, WHOLE], 1, ["incomplete", "failed", "complete"]),
    ],
)
def test_exit_code_of_event_sequences_is_that_of_the_worst(
    measure, events, sequences, code, statuses
):
    given, found, err = measure("--events", events(*sequences))
    assert (given, [each["status"] for each in found], err) == (code, statuses, "")


@pytest.mark.parametrize(("closed_s", "other_s"), [(None, 0), (160, 0), (200, 40)])
def test_sequence_that_ends_in_abort_is_a_job_that_failed(measure, events, closed_s, other_s):
    close = "" if closed_s is None else f", {{e: close, t: {closed_s}}}"
    code, (found,), _ = measure("--events", events(FAILED + close))
    training = found["training"]
    ledger = {name: seconds for name, seconds in training["ledger_s"].items() if seconds}
    assert code == 1
    assert (found["status"], found["reasons"]) == ("failed", ["job-failed"])
    assert training["failure"] == "crash"
    # Only what was saved survives.
    expected = {"useful": 100, "rework": 50, "checkpoint_blocking": 10, "other": other_s}
    assert ledger == {name: seconds for name, seconds in expected.items() if seconds}
    assert training["window_s"] == 160 + other_s


def test_abort_that_something_followed_is_no_end(measure, events):
    again = f"{FAILED}, {{e: proc_start, t: 170}}, {{e: load_end, t: 180, n: 100}}"
    code, (found,), _ = measure("--events", events(again))
    assert (code, found["reasons"]) == (10, ["no-end"])


def test_outcome_that_is_given_stands(measure, events):
    path = events(FAILED, params="{s_ref: 1, succeeded: true}")
    code, (found,), _ = measure("--events", path)
    assert (code, found["status"], found["training"]["failure"]) == (0, "complete", None)


def test_steps_farther_than_any_run_are_a_mistake(measure, events):
    steps = "{e: steps, first: 1, last: 900000, t: 4000000000, dt: 4000000000}"
    code, found, err = measure("--events", events(f"{BEGUN}, {steps}"))
    assert (code, found) == (3, [])
    assert "the last step is more than 4e9 seconds away" in err


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le-bom", "utf-16-be-bom"])
@pytest.mark.parametrize("chunk", [1, 7, 262_144])
def test_mark_at_the_start_tells_how_a_file_is_written(
    measure, tmp_path, monkeypatch, encoding, chunk
):
    monkeypatch.setattr("pytest_cre.cli.measure.READ_BYTES", chunk)
    mark = "\ufeff" if encoding.endswith("-bom") else ""
    (tmp_path / "marked.log").write_bytes(
        (mark + RUN.decode()).encode(encoding.removesuffix("-bom"))
    )
    (tmp_path / "usual.log").write_bytes(RUN)
    marked, usual = (measure(tmp_path / f"{name}.log")[1][0] for name in ("marked", "usual"))
    assert marked["status"] == "complete"
    assert marked["training"] == usual["training"]
    assert marked["inputs"][0]["bytes"] == (tmp_path / "marked.log").stat().st_size


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe\x00",
        b"\xff\xfe" + b"\x00\xd8" * 99,
        b"\xfe\xff\xd8\x00\n",
        b"\xef\xbb",
        b"\xff",
        b"\x1f\x8b\x08" + b"\x00" * 99,
    ],
)
def test_binary_file_is_no_data(measure, tmp_path, data):
    path = tmp_path / "binary"
    path.write_bytes(data)
    code, (found,), err = measure(path)
    assert (code, found["status"], err) == (10, "no-data", "")


def test_path_that_is_no_file_is_unreadable(measure, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for name in ("a", "socket", "nowhere/x"):
            code, found, err = measure(name)
            assert (code, found) == (3, [])
            assert err.startswith(f"pytest-cre measure: {name}: cannot be read: ")
            assert err.count("\n") == 1


def test_pipe_is_read_to_its_end(measure, tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = Thread(target=path.write_bytes, args=(RUN,))
    writer.start()
    code, (found,), _ = measure(path)
    writer.join()
    assert (code, found["inputs"][0]["bytes"]) == (0, len(RUN))


def test_standard_input_that_is_closed_is_unreadable(measure, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert measure("-") == (3, [], "pytest-cre measure: -: standard input is closed\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_text_form_fits_the_terminals_encoding(tmp_path, monkeypatch, encoding):
    path = tmp_path / "a.log"
    path.write_bytes(text([*table(), "n:1:2 [0] NCCL INFO Using network \u2192x"]))
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding=encoding))
    assert main(["measure", str(path)]) == 0
    assert b"network: \\u2192x" in shown.getvalue()
