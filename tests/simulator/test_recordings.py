import json
import time

import pytest

from pytest_cre.simulator.recordings import load_recording, load_recordings

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


def recorded(folder, name, *lines, **header):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps({"recording": "cre.recording/1", **header})
    rest = [json.dumps({"offset_ms": 0, "text": line}) for line in lines]
    path.write_text("\n".join([head, *rest]))


def test_folder_holds_the_recording_of_each_pod_of_the_group(machines):
    recorded(machines.folder, "g/0.jsonl", "first", exit_code=0)
    recorded(machines.folder, "g/1.jsonl", "second", exit_code=3)
    world = machines.world("extends: h100-2\nrecordings: [{match: {}, file: g}]\n")
    played = machines.play(world, machines.torchrun(world, "x.py"))
    assert [(each.code, each.text) for each in played] == [(0, "first\n"), (3, "second\n")]


def test_folder_pod_without_an_index_replays_the_launchers(machines):
    recorded(machines.folder, "g/launcher.jsonl", "table")
    world = machines.world("extends: h100-2\nrecordings: [{match: {}, file: g}]\n")
    (played,) = machines.play(world, [machines.pod(["mpirun"], node="h100-0")])
    assert (played.code, played.text) == (0, "table\n")


def test_folder_next_container_of_a_pods_index_replays_the_next_recording(machines):
    recorded(machines.folder, "g/0.jsonl", "crash", exit_code=1)
    recorded(machines.folder, "g/0.1.jsonl", "works")
    world = machines.world("extends: h100-2\nrecordings: [{match: {}, file: g}]\n")
    pods = [machines.pod(["x"], node="h100-0", index=0) for _ in range(3)]
    texts = [machines.play(world, [pod])[0].text for pod in pods]
    assert texts == ["crash\n", "works\n", "works\n"]


def test_folder_without_a_recording_of_the_pod_or_its_first_ends_it_at_once(machines):
    recorded(machines.folder, "g/launcher.jsonl", "table")
    world = machines.world("extends: h100-2\nrecordings: [{match: {}, file: g}]\n")
    played = machines.play(world, machines.torchrun(world, "x.py"))
    assert [each.code for each in played] == [127, 127]
    assert "the recording holds no log of such a pod" in played[1].text


@pytest.mark.parametrize("name", ["00.jsonl", "a.jsonl", "0.log", "0.0.jsonl", "launcher.x.jsonl"])
def test_folder_with_a_file_of_another_name_is_refused(tmp_path, name):
    recorded(tmp_path, f"g/{name}")
    with pytest.raises(ValueError, match=r"is named 0\.jsonl"):
        load_recordings(tmp_path / "g")


def test_folder_that_is_empty_is_refused(tmp_path):
    with pytest.raises(ValueError, match="the folder is empty"):
        load_recordings(tmp_path)


@pytest.mark.parametrize("value", [-1, "1", True, 1e12])
def test_recording_with_a_bad_end_is_refused(tmp_path, value):
    recorded(tmp_path, "a.jsonl", ended_ms=value)
    with pytest.raises(ValueError, match=r"a\.jsonl:1: ended_ms must be a number from 0 on"):
        load_recording(tmp_path / "a.jsonl")


def test_container_ends_when_the_recorded_one_did(machines):
    recorded(machines.folder, "a.jsonl", "x", ended_ms=150)
    world = machines.world("extends: h100-2\nrecordings: [{match: {}, file: a.jsonl}]\n")
    start_s = time.monotonic()
    machines.play(world, [machines.pod(["x"], node="h100-0", index=0)])
    assert time.monotonic() - start_s > 0.145


def test_pods_of_a_job_count_from_the_moment_the_first_of_them_started(machines):
    recorded(machines.folder, "g/0.jsonl", "first", started_ns=10**18, ended_ms=200)
    recorded(machines.folder, "g/1.jsonl", "second", started_ns=10**18, ended_ms=200)
    world = machines.world("extends: h100-2\nrecordings: [{match: {}, file: g}]\n")
    first, second = machines.torchrun(world, "x.py")
    machines.play(world, [first])
    start_s = time.monotonic()
    machines.play(world, [second])  # late: its time is over
    assert time.monotonic() - start_s < 0.15


NOT_FITTING = "extends: h100-2\nrecordings: [{match: {entry: communcation/*}, file: a.log}]\n"
BENCHMARK = ["all_reduce_perf", "-b", "8", "-e", "64", "-g", "8"]


def test_generated_output_in_a_scenario_with_recordings_is_told(machines):
    (machines.folder / "a.log").write_bytes(b"# table\n")
    pods = [machines.pod(BENCHMARK, node="h100-0"), machines.pod(["echo", "x"], node="h100-1")]
    benchmark, shell = machines.play(machines.world(NOT_FITTING), pods)
    words = "no recording of the scenario matches this container, so its output is generated"
    assert benchmark.code == 0
    assert benchmark.warnings == [("NotReplayed", f"{words} (scenario scenario)")]
    assert shell.warnings == []


def test_only_recordings_ends_what_none_matches(machines):
    (machines.folder / "a.log").write_bytes(b"# table\n")
    world = machines.world(NOT_FITTING + "onlyRecordings: true\n")
    pods = [machines.pod(BENCHMARK, node="h100-0"), machines.pod(["echo", "x"], node="h100-1")]
    benchmark, shell = machines.play(world, pods)
    assert benchmark.code == 127
    assert benchmark.text == (
        "simulator: no recording of the scenario matches this container, and onlyRecordings is set\n"
    )
    assert shell.text == "x\n"
