import json

import pytest

from pytest_cre.simulator.recordings import load_recording

HEADER = json.dumps({"recording": "cre.recording/1", "exit_code": 3})


def write(tmp_path, data):
    path = tmp_path / "a.log"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("data", [b"", b"a\nb\n", b"a\r\nb", b"\xff\x00x\n\n", b"a\rb\rc"])
def test_plain_log_is_replayed_byte_for_byte(tmp_path, data):
    recording = load_recording(write(tmp_path, data))
    assert b"".join(output.data for output in recording.outputs) == data
    assert recording.exit_code == 0


def test_recording_with_times_is_sorted_by_them(tmp_path):
    lines = [
        HEADER,
        '{"offset_ms": 20, "text": "b"}',
        '{"offset_ms": 5, "stream": "stderr", "text": "a"}',
    ]
    recording = load_recording(write(tmp_path, "\n".join(lines).encode()))
    assert [(each.offset_s, each.stream, each.data) for each in recording.outputs] == [
        (0.005, "stderr", b"a\n"),
        (0.02, "stdout", b"b\n"),
    ]
    assert recording.exit_code == 3


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"text": "a"}',
        '{"offset_ms": -1, "text": "a"}',
        '{"offset_ms": NaN, "text": "a"}',
        '{"offset_ms": true, "text": "a"}',
        '{"offset_ms": 1, "text": 5}',
        '{"offset_ms": 1, "stream": "log", "text": "a"}',
        '{"offset_ms": 1, "text": "\\ud800"}',
    ],
)
def test_recording_with_a_bad_line_names_its_place(tmp_path, line):
    path = write(tmp_path, f"{HEADER}\n{line}\n".encode())
    with pytest.raises(ValueError, match=r"a\.log:2: ") as problem:
        load_recording(path)
    assert "\n" not in str(problem.value)


def test_recording_with_a_bad_exit_code_is_refused(tmp_path):
    header = json.dumps({"recording": "cre.recording/1", "exit_code": 300})
    with pytest.raises(ValueError, match="exit_code must be 0 to 255"):
        load_recording(write(tmp_path, header.encode()))


def test_replay_by_index_zero_ends_the_others_with_its_code(machines):
    (machines.folder / "a.log").write_bytes(b"# table\nlast")
    world = machines.world(
        "extends: h100-2\nrecordings: [{match: {entry: communication/*}, file: a.log, exitCode: 4}]\n"
    )
    pods = machines.torchrun(world, "x.py", entry="communication/nccl-all-reduce")
    first, second = machines.play(world, pods)
    assert (first.code, first.text) == (4, "# table\nlast")
    assert (second.code, second.text) == (4, "")


def test_replay_leaves_other_entries_to_their_programs(machines):
    (machines.folder / "a.log").write_bytes(b"# table\n")
    world = machines.world(
        "extends: h100-2\nrecordings: [{match: {entry: communication/*}, file: a.log}]\n"
    )
    pod = machines.pod(["echo", "hello"], node="h100-0", entry="training/x")
    assert machines.play(world, [pod])[0].text == "hello\n"
