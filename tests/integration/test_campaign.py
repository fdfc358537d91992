"""A short campaign on genuine Kubernetes: faults of nodes, pods, containers, logs; every workload."""

from dataclasses import replace

import pytest

from tests.campaign.genuine import GenuineClusters
from tests.campaign.kinds import KINDS
from tests.campaign.playing import catalog, play
from tests.campaign.schedules import draw_schedule

SEED = 20
TOO_LONG = ("stop-heartbeat", "stuck-terminating")  # the second one brings a hang with it
# A genuine API server cannot be made to misbehave from outside.
ON_NODES = {
    name: kind for name, kind in KINDS.items() if kind.where == "faults" and name not in TOO_LONG
}
FIRST = (
    *("crash", "evict-unmarked", "preempt", "replace-node", "fail-and-delete", "restart"),
    *("slow-gpu", "straggler", "socket-fallback", "log-burst", "log-lose", "log-reset"),
)


@pytest.fixture(scope="module")
def clusters(plane):
    with GenuineClusters(plane) as clusters:
        yield clusters


@pytest.mark.parametrize("first", FIRST)
def test_faults_on_genuine_kubernetes_break_no_rule(clusters, tmp_path, first):
    schedule = draw_schedule(SEED, list(ON_NODES).index(first), ON_NODES)
    workloads = list(catalog().entries[schedule.entry].workloads)
    schedule = replace(schedule, workload=workloads[FIRST.index(first) % len(workloads)])

    outcome = play(clusters, schedule, tmp_path / "run")

    assert outcome.broken == [], (schedule, outcome.code, outcome.text)
    assert outcome.fired[first] > 0, (schedule, outcome.code, outcome.text)
