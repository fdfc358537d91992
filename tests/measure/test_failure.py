"""Failures that logs tell of."""

import pytest

from tests.measure.reading import measured
from tests.measure.tables import table, text

TRACEBACK = ["Traceback (most recent call last):", '  File "a.py", line 1, in <module>']
IB = "[2026-01-05 08:00:01] node-0:1:2 [0] transport/net_ib.cc:123 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4791> with status=12 opcode=0 len=0 vendor err 129 (Recv)"


def read(*lines, before=20):
    return measured(text([*table()[:before], *lines]))


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            ["node-1: Test NCCL failure all_reduce.cu:44 'unhandled system error / '"],
            "Test NCCL failure",
        ),
        (
            [
                " .. node-1 pid 77: Test CUDA failure common.cu:99 'an illegal memory access was encountered'"
            ],
            "Test CUDA failure",
        ),
        ([IB], "Got completion from peer"),
        (["[0] NCCL WARN NET/OFI Request 0x1 completed with error. RC: 5"], "completed with error"),
        (
            [
                "[rank3]:[E105 08:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)"
            ],
            "Watchdog caught",
        ),
        (
            [
                "[node-0:77] *** Process received signal ***",
                "[node-0:77] Signal: Segmentation fault (11)",
            ],
            "Segmentation fault",
        ),
        (
            [
                "mpirun noticed that process rank 3 with PID 0 on node node-1 exited on signal 9 (Killed)."
            ],
            "exited on signal 9",
        ),
        (["MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD"], "MPI_ABORT"),
        (["srun: error: node-1: task 3: Exited with exit code 2"], "srun: error"),
        (
            [*TRACEBACK, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"],
            "CUDA out of memory",
        ),
        ([*TRACEBACK, "RuntimeError"], "RuntimeError"),
        ([" .. node-1 pid 77: Test failure common.cu:1189"], "Test failure common.cu:1189"),
    ],
)
def test_failure_is_recognised_with_its_line(lines, told):
    measurement = read(*lines)
    assert measurement.status == "failed"
    assert "failure" in measurement.reasons
    assert told in measurement.bandwidth.failure


def test_failure_nearest_to_the_cause_is_told_whatever_the_order():
    lines = [
        "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
        *TRACEBACK,
        "RuntimeError: NCCL communicator",
        "node-1: Test NCCL failure all_reduce.cu:44 'remote process exited / '",
        IB,
    ]
    assert "Got completion" in read(*lines).bandwidth.failure
    assert "Got completion" in read(*reversed(lines)).bandwidth.failure


def test_last_exception_of_a_chain_is_told():
    lines = [
        *TRACEBACK,
        "KeyError: 'a'",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        *TRACEBACK,
        "ValueError: bad config",
    ]
    assert read(*lines).bandwidth.failure == "ValueError: bad config"


def test_launchers_summary_of_failed_children_is_told_last():
    lines = [
        *TRACEBACK,
        "ValueError: bad",
        *TRACEBACK,
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    ]
    assert read(*lines).bandwidth.failure == "ValueError: bad"


@pytest.mark.parametrize(
    "line",
    [
        "node-0:1:2 [0] NCCL INFO Failed to find ncclCollNetPlugin_v8 symbol.",
        "node-0:1:2 [0] NCCL INFO Could not find: libnccl-net.so",
        "ValueError: told without a traceback",
        "UserWarning: an error may occur",
        "node-0:1:2 [0] NCCL WARN Missing iommu=pt from kernel command line",
    ],
)
def test_harmless_lines_are_no_failure(line):
    measurement = measured(text([*table(), line]))
    assert (measurement.status, measurement.bandwidth.failure) == ("complete", None)


def test_exception_that_the_table_outlived_is_no_failure():
    lines = [*table()[:10], *TRACEBACK, "OSError: tuner", *table()[10:]]
    assert measured(text(lines)).status == "complete"


def test_crash_after_a_whole_table_is_a_failure():
    measurement = measured(text([*table(), "Segmentation fault (core dumped)"]))
    assert measurement.status == "failed"
    assert measurement.bandwidth.tables[0].is_complete


def test_unknown_log_with_a_traceback_is_no_data():
    assert measured(text([*TRACEBACK, "KeyError: 'x'"])).status == "no-data"


SECRET = "hunter2-XyZ"
TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    "lines",
    [
        [f"RuntimeError: CUDA error: password={SECRET} token: {TOKEN}"],
        [*TRACEBACK, f"ValueError: https://me:{SECRET}@registry.example/ {TOKEN}"],
        [f"CUDA error: {'x' * 280} {TOKEN}"],
    ],
    ids=["cuda", "exception", "cut-in-the-middle"],
)
def test_credentials_of_a_failure_line_are_not_quoted(lines):
    failure = read(*lines).bandwidth.failure

    assert SECRET not in failure
    assert "ghp_" not in failure
    assert len(failure) <= 300
