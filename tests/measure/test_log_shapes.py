"""Shapes of lines around tables and steps that change nothing, or what they say."""

import re

import pytest

from tests.measure.reading import measured
from tests.measure.tables import device, sizes, table, text

TABLE = table()
WHOLE = measured(text(TABLE))


def each_line(change):
    return [change(line) for line in TABLE]


def inserted(after, *lines):
    return [each for line in TABLE for each in ((line, *lines) if after in line else (line,))]


SHAPES = {
    "parallel_init": each_line(lambda line: line.replace("graph: 0", "graph: 0, parallel_init:0")),
    "no nThread": each_line(lambda line: line.replace("nThread 1 nGpus 1 minBytes", "minBytes")),
    "parameters cut": each_line(lambda line: line.partition(" iters: 20")[0]),
    "options": inserted(
        "# nThread",
        "# Blocking Enabled: wait for completion and barrier after each collective ",
        "# Parallel Init Enabled: threads call into NcclInitRank concurrently ",
    ),
    "old device lines": each_line(
        lambda line: re.sub(
            r"Group  0 (Pid.*) on +(\S+) device +(\d) \[\S+\]", r"\1 on \2 device  \3 [0x0f]", line
        )
    ),
    "RCCL device lines": each_line(
        lambda line: re.sub(r"\[0000:(..):00\]", r"[0000:\1:00.0]", line)
    ),
    "cut device lines": each_line(
        lambda line: line[:55] + "..." if line.startswith("#  Rank") else line
    ),
    "MPI help between devices": inserted(
        "#  Rank  1", "WARNING: There was an error initializing an OpenFabrics device.", ""
    ),
    "no number signs": each_line(lambda line: line.replace("#", "")),
    "destroyed communicators": inserted(
        " float ", "n:7:8 [0] NCCL INFO comm 0x5 rank 0 nranks 4 - Destroy COMPLETE"
    ),
    "footer of later versions": inserted(
        "# Avg bus", "# GPU memory usage : 1.2 GiB", "# error: none", "# Writing JSON output to x"
    ),
    "asterisks of RCCL": inserted(
        " float ",
        "# Errors with asterisks indicate errors that have exceeded the maximum threshold.",
    ),
    "leading blanks": each_line(lambda line: "     " + line),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shape_around_a_table_changes_no_number(shape):
    found = measured(text(SHAPES[shape]))
    assert found.bandwidth == WHOLE.bandwidth
    assert (found.status, found.reasons) == ("complete", ())


def test_sweep_by_a_number_of_bytes_is_held_to_its_last_size():
    lines = [
        each.replace("step: 2(factor)", "step: 1024(bytes)") for each in table([1024, 2048, 3072])
    ]
    assert measured(text(lines)).status == "complete"
    short = [each for each in lines if not each.lstrip().startswith("3072 ")]
    assert "sizes-missing" in measured(text(short)).reasons


def test_versions_of_rccl_are_read():
    lines = ["rccl-tests: Version develop:abcdef1", "RCCL version : 2.22.3-develop", *TABLE[1:]]
    (found,) = measured(text(lines)).bandwidth.tables
    assert (found.tool_version, found.nccl_version) == ("develop:abcdef1", "2.22.3")


@pytest.mark.parametrize(
    ("line", "networks"),
    [
        ("h:1:2 [0] NCCL INFO Initialized NET plugin IB", ("IB",)),
        ("h:1:2 [0] NCCL INFO Assigned NET plugin IB to comm", ("IB",)),
        ("h:1:2 [ 6 ] NCCL INFO Using network IB", ("IB",)),
        ("NCCL INFO Using network IB", ("IB",)),
        ("h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC", ()),
        ("h:1:2 [0] NCCL WARN Failed to find ncclCollNetPlugin_v9 symbol", ()),
    ],
)
def test_lines_of_the_library_around_a_table_tell_the_network_or_nothing(line, networks):
    found = measured(text([*TABLE, line]))
    assert (found.status, found.bandwidth.transport) == ("complete", networks)


@pytest.mark.parametrize(
    "line",
    [
        "[2026-03-01 10:00:00] h:1:2 [0] ib.cc:1 NCCL WARN NET/IB : Got completion from peer 1.2.3.4<5> with status=12 opcode=0",
        "[rank1]: DistBackendError: NCCL error in: x.cpp:1, unhandled cuda error, NCCL version 2.20.5 ncclUnhandledCudaError: x",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
    ],
)
def test_failure_after_a_whole_table_fails_it(line):
    found = measured(text([*TABLE, line]))
    assert (found.status, found.reasons) == ("failed", ("failure",))


HEAD = " [2026-03-01 10:00:00] iteration       10/    1000 | consumed samples: 10 |"
TIME = " elapsed time per iteration (ms): 812.5 |"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            f"{HEAD}{TIME} throughput per GPU (TFLOP/s/GPU): 82.4 | energy per GPU (J/iter/GPU): 9.9 | power per GPU (W/GPU): 600.1 | lm loss: 1.5E+00 |",
            (10, 0.8125, 82.4, 1.5),
        ),
        (f"{HEAD} consumed tokens: 9 |{TIME} lm loss: 1.5E+00 |", (10, 0.8125, None, 1.5)),
        (
            f"{HEAD}{TIME} lm loss: 1.5E+00 | seq_load_balancing_loss: 1.1E-2 |",
            (10, 0.8125, None, 1.5),
        ),
        (f"{HEAD}{TIME} lm loss: 1.5E+00 | TFLOPs: 69.85 |", (10, 0.8125, 69.85, 1.5)),
        (
            f"{HEAD}{TIME} iteration time: 0.8125 s samples/sec: 1.2 | lm loss: 1.5E+00 |",
            (10, 0.8125, None, 1.5),
        ),
        (f"{HEAD}{TIME} lm loss: 1.5E+00 |time (ms) | forward: 1.0", (10, 0.8125, None, 1.5)),
        (f"{HEAD}{TIME} number of skipped iterations:  10 |", (10, 0.8125, None, None)),
        (
            f"{HEAD.replace('/    1000', '/infinity')}{TIME} lm loss: 1.5E+00 |",
            (10, 0.8125, None, 1.5),
        ),
        (
            " iteration=       3/  317892 | consumed_samples=  10 | elapsed_time_per_iteration_in_ms=812.5 | lm_loss=1.5E+00 | TFLOPs=69.8 |",
            (3, 0.8125, 69.8, 1.5),
        ),
    ],
)
def test_fields_of_a_megatron_line_are_read_whatever_stands_between(line, expected):
    (step,) = measured(text([line])).training.steps
    assert (step.step, step.step_time_s, step.tflops_per_gpu, step.loss) == expected


@pytest.mark.parametrize(
    "words",
    [
        "exiting program at iteration 10",
        "[exiting program after 60.1 minutes] datetime: 2026-03-01 10:00:01 ",
        "[after training is done] datetime: 2026-03-01 10:00:01 ",
    ],
)
def test_words_at_the_end_of_training_end_the_run(words):
    line = f"{HEAD}{TIME} lm loss: 1.5E+00 |"
    assert measured(text([line])).reasons == ("no-end",)
    assert measured(text([line, words])).status == "complete"


@pytest.mark.parametrize("form", ["on lines of its own", "glued"])
def test_time_of_a_save_is_that_of_the_timer(form):
    timer = "save-checkpoint ................................: (8123.45, 8124.50)"
    saved = "  successfully saved checkpoint at iteration      10 to /c"
    lines = [saved, "(min, max) time across ranks (ms):", f"    {timer}"]
    if form == "glued":
        lines = [f"{saved}(min, max) time across ranks (ms):    {timer}"]
    start = "saving checkpoint at iteration      10 to /c in torch format"
    run = measured(text([f"{HEAD}{TIME} lm loss: 1.5E+00 |", start, *lines])).training
    assert [(each.event, each.duration_s) for each in run.checkpoints] == [
        ("save_start", None),
        ("save_done", 8.1245),
    ]


def test_load_of_a_release_checkpoint_is_a_load():
    run = measured(
        text([" loading release checkpoint from /c", f"{HEAD}{TIME} lm loss: 1.5E+00 |"])
    )
    assert [each.event for each in run.training.checkpoints] == ["load_start"]


@pytest.mark.parametrize(
    "lines",
    [
        ["Batch 0 Loss: 11.65, Speed: 3.98 samples/sec, lr: 6e-06"] * 3,
        ["WARMUP 1", "STEP 1  loss=2.1", "STEP 2  loss=2.0"],
        ["***** train metrics *****", "  epoch                    =        1.0"],
        ["[train_ddp] should_commit=False enough_replicas=True, errored=aborted"],
    ],
)
def test_lines_that_no_reader_knows_are_no_data(lines):
    assert measured(text(lines)).status == "no-data"


def test_ranks_are_counted_by_their_lines():
    lines = table(sizes(), ranks=16)
    assert sum(each == device(15) for each in lines) == 1
    (found,) = measured(text(lines)).bandwidth.tables
    assert found.ranks == 16


@pytest.mark.parametrize(
    "header",
    [
        "#  size  count  redop  root  time  algbw  busbw  #wrong",
        "#  size  count  type  redop  root  time  algbw  busbw",
        "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw",
    ],
)
def test_header_that_lost_columns_is_none(header):
    lines = [header if "algbw" in each else each for each in TABLE]
    found = measured(text(lines))
    assert len(found.bandwidth.tables[0].rows) == len(sizes())


def test_exception_is_told_where_the_heading_of_its_traceback_is_gone():
    frames = ['  File "/opt/train.py", line 3, in save', "    self.write()"]
    line = f"{HEAD}{TIME} lm loss: 1.5E+00 |"
    found = measured(text([line, *frames, "OSError: no space left"]))
    assert (found.status, found.training.failure) == ("failed", "OSError: no space left")
