"""Groups of a site with names and addresses of its own, and logs that are full of them."""

from datetime import UTC, datetime

import pytest

from pytest_cre.evidence.model import GroupEvidence, JobFacts, LogStream, PodFacts, WorkflowEvidence
from tests.measure import tables

RUN = "0a1b2c3d4e"
JOB = f"cre-{RUN}-nccl-all-reduce-g0-7076f7"
START_NS = 1_770_000_000_000_000_000


def stamped(lines, start_ns=START_NS, step_ns=1_000_000):
    """Return lines as a kubelet gives them, each a little later."""
    found = []
    for number, line in enumerate(lines):
        seconds, rest_ns = divmod(start_ns + number * step_ns, 10**9)
        moment = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        found.append(f"{moment}.{rest_ns:09d}Z {line}\n")
    return "".join(found).encode()


def pod(index, node, **changes):
    facts = {
        "name": f"{JOB}-{index}-x{index}y",
        "uid": f"u{index}",
        "node": node,
        "completion_index": index,
        "attempt": 0,
        "phase": "Succeeded",
        "exit_code": 0,
        "started_ns": START_NS // 10**9 * 10**9,
        "finished_ns": START_NS // 10**9 * 10**9 + 2 * 10**9,
    }
    return PodFacts(**{**facts, **changes})


def log(of, lines, **changes):
    facts = {
        "pod": of.name,
        "data": stamped(lines),
        "container": "main",
        "node": of.node,
        "completion_index": of.completion_index,
        "is_complete": True,
    }
    return LogStream(**{**facts, **changes})


def table_lines(host="falcon-gpu-1.site.example.com"):
    return [
        f"{host}:120:160 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.20.30.40<0>",
        *tables.table(),
    ]


def group_of(pods, logs, **changes):
    facts = {
        "entry": "communication/nccl-all-reduce",
        "scale": "full-scale",
        "group": "group-0",
        "attempt": 0,
        "nodes": tuple(each.node for each in pods),
        "gpus_per_node": 8,
        "ranks_planned": 4,
        "architecture": "h100",
        "is_simulated": False,
        "job": JobFacts(
            kind="Job",
            name=JOB,
            uid="u",
            terminal="succeeded",
            started_ns=START_NS // 10**9 * 10**9,
            terminal_ns=START_NS // 10**9 * 10**9 + 3 * 10**9,
        ),
        "pods": tuple(pods),
        "logs": tuple(logs),
        "manifests": (
            {
                "kind": "Job",
                "metadata": {
                    "name": JOB,
                    "namespace": "team-falcon",
                    "labels": {"cre.pytest.org/run": RUN},
                },
                "spec": {"containers": [{"image": "registry.site.example.com:5000/falcon/nccl:1"}]},
            },
        ),
    }
    return GroupEvidence(**{**facts, **changes})


@pytest.fixture
def group():
    """A group of two nodes whose logs tell where they are from."""

    def build(**changes):
        pods = changes.pop("pods", (pod(0, "falcon-gpu-1"), pod(1, "falcon-gpu-2")))
        logs = (
            log(pods[0], table_lines()),
            log(pods[-1], [f"{JOB}-1:7:9 [0] NCCL INFO peer falcon-gpu-1 at 10.20.30.41"]),
        )
        return group_of(pods, changes.pop("logs", logs), **changes)

    return build


@pytest.fixture
def workflow():
    def build(*groups, **changes):
        first = groups[0]
        return WorkflowEvidence(
            **{"entry": first.entry, "scale": first.scale, "groups": groups, **changes}
        )

    return build
