import threading

import pytest

from pytest_cre.evidence.model import GpuHolder
from pytest_cre.run.leases import held_lease, leasing_run
from pytest_cre.run.tenants import await_free, lasting_holders
from tests.run.conftest import node_facts


@pytest.fixture
def hold(cluster):
    def put(name, node="n1", *, namespace="team-a", gpus="8", run_id=None):
        labels = {"cre.pytest.org/run": run_id} if run_id else {}
        container = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
        return cluster.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "spec": {"nodeName": node, "containers": [container]},
                "status": {"phase": "Running"},
            },
            "ADDED",
        )

    return put


def test_pods_of_others_last_and_those_of_our_own_run_do_not(client, hold):
    hold("train-0", gpus="6")
    hold("ours", "n2", namespace="ns", run_id="me")

    held = lasting_holders(client, ["n1", "n2"], "me")

    assert held == {"n1": (GpuHolder(pod="team-a/train-0", gpus=6),)}


def test_pods_of_the_run_that_has_the_lease_will_be_gone_when_it_is_our_turn(client, hold):
    hold("cre-0", namespace="ns", run_id="other")

    assert [each.run_id for each in lasting_holders(client, ["n1"], "me")["n1"]] == ["other"]
    with held_lease(client, "other", "other-main", stop=threading.Event()):
        assert leasing_run(client) == "other"
        assert lasting_holders(client, ["n1"], "me") == {}


def test_pods_of_a_run_in_another_namespace_last_whatever_lease_it_has(client, hold):
    hold("cre-0", namespace="elsewhere", run_id="other")
    with held_lease(client, "other", "other-main", stop=threading.Event()):
        assert list(lasting_holders(client, ["n1"], "me")) == ["n1"]


def test_free_nodes_are_not_waited_for(client):
    def complain(words):
        raise AssertionError(words)

    assert await_free(client, [node_facts("n1")], stop=threading.Event(), on_wait=complain) == {}


def test_pod_that_ends_in_time_is_waited_for_and_told(cluster, client, hold):
    pod = hold("train-0", gpus="6")
    told = []
    threading.Timer(0.1, cluster.remove, [pod]).start()

    held = await_free(
        client,
        [node_facts("n1"), node_facts("n2")],
        stop=threading.Event(),
        on_wait=told.append,
        poll_s=0.02,
    )

    assert held == {}
    assert told == ["waiting at most 30 s: node n1: 6 of 8 GPUs in use by team-a/train-0"]


def test_pod_that_stays_is_given_up_whichever_run_made_it(client, hold):
    hold("stuck", namespace="ns", run_id="me")

    held = await_free(
        client,
        [node_facts("n1")],
        stop=threading.Event(),
        on_wait=lambda _: None,
        patience_s=0.05,
        poll_s=0.02,
    )

    assert held == {"n1": (GpuHolder(pod="ns/stuck", gpus=8, run_id="me"),)}


def test_interrupt_ends_the_waiting(client, hold):
    hold("train-0")
    stop = threading.Event()
    stop.set()

    assert list(await_free(client, [node_facts("n1")], stop=stop, on_wait=lambda _: None)) == ["n1"]
