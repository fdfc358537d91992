"""`pytest-cre measure`: files, streams, options, exit codes."""

import hashlib
import io
import json
import sys

import pytest

from pytest_cre.cli import main
from tests.measure.megatron import EPOCH_NS, step_line
from tests.measure.tables import row, sizes, stamped, table, text

SECOND = 10**9


def steps(first=1, last=30, total=999):
    return [
        step_line(n, EPOCH_NS + n * SECOND, SECOND, total=total) for n in range(first, last + 1)
    ]


@pytest.fixture
def measure(capsys):
    def run(*arguments):
        code = main(["measure", *map(str, arguments)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def log(tmp_path):
    def write(lines, name="a.log"):
        path = tmp_path / name
        path.write_bytes(text(lines) if isinstance(lines, list) else lines)
        return path

    return write


WRONG = table(rows=[row(size, wrong=(1, 0)) for size in sizes()])


@pytest.mark.parametrize(
    ("lines", "code", "status"),
    [
        (table(), 0, "complete"),
        (WRONG, 1, "failed"),
        (table()[:-4], 10, "incomplete"),
        (["nothing"], 10, "no-data"),
        ([], 10, "no-data"),
        (stamped(steps(total=30)), 0, "complete"),
        (stamped(steps()), 10, "incomplete"),
        ([*stamped(steps()), "Traceback (most recent call last):", "ValueError: x"], 1, "failed"),
    ],
)
def test_exit_code_and_status_follow_what_was_measured(measure, log, lines, code, status):
    given, out, err = measure(log(lines), "--format", "json")
    assert (given, json.loads(out)["status"], err) == (code, status, "")


def test_inputs_are_listed_with_size_and_digest(measure, log):
    path = log(table())
    _, out, _ = measure(path, "--format", "json")
    data = path.read_bytes()
    assert json.loads(out)["inputs"] == [
        {"path": str(path), "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    ]


def test_several_files_are_streams_of_one_job(measure, log):
    lines = stamped(table())
    first, second = log(lines[:14]), log(lines[14:], "b.log")
    code, out, _ = measure(f"rank-0={first}", second, "--format", "json")
    assert (code, len(json.loads(out)["bandwidth"]["tables"])) == (0, 1)
    assert [each["path"] for each in json.loads(out)["inputs"]] == [str(first), str(second)]


def test_standard_input_is_a_file_named_dash(measure, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(text(table()))

    monkeypatch.setattr(sys, "stdin", Stdin)
    code, out, _ = measure("-", "--format", "json")
    assert (code, json.loads(out)["inputs"][0]["path"]) == (0, "-")


def test_window_is_given_by_start_and_end(measure, log):
    path = log(stamped(steps(total=30)))
    _, out, _ = measure(
        path,
        "--format",
        "json",
        "--start",
        "2026-01-05T00:00:00Z",
        "--end",
        "2026-01-05T01:01:00+01:00",
    )
    training = json.loads(out)["training"]
    assert training["window_s"] == 60.0
    assert training["ledger_s"]["other"] == 30.0


def test_window_without_any_step_has_ratios_of_zero(measure, log):
    path = log(
        [
            "2026-01-05T00:00:01Z using world size: 8, data-parallel size: 8, context-parallel size: 1"
        ]
    )
    _, out, _ = measure(
        path, "--format", "json", "--start", "2026-01-05T00:00:00Z", "--end", "2026-01-05T00:06:00Z"
    )
    training = json.loads(out)["training"]
    assert {
        training["ratios"][name] for name in ("goodput", "ledger", "runtime", "strict_durable")
    } == {0.0}
    assert training["window_s"] == 360.0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "at least one FILE"),
        (["LOG", "--start", "yesterday"], 2, "--start: 'yesterday' is no RFC 3339 time"),
        (
            ["LOG", "--start", "2026-01-05T00:00:01Z", "--end", "2026-01-05T00:00:00Z"],
            2,
            "is before --start",
        ),
        (["LOG", "--profile", "nonsense"], 2, "no such profile; one of dcgm"),
        (["LOG", "--profile", "./missing.yaml"], 2, "there is no such file"),
        (["LOG", "--events", "x.yaml"], 2, "stands alone"),
        (["missing.log"], 3, "missing.log: cannot be read: No such file"),
        (["FOLDER"], 3, "cannot be read: Is a directory"),
        (["--events", "missing.yaml"], 3, "missing.yaml: cannot be read"),
        (["--events", "LOG"], 3, "a.log:13:9: expected a mapping"),
        (["bad\0name"], 3, "cannot be read"),
    ],
)
def test_mistake_is_told_in_one_line(measure, log, tmp_path, arguments, code, words):
    places = {"LOG": str(log(table())), "FOLDER": str(tmp_path)}
    given, out, err = measure(*(places.get(each, each) for each in arguments))
    assert (given, out) == (code, "")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["megatron-training", "FILE"])
def test_profile_is_taken_by_name_or_from_a_file(measure, log, name):
    own = log(
        b"""apiVersion: nvcre.nvidia.com/v1alpha1
kind: LogProfile
metadata:
  name: mine
spec:
  timestamp:
    layout: "2006-01-02 15:04:05.999999"
  patterns:
    trainingStep:
      regex: 'iteration +(?P<iteration>\\d+)/'
      example: 'iteration 5/ 9'
""",
        "mine.yaml",
    )
    _, out, _ = measure(
        log(stamped(steps())), "--format", "json", "--profile", own if name == "FILE" else name
    )
    found = json.loads(out)
    assert found["profile"] == ("mine" if name == "FILE" else "megatron-training")
    assert found["training"]["summary"]["step_records"] == (30 if name == "FILE" else 3)


def test_profile_with_a_mistake_is_told_with_its_place(measure, log):
    own = log(
        b"apiVersion: nvcre.nvidia.com/v1alpha1\nkind: LogProfile\nmetadata: {name: x}\nspec: {timestamp: {layout: a}, patterns: {trainingStep: {regex: '(?=x)'}}}\n",
        "mine.yaml",
    )
    code, _, err = measure(log(table()), "--profile", own)
    assert code == 3
    assert "mine.yaml:4:" in err


EVENTS = """
params: {s_ref: 1}
events:
- {e: open, t: 0}
- {e: proc_start, t: 0}
- {e: load_end, t: 0, n: 0}
- {e: steps, first: 1, last: 50, t: 1, dt: 1}
- {e: end, t: 60}
"""


def test_event_file_gives_the_same_document(measure, log):
    code, out, _ = measure("--events", log(EVENTS.encode(), "e.yaml"), "--format", "json")
    found = json.loads(out)
    assert (code, found["schema"], found["status"]) == (0, "cre.measure/1", "complete")
    assert found["training"]["window_s"] == 60
    assert {name: value for name, value in found["training"]["ledger_s"].items() if value} == {
        "useful": 50,
        "other": 10,
    }
    assert len(found["training"]["steps"]) == 50


def test_event_file_of_several_gives_a_line_each_with_its_name(measure, log):
    several = "vectors:\n" + "".join(
        f"- name: {name}\n" + "".join(f"  {line}\n" for line in EVENTS.strip().split("\n"))
        for name in ("one", "two")
    )
    _, out, _ = measure("--events", log(several.encode(), "e.yaml"), "--format", "json")
    assert [json.loads(line)["name"] for line in out.splitlines()] == ["one", "two"]


def test_text_form_shows_table_ledger_and_doubts(measure, log):
    _, out, _ = measure(log(WRONG))
    assert "bandwidth: failed, profile nccl-bandwidth" in out
    assert "reason wrong-values: rows count wrong elements" in out
    assert (
        "\n64 KiB  float  sum       665.36  43.69  65.54      1     665.36  43.86  65.79      0"
        in out
    )
    _, out, _ = measure(
        log(stamped(steps(total=30))),
        "--start",
        "2026-01-05T00:00:00Z",
        "--end",
        "2026-01-05T00:01:00Z",
    )
    assert "  other                     30.000 s  50.00 %  #########################\n" in out
    assert "ratio goodput              1.0000\n" in out
    assert "flag reference_estimated: the step time to compare with is estimated" in out


def test_text_form_is_narrow_and_never_sends_controls(measure, log):
    hostile = [
        *table(start="all\x1b]0;evil\x07_perf")[:-4],
        "Test NCCL failure x.cu:1 '\x1b[2J\x9b31m" + "long " * 80,
        "node-0:1:1 [0] NCCL INFO Using network \x07\x9bbad",
    ]
    _, out, _ = measure(log(hostile))
    assert max(map(len, out.splitlines())) <= 100
    assert all(character.isprintable() for line in out.splitlines() for character in line)
    assert "failure" in out
