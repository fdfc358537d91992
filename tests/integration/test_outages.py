"""The control plane fails in mid run, and comes back."""

import time

import pytest

from pytest_cre.cluster.objects import POD
from tests.integration.running import until

APISERVER_OUTAGE_S = 20.0
ETCD_OUTAGE_S = 10.0
# Training goes on while the control plane is away, and after: 0.06 s a step. Controllers take up to
# half a minute to come back to an API server that was away, and hold the GPUs as long.
STEPS = {APISERVER_OUTAGE_S: 800, ETCD_OUTAGE_S: 400}


@pytest.fixture
def start_training(start_certifying, admin):
    """Start a training; return it once all of its pods run."""

    def start(steps):
        options = (f"--cre-option=maxSteps={steps}", f"--cre-option=saveInterval={steps // 2}")
        run = start_certifying("-k", "nemotron5-8b", *options)

        def are_running():
            assert run.process.poll() is None, run.result().output
            pods = admin.list(POD, label_selector="cre.pytest.org/run").items
            return [pod["status"].get("phase") for pod in pods] == ["Running"] * 2

        until(are_running)
        return run

    return start


def assert_complete(run, steps):
    done = run.result()
    assert done.code == 0, done.output
    item = done.item("nemotron5-8b")
    assert item["code"] == "pass"
    assert [group["reasons"] for group in item["groups"]] == [[]]
    training = done.measured("nemotron5-8b", pod=1)
    assert training["status"] == "complete"
    shown = [step["step"] for step in training["training"]["steps"]]
    assert shown == [1, *range(10, steps + 1, 10)]
    assert done.report["leftovers"] == []


def test_api_server_killed_for_20_s_costs_nothing_of_the_evidence(plane, start_training):
    steps = STEPS[APISERVER_OUTAGE_S]
    run = start_training(steps)
    apiserver = plane.part("kube-apiserver")
    apiserver.kill()
    time.sleep(APISERVER_OUTAGE_S)  # the outage itself
    assert run.process.poll() is None
    apiserver.start()
    assert_complete(run, steps)
    # Operators end when they cannot renew their lease; they are started again.
    until(lambda: all(part.is_running() for part in plane.parts))
    until(plane.is_ready)


def test_etcd_hanging_for_10_s_costs_nothing_of_the_evidence(plane, start_training):
    steps = STEPS[ETCD_OUTAGE_S]
    run = start_training(steps)
    etcd = plane.part("etcd")
    etcd.suspend()
    time.sleep(ETCD_OUTAGE_S)  # the outage itself
    assert run.process.poll() is None
    etcd.resume()
    assert_complete(run, steps)
    until(lambda: all(part.is_running() for part in plane.parts))
    until(plane.is_ready)
