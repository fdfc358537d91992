"""The log of an MPIJob's launcher is measured; what its workers' SSH servers write is not."""

from dataclasses import replace

from pytest_cre.catalog.logprofile import EventPattern, LogProfile
from pytest_cre.evidence.model import GroupEvidence, JobFacts, LogStream, PodFacts
from pytest_cre.measure.measurement import measure_group
from tests.measure.tables import stamped, table, text

START_NS = 1_767_571_200 * 10**9
PROFILE = LogProfile(
    name="nccl-bandwidth",
    patterns={
        "bandwidthResult": EventPattern(
            regex=r"^\s*(?P<size>\d+)\s+(?P<algBW>[\d.]+)\s+(?P<busBW>[\d.]+)$"
        )
    },
)


def pod(name, role, started_s, finished_s=None, exit_code=None):
    return PodFacts(
        name=name,
        uid=name,
        node="node-0",
        completion_index=None if role == "launcher" else 0,
        attempt=0,
        phase="Running" if finished_s is None else "Succeeded",
        role=role,
        started_ns=START_NS + started_s * 10**9,
        finished_ns=None if finished_s is None else START_NS + finished_s * 10**9,
        exit_code=exit_code,
    )


def evidence(*worker_logs):
    launcher = LogStream(
        pod="l", data=text(stamped(table(ranks=16))), role="launcher", is_complete=True
    )
    return GroupEvidence(
        entry="a/b",
        scale="full-scale",
        group="group-0",
        attempt=0,
        nodes=("node-0", "node-1"),
        gpus_per_node=8,
        ranks_planned=16,
        architecture="h100",
        is_simulated=False,
        kind="mpiJob",
        job=JobFacts(
            kind="MPIJob",
            name="j",
            uid="u",
            terminal="succeeded",
            terminal_ns=START_NS + 60 * 10**9,
        ),
        pods=(pod("l", "launcher", 5, 59, 0), pod("w", "worker", 0)),
        logs=(launcher, *worker_logs),
    )


def worker(data):
    return LogStream(pod="w", data=data, role="worker")


def test_a_worker_log_without_an_end_leaves_the_measurement_complete():
    measured = measure_group(evidence(worker(b"Server listening on 0.0.0.0 port 22.\n")), PROFILE)
    assert (measured.status, measured.reasons) == ("complete", ())
    assert measured == measure_group(evidence(), PROFILE)


def test_a_table_in_a_worker_log_is_no_second_table():
    measured = measure_group(evidence(worker(text(stamped(table(ranks=16))))), PROFILE)
    assert len(measured.bandwidth.tables) == 1
    assert measured.reasons == ()


def test_a_launcher_log_without_an_end_is_incomplete():
    given = evidence()
    cut = replace(given, logs=(replace(given.logs[0], is_complete=False),))
    assert "log-incomplete" in measure_group(cut, PROFILE).reasons
