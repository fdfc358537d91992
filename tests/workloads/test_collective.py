import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_cre import workloads
from pytest_cre.cli import main

SCRIPT = Path(workloads.__file__).parent / "collective.py"
TIMEOUT_S = 120
ROW = re.compile(
    r" *(?P<size>\d+) +(?P<count>\d+) +(?P<dtype>\w+) +(?P<redop>sum|none) +(?P<root>-?\d+)"
    r"  (?P<halves>.*)"
)
HALF = re.compile(r" *(\d+(?:\.\d+)?) +(\d+\.\d\d) +(\d+\.\d\d) +(\d+|N/A)")
FACTORS = {  # on 2 and on 3 ranks, as the performance page of nccl-tests gives them
    "all_reduce": (1.0, 4 / 3),
    "all_gather": (1 / 2, 2 / 3),
    "reduce_scatter": (1 / 2, 2 / 3),
    "alltoall": (1 / 2, 2 / 3),
    "broadcast": (1.0, 1.0),
    "sendrecv": (1.0, 1.0),
}
SWEEPS = {
    **{name: f"--collective {name} -b 8 -e 2M -f 64 -n 2 -w 1" for name in FACTORS},
    "steps": "--collective all_reduce -b 1K -e 4K -i 1K -n 1 -w 0 -d half",
    "bytes": "--collective alltoall -b 96 -e 96 -f 2 -n 1 -w 0 -d uint8",
    "unchecked": "--collective all_reduce -b 1K -e 1K -f 2 -n 1 -c 0 -d int32",
    "cycles": "--collective all_gather -b 1K -e 4K -f 2 -n 1 -w 0 -N 3",
    "spoilt": "--collective all_reduce -b 1K -e 4K -f 2 -n 1 --plant-wrong 1:400",
    "spoilt twice": "--collective alltoall -b 1K -e 1K -f 2 -n 1 -N 2 --plant-wrong 0:3",
}


@dataclass
class Half:
    time_us: str
    algbw_gbs: float
    busbw_gbs: float
    wrong: str

    def agrees(self, size_bytes, factor):
        """Whether both bandwidths follow from the time, as far as all three were rounded."""
        decimals = len(self.time_us.partition(".")[2])
        times_us = [float(self.time_us) + sign * 0.5 * 10**-decimals for sign in (1, -1)]
        least, most = (size_bytes / time_us / 1e3 for time_us in times_us)
        return (
            least - 0.005001 <= self.algbw_gbs <= most + 0.005001
            and least * factor - 0.005001 <= self.busbw_gbs <= most * factor + 0.005001
        )


@dataclass
class Row:
    size: int
    count: int
    dtype: str
    redop: str
    root: int
    halves: list[Half]


def rows_of(lines):
    """The table's rows; a row that is not in the exact 13-token layout fails the test."""
    rows = []
    for line in lines:
        if line.startswith("#"):
            continue
        found = ROW.fullmatch(line)
        assert found, line
        halves = HALF.findall(found["halves"])
        assert len(line.split()) == 13
        assert "".join(map("".join, halves)) == found["halves"].replace(" ", "")
        rows.append(
            Row(
                size=int(found["size"]),
                count=int(found["count"]),
                dtype=found["dtype"],
                redop=found["redop"],
                root=int(found["root"]),
                halves=[Half(t, float(a), float(b), w) for t, a, b, w in halves],
            )
        )
    return rows


@pytest.fixture
def measured(tmp_path, capsys):
    """Exit code and document of `pytest-cre measure` for an output."""

    def measure(lines):
        path = tmp_path / "table.log"
        path.write_text("\n".join(lines) + "\n")
        code = main(["measure", str(path), "--format", "json"])
        return code, json.loads(capsys.readouterr().out)

    return measure


@pytest.fixture(scope="module")
def two_ranks(run_sweeps):
    found = run_sweeps(2, *SWEEPS.values())
    return {name: found[arguments] for name, arguments in SWEEPS.items()}


@pytest.fixture(scope="module")
def three_ranks(run_sweeps):
    names = ("all_reduce", "reduce_scatter", "sendrecv")
    sweeps = [f"--collective {name} -b 4 -e 1M -f 512 -n 1 -w 1" for name in names]
    return dict(zip(names, run_sweeps(3, *sweeps).values(), strict=True))


@pytest.mark.parametrize("collective", sorted(FACTORS))
def test_collective_two_ranks_exchange_right_values(two_ranks, collective):
    lines, code = two_ranks[collective]
    rows = rows_of(lines)
    in_place = "N/A" if collective in ("alltoall", "sendrecv") else "0"

    assert code == 0
    assert [row.size for row in rows] == [8, 512, 32 << 10, 2 << 20]
    assert all([half.wrong for half in row.halves] == ["0", in_place] for row in rows)
    assert "# Out of bounds values : 0 OK" in lines
    assert f"# Collective test starting: {collective}_perf" in lines
    assert lines[-1] == f"# Collective test concluded: {collective}_perf"


@pytest.mark.parametrize("collective", sorted(FACTORS))
def test_collective_bandwidths_follow_size_time_and_factor(two_ranks, collective):
    rows = rows_of(two_ranks[collective][0])

    assert all(half.agrees(row.size, FACTORS[collective][0]) for row in rows for half in row.halves)
    assert any(half.busbw_gbs > 0 for half in rows[-1].halves)


@pytest.mark.parametrize("collective", sorted(FACTORS))
def test_collective_columns_say_what_was_moved(two_ranks, collective):
    row = rows_of(two_ranks[collective][0])[-1]
    is_shared = collective in ("all_gather", "reduce_scatter", "alltoall")

    assert row.count == row.size // 4 // (2 if is_shared else 1)
    assert row.dtype == "float"
    assert row.redop == ("sum" if collective in ("all_reduce", "reduce_scatter") else "none")
    assert row.root == (0 if collective == "broadcast" else -1)


def test_collective_average_is_the_mean_of_both_halves(two_ranks):
    lines, _ = two_ranks["all_reduce"]
    values = [half.busbw_gbs for row in rows_of(lines) for half in row.halves]
    printed = next(line for line in lines if line.startswith("# Avg bus bandwidth    : "))

    average = float(printed.rpartition(":")[2])
    assert average == pytest.approx(sum(values) / len(values), abs=0.0051)


def test_collective_header_names_parameters_ranks_and_transport(two_ranks):
    lines, _ = two_ranks["all_reduce"]

    assert (
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 2097152 step: 64(factor) warmup iters: 1 iters: 2 "
        "agg iters: 1 validation: 1 graph: 0"
    ) in lines
    assert sum(bool(re.match(r"#  Rank  [01] Group  0 Pid +\d+ on ", line)) for line in lines) == 2
    assert "# Using network Socket" in lines
    columns = next(line for line in lines if "#wrong" in line)
    assert columns.split()[1:] == [
        *("size", "count", "type", "redop", "root"),
        *("time", "algbw", "busbw", "#wrong") * 2,
    ]


def test_collective_fixed_step_and_other_types_follow_the_arguments(two_ranks):
    steps = rows_of(two_ranks["steps"][0])
    in_bytes = rows_of(two_ranks["bytes"][0])

    assert [(row.size, row.count) for row in steps] == [
        (size << 10, size << 9) for size in (1, 2, 3, 4)
    ]
    assert {row.dtype for row in steps} == {"half"}
    assert [(row.size, row.count, row.dtype) for row in in_bytes] == [(96, 48, "uint8")]


def test_collective_without_check_reports_no_counts(two_ranks):
    lines, code = two_ranks["unchecked"]

    assert code == 0
    assert [half.wrong for half in rows_of(lines)[0].halves] == ["N/A", "N/A"]
    assert any("validation: 0" in line for line in lines)


def test_collective_cycles_repeat_the_whole_sweep_in_one_table(two_ranks):
    lines, code = two_ranks["cycles"]

    assert code == 0
    assert [row.size for row in rows_of(lines)] == [1024, 2048, 4096] * 3
    assert sum("size         count" in line for line in lines) == 1
    assert sum(line.startswith("# Avg bus bandwidth") for line in lines) == 1


def test_collective_planted_wrong_value_is_reported_and_ends_with_code_1(two_ranks):
    lines, code = two_ranks["spoilt"]
    wrong = {row.size: [half.wrong for half in row.halves] for row in rows_of(lines)}

    assert code == 1
    # Element 400 of rank 1 exists from 2 KiB on.
    assert wrong == {1024: ["0", "0"], 2048: ["1", "1"], 4096: ["1", "1"]}
    # Four cells are wrong, and each of two ranks counts them, as nccl-tests does.
    assert "# Out of bounds values : 8 FAILED" in lines


def test_collective_planted_wrong_value_stands_in_every_cycle(two_ranks):
    lines, code = two_ranks["spoilt twice"]

    assert code == 1
    assert [[half.wrong for half in row.halves] for row in rows_of(lines)] == [["1", "N/A"]] * 2


@pytest.mark.parametrize("collective", sorted(FACTORS))
def test_collective_table_is_measured_as_complete(two_ranks, measured, collective):
    code, document = measured(two_ranks[collective][0])

    assert code == 0
    assert (document["status"], document["reasons"]) == ("complete", [])
    (table,) = document["bandwidth"]["tables"]
    assert (table["test"], table["ranks"], table["complete"]) == (collective, 2, True)
    assert [row["size_bytes"] for row in table["rows"]] == [8, 512, 32 << 10, 2 << 20]
    assert {row["out_of_place"]["wrong"] for row in table["rows"]} == {0}


def test_collective_planted_wrong_value_is_measured_as_failed(two_ranks, measured):
    code, document = measured(two_ranks["spoilt"][0])

    assert code == 1
    assert document["status"] == "failed"
    assert {"wrong-values", "out-of-bounds"} <= set(document["reasons"])
    rows = document["bandwidth"]["tables"][0]["rows"]
    assert [row["out_of_place"]["wrong"] for row in rows] == [0, 1, 1]


def test_collective_cycles_are_measured_as_one_complete_table(two_ranks, measured):
    code, document = measured(two_ranks["cycles"][0])

    assert code == 0
    assert (document["status"], document["reasons"]) == ("complete", [])
    assert len(document["bandwidth"]["tables"]) == 1


@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "sendrecv"])
def test_collective_three_ranks_have_factors_and_sizes_of_their_own(three_ranks, collective):
    lines, code = three_ranks[collective]
    rows = rows_of(lines)

    assert code == 0
    assert all(row.halves[0].wrong == "0" for row in rows)
    assert all(half.agrees(row.size, FACTORS[collective][1]) for row in rows for half in row.halves)
    if collective == "reduce_scatter":
        # 4 bytes leave two ranks nothing: one float each, 12 bytes. The others round down.
        assert [(row.size, row.count) for row in rows] == [(12, 1), (2040, 170), (1048572, 87381)]


MISTAKES = {
    "-b 8X": "must be a size such as 8, 512M or 16G, got '8X'",
    "-b 2 -e 1": "-b must be at least 1 and at most -e",
    "-f 1": "must be a whole number of at least 2, got '1'",
    "-f 2 -i 8": "-f and -i exclude each other",
    "-N 0": "must be a whole number of at least 1, got '0'",
    "--plant-wrong 7": "must be RANK:INDEX such as 1:0, got '7'",
    "": "RANK, WORLD_SIZE, MASTER_ADDR not set; start this with torchrun",
}
PARSE_EACH = """
import contextlib, io, json, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import collective
for arguments in sys.argv[2:]:
    error = io.StringIO()
    try:
        with contextlib.redirect_stderr(error):
            collective.parse_arguments(arguments.split())
    except SystemExit as end:
        print(json.dumps([end.code, error.getvalue().strip().splitlines()[-1]]))
"""


def test_collective_mistakes_end_with_code_2_and_one_line_each(torch_python, environment):
    result = subprocess.run(
        [torch_python, "-c", PARSE_EACH, SCRIPT, *MISTAKES],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    told = [json.loads(line) for line in result.stdout.splitlines()]

    assert [code for code, _ in told] == [2] * len(MISTAKES)
    for (_, message), words in zip(told, MISTAKES.values(), strict=True):
        assert message.endswith(words)
