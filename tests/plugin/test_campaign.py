"""One run against one cluster: what it says while it waits, and how an interrupt ends it."""

import os
import signal
import threading
import time
from types import SimpleNamespace

import pytest

from pytest_cre import campaign, itemrun
from pytest_cre.campaign import Campaign
from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.cluster.local import start_embedded
from pytest_cre.cluster.objects import POD
from pytest_cre.itemrun import run_item
from pytest_cre.news import TerminalNews
from pytest_cre.seat import Seat
from pytest_cre.settings import Settings
from pytest_cre.target import Target

CASE = SimpleNamespace(
    entry=SimpleNamespace(name="communication/nccl-all-reduce"), scale="full-scale"
)


def tenant(node, gpus):
    """Return a pod of somebody else that is bound to a node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train-0", "namespace": "default"},
        "spec": {
            "nodeName": node,
            "containers": [
                {
                    "name": "main",
                    "image": "train:1",
                    "command": ["sleep", "3600"],
                    "resources": {"limits": {"nvidia.com/gpu": gpus}},
                }
            ],
        },
    }


@pytest.fixture
def served_for_a_while(tmp_path):
    cluster = start_embedded(scenario="h100-2", seed=1, folder=tmp_path, timeout_s=30)
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(suites=(shipped_suites(),), profiles=(shipped_profiles(),))


@pytest.fixture
def told():
    return []


@pytest.fixture
def make(catalog, told, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def make_it(work=None, **settings):
        if work is not None:

            def evidence(run):
                return work(run._campaign, run.stop)

            monkeypatch.setattr(itemrun._ItemRun, "evidence", evidence)
        news = TerminalNews(told.append)
        return Campaign(Settings(cluster="kubernetes", **settings), catalog, news, Seat.new())

    return make_it


def test_interrupt_is_raised_only_after_the_clean_up(make):
    running, ticker, steps = threading.Event(), threading.Event(), []

    def work(_, stop):
        running.set()
        stop.wait(10)
        ticker.wait(0.3)
        steps.append("cleaned up")

    def interrupt():
        running.wait(10)
        ticker.wait(0.1)  # let the main thread come to its waiting
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_item(make(work), CASE, lambda _: None, None)

    assert steps == ["cleaned up"]


def test_interrupt_does_not_wait_long_for_a_cluster_that_is_gone(make, monkeypatch):
    monkeypatch.setattr(itemrun, "SILENT_PATIENCE_S", 0.3)
    monkeypatch.setattr(Target, "is_silent", property(lambda _: True))
    running, never, ticker = threading.Event(), threading.Event(), threading.Event()

    def work(*_):
        running.set()
        never.wait(60)

    def interrupt():
        running.wait(10)
        ticker.wait(0.1)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_item(make(work), CASE, lambda _: None, None)

    assert time.monotonic() - began_s < itemrun.INTERRUPT_PATIENCE_S / 2
    never.set()


def test_cluster_that_is_gone_is_asked_once_by_the_sweep_and_not_again(
    make, monkeypatch, tmp_path, served_for_a_while
):
    run = make(kubeconfig=str(served_for_a_while.kubeconfig))
    run.owner()
    served_for_a_while.process.kill()
    served_for_a_while.process.wait()
    began_s = time.monotonic()

    left = run.sweep()
    run.close()

    assert left == (f"ConfigMap/cre-{run.run_id}",)
    assert time.monotonic() - began_s < 7  # twice the brief patience would be 8
    assert list((tmp_path / "pytest-cre").glob("*.jsonl"))


# Other tenants


def test_node_that_somebody_took_since_is_left_out_with_the_holder(make, slow):
    run = make(kubeconfig=str(slow.cluster.kubeconfig))
    assert len(run.target.selection.nodes) == 8
    pod = slow.client.create_or_adopt(tenant("h100-2", "6"))
    stop = threading.Event()
    stop.set()  # an interrupt cuts the waiting short

    try:
        free = run.target.free_selection(stop)
    finally:
        uid = pod["metadata"]["uid"]
        slow.client.delete(POD, "train-0", uid=uid, grace_period_s=0)

    assert [node.name for node in free.nodes] == [f"h100-{n}" for n in (0, 1, 3, 4, 5, 6, 7)]
    (busy,) = free.excluded
    assert (busy.node, busy.reason) == ("h100-2", "busy")
    assert busy.message == "6 of 8 GPUs in use by default/train-0"


def test_cluster_that_falls_silent_is_told_once_with_problem_and_patience(
    make, told, slow, monkeypatch
):
    monkeypatch.setattr(campaign, "SILENCE_S", 0.3)
    pid = slow.cluster.pid
    wake = threading.Timer(1.5, os.kill, (pid, signal.SIGCONT))

    def work(run, _):
        client = run.target.client
        os.kill(pid, signal.SIGSTOP)
        wake.start()
        client.version()

    run_item(make(work, kubeconfig=str(slow.cluster.kubeconfig)), CASE, lambda _: None, None)
    wake.join()

    (line,) = told
    assert line.startswith(f"{slow.client.server}: does not answer; no answer for ")
    assert line.endswith("each request is tried again for 300 s")


def test_cluster_that_answers_is_not_told(make, told, slow, monkeypatch):
    monkeypatch.setattr(campaign, "SILENCE_S", 5.0)
    run = make(lambda run, _: run.target.client.version(), kubeconfig=str(slow.cluster.kubeconfig))
    run_item(run, CASE, lambda _: None, None)

    assert told == []
