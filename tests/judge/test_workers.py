"""Workers of an MPIJob run on after its end: that is no gap in the evidence."""

from pytest_cre.evidence.model import LogStream
from pytest_cre.judge.problems import evidence_finding

LAUNCHER = LogStream(pod="l", data=b"line\n", role="launcher", is_complete=True)
WORKER = LogStream(pod="w", data=b"Server listening\n", role="worker")


def test_a_worker_log_that_is_not_whole_says_nothing(evidence):
    assert evidence_finding(evidence(logs=(LAUNCHER, WORKER))).code is None


def test_a_worker_log_alone_is_no_log(evidence):
    finding = evidence_finding(evidence(logs=(WORKER,)))
    assert finding.code == "inconclusive"
    assert "no log was captured" in finding.reasons
