from dataclasses import replace

import pytest

from pytest_cre.evidence.model import LogStream
from pytest_cre.judge.group import judge_group
from pytest_cre.judge.hardware import hardware_words


def log(data, node="node-0"):
    return LogStream(pod=f"p-{node}", data=data, node=node, is_complete=True)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            b"NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
            "Xid 79 (GPU has fallen off the bus)",
        ),
        (b"kernel: NVRM: Xid (PCI:0000:5d:00.0): 94, Contained", "Xid 94 (contained memory error)"),
        (b"XidCriticalError Xid: 74 on GPU 3", "Xid 74 (NVLink error)"),
        (b"NVRM: Xid (PCI:0000:3b:00): 999, new", "Xid 999"),
        (b"RuntimeError: CUDA error: uncorrectable ECC error encountered",
         "the log tells of uncorrectable ECC error"),
    ],
)  # fmt: skip
def test_hardware_message_of_a_log_is_told_with_its_node(evidence, line, words):
    run = evidence(logs=(log(b"x\n" + line + b"\n", "node-1"),))

    assert hardware_words(run) == (f"node node-1: {words}",)


def test_message_that_a_launcher_prints_is_of_no_node_that_is_known(evidence):
    line = b"[1,9]<stderr>: NVRM: Xid (PCI:0000:3b:00): 79, x\n"
    run = evidence(logs=(replace(log(line), role="launcher"),))

    assert hardware_words(run) == ("node unknown: Xid 79 (GPU has fallen off the bus)",)


@pytest.mark.parametrize("line", [b"Xid", b"maxid 79", b"Xid of nothing at all 7", b"grid 79"])
def test_line_that_only_looks_like_one_is_none(evidence, line):
    assert hardware_words(evidence(logs=(log(line),))) == ()


def test_message_that_repeats_is_told_once_and_many_are_cut(evidence):
    lines = b"".join(b"NVRM: Xid (PCI:0:1:0): %d, x\n" % (500 + n // 100) for n in range(2000))

    assert len(hardware_words(evidence(logs=(log(lines),)))) == 5


def test_warning_event_of_a_node_is_told(evidence):
    event = {"type": "Warning", "object": "Node/node-1", "message": "Xid 48 on GPU 2"}

    assert hardware_words(evidence(events=(event,))) == (
        "node node-1: Xid 48 (double bit ECC error)",
    )


def test_hardware_message_is_a_warning_of_a_pass(evidence, bandwidth, limit):
    run = evidence()
    [first, second] = run.logs
    noisy = LogStream(
        pod=first.pod, data=b"NVRM: Xid (PCI:0:1:0): 63, x\n", node="node-0", is_complete=True
    )

    verdict = judge_group(evidence(logs=(noisy, second)), bandwidth(), [limit()], missing="skip")

    assert verdict.code == "pass"
    assert verdict.warnings == ("node node-0: Xid 63 (row remapping or page retirement recorded)",)
