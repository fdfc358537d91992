"""The same on the embedded API server with simulated nodes, through the real client."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

import pytest_cre.workloads
from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.catalog.options import resolve_options
from pytest_cre.cluster.client import connect
from pytest_cre.cluster.inventory import read_nodes
from pytest_cre.cluster.local import start_embedded
from pytest_cre.cluster.objects import CONFIG_MAP, JOB, LEASE, POD, SERVICE
from pytest_cre.evidence.store import masked, read_workflow, write_workflow
from pytest_cre.plan.selection import select_nodes
from pytest_cre.plan.workflow import plan_workflow
from pytest_cre.run.cleanup import sweep
from pytest_cre.run.leases import held_lease
from pytest_cre.run.ledger import Ledger
from pytest_cre.run.owner import create_owner
from pytest_cre.run.workflow import run_workflow

SCRIPTS = Path(pytest_cre.workloads.__file__).parent


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embedded")
    cluster = start_embedded(scenario="h100-2", seed=1, folder=folder, timeout_s=30)
    yield str(cluster.kubeconfig)
    cluster.stop()


@pytest.fixture
def client(kubeconfig):
    return connect(kubeconfig=kubeconfig, context=None, namespace=None)


def plan_of(client, ledger, name, *, scale="full-scale", options=None, **changes):
    catalog = load_catalog(suites=(shipped_suites(),), profiles=(shipped_profiles(),))
    selection = select_nodes(read_nodes(client), catalog.architectures)
    entry = replace(catalog.entries[name], **changes)
    return plan_workflow(
        entry, scale, selection, catalog.architectures[selection.architecture],
        served=client.served_workloads(), run_id=ledger.run_id, owner=create_owner(client, ledger),
        namespace=client.namespace, options=resolve_options(entry, options or {}),
        scripts={script: (SCRIPTS / script).read_text() for script in entry.scripts},
    )  # fmt: skip


@pytest.fixture
def ledger_of(tmp_path):
    ledgers = []

    def make(run_id):
        ledgers.append(Ledger(tmp_path / f"{run_id}.ledger.jsonl", run_id))
        return ledgers[-1]

    yield make
    for ledger in ledgers:
        ledger.close()


def left_of(client, run_id):
    return [
        f"{kind.kind}/{item['metadata']['name']}"
        for kind in (JOB, POD, SERVICE, CONFIG_MAP, LEASE)
        for item in client.list(kind, label_selector=f"cre.pytest.org/run={run_id}").items
    ]


def await_(condition):
    ticker = threading.Event()
    for _ in range(1000):
        if condition():
            return True
        ticker.wait(0.02)
    return False


def test_bandwidth_workflow_passes_is_saved_and_leaves_nothing(client, ledger_of, tmp_path):
    ledger = ledger_of("pass")
    plan = plan_of(client, ledger, "communication/nccl-all-reduce", options={"maxBytes": "1M"})

    with held_lease(client, "pass", "me", stop=threading.Event()):
        evidence = run_workflow(plan, client, ledger=ledger, stop=threading.Event())
    swept = sweep(client, "pass", [ledger.path])

    (group,) = evidence.groups
    assert group.problems == ()
    assert group.job.terminal == "succeeded"
    assert [pod.phase for pod in group.pods] == ["Succeeded", "Succeeded"]
    assert [pod.completion_index for pod in group.pods] == [0, 1]
    assert all(log.is_complete and not log.has_gap for log in group.logs)
    assert b"# Avg bus bandwidth" in group.logs[0].data
    assert {each["reason"] for each in group.events} >= {"Scheduled", "SuccessfulCreate"}
    assert group.run_s is not None
    assert evidence.leftovers == swept.leftovers == ()
    assert left_of(client, "pass") == []
    write_workflow(tmp_path / "evidence", evidence)
    assert read_workflow(tmp_path / "evidence") == masked(evidence)


def test_intra_node_groups_run_side_by_side_on_their_own_nodes(client, ledger_of):
    ledger = ledger_of("side")
    plan = plan_of(
        client,
        ledger,
        "communication/nccl-all-reduce",
        scale="intra-node",
        options={"maxBytes": "1M"},
    )

    evidence = run_workflow(plan, client, ledger=ledger, stop=threading.Event())

    assert [group.problems for group in evidence.groups] == [(), ()]
    assert [[pod.node for pod in group.pods] for group in evidence.groups] == [
        [node] for group in evidence.groups for node in group.nodes
    ]
    sweep(client, "side", [ledger.path])


def test_pods_that_find_no_room_are_unschedulable_in_the_schedulers_words(client, ledger_of):
    holder, ledger = ledger_of("holder"), ledger_of("late")
    holding = plan_of(client, holder, "training/nemotron5-8b")
    for manifest in holding.groups[0].manifests:
        client.create_or_adopt(manifest)
    assert await_(lambda: all(pod["spec"].get("nodeName") for pod in client.list(POD).items))
    plan = plan_of(client, ledger, "communication/nccl-all-reduce", start_timeout_s=0.5)

    evidence = run_workflow(plan, client, ledger=ledger, stop=threading.Event())

    (group,) = evidence.groups
    assert [problem.code for problem in group.problems] == ["unschedulable"]
    assert "Insufficient nvidia.com/gpu" in group.problems[0].message
    assert group.logs == ()
    assert sweep(client, "holder", [holder.path]).leftovers == ()
    assert sweep(client, "late", [ledger.path]).leftovers == ()


def test_interrupt_in_mid_run_leaves_nothing(client, ledger_of):
    ledger, stop = ledger_of("stop"), threading.Event()
    plan = plan_of(client, ledger, "training/nemotron5-8b")

    evidence = run_workflow(
        plan, client, ledger=ledger, stop=stop,
        on_progress=lambda told: stop.set() if told.pods_running == 2 and told.log_bytes else None,
    )  # fmt: skip
    swept = sweep(client, "stop", [ledger.path])

    assert [problem.code for problem in evidence.groups[0].problems] == ["interrupted"]
    assert swept.leftovers == ()
    assert left_of(client, "stop") == []


def test_sweep_after_kill_minus_9_leaves_nothing_and_spares_another_run(
    client, kubeconfig, ledger_of, tmp_path
):
    other = ledger_of("other")
    create_owner(client, other)
    script = (
        "import sys, threading; sys.path.insert(0, sys.argv[1])\n"
        "from test_embedded import *\n"
        "client = connect(kubeconfig=sys.argv[2], context=None, namespace=None)\n"
        "ledger = Ledger(Path(sys.argv[3]), 'killed')\n"
        "run_workflow(plan_of(client, ledger, 'training/nemotron5-8b'), client, ledger=ledger, "
        "stop=threading.Event())\n"
    )
    path = tmp_path / "killed.ledger.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(Path(__file__).parent), kubeconfig, str(path)]
    )

    def runs():
        pods = client.list(POD, label_selector="cre.pytest.org/run=killed").items
        return len(pods) == 2 and all(pod["status"].get("phase") == "Running" for pod in pods)

    try:
        assert await_(runs)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    swept = sweep(client, "killed", [path])

    assert any(name.startswith("Job/") for name in swept.deleted)
    assert swept.leftovers == ()
    assert left_of(client, "killed") == []
    assert left_of(client, "other") == ["ConfigMap/cre-other"]
    sweep(client, "other", [other.path])
