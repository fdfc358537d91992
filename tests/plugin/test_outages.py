"""Refusals that pass, and pods that do not go, through a whole run on the embedded cluster."""

import signal
import threading
from xml.etree import ElementTree

import pytest

from pytest_cre.cluster.client import ApiProblem, connect
from pytest_cre.cluster.local import start_embedded
from pytest_cre.cluster.objects import POD

SMALL = ("--cre-option", "minBytes=1G", "-k", "nccl-all-reduce and not intra")
ONE_REFUSAL_EACH = """
extends: h100-2
apiFaults:
- {match: {verb: list, resource: nodes}, action: answer, code: 401, times: 2}
- {match: {verb: list, resource: pods}, action: answer, code: 404, times: 1}
- {match: {verb: watch}, action: answer, code: 404, times: 5}
- {match: {verb: get, resource: jobs}, action: answer, code: 404, after: {requests: 1}, times: 2}
- {match: {verb: get, resource: jobs}, action: answer, code: 401, after: {requests: 5}, times: 2}
- {match: {verb: get, resource: leases}, action: answer, code: 404, after: {requests: 1}, times: 1}
- {match: {verb: list, resource: configmaps}, action: answer, code: 404, times: 1}
- {match: {verb: get, resource: pods/log}, action: answer, code: 404, times: 1}
- {match: {verb: create, resource: jobs}, action: answer, code: 401, times: 2}
"""
DEAD_KUBELET = """
extends: h100-2
faults:
- {match: {node: h100-1}, action: stop-heartbeat, after: {seconds: 1}}
"""

STUCK = """
extends: h100-2
faults:
- {match: {node: h100-0}, action: stuck-terminating}
"""


def test_one_401_or_404_of_each_kind_costs_nothing(certify):
    (certify.folder / "scenario.yaml").write_text(ONE_REFUSAL_EACH)

    done = certify("--pyargs", "pytest_cre.suites", *SMALL, "--cre-scenario=scenario.yaml")

    report = done.json()
    assert (done.code, report["result"]) == (0, "PASSED"), done.output
    assert report["leftovers"] == []


def test_refusal_of_a_right_is_told_at_once(certify):
    (certify.folder / "scenario.yaml").write_text(
        "extends: h100-2\n"
        "apiFaults:\n"
        "- {match: {verb: list, resource: nodes}, action: answer, code: 403, message: no nodes}\n"
    )

    done = certify("--pyargs", "pytest_cre.suites", *SMALL, "--cre-scenario=scenario.yaml")

    (item,) = done.json()["items"]
    assert (done.code, item["code"]) == (1, "error"), done.output
    assert item["text"].endswith("list nodes: 403 Forbidden: no nodes")
    assert item["duration_s"] < 5


@pytest.fixture
def sticky(tmp_path):
    """A cluster one of whose nodes falls silent with a pod on it, so that the pod stays."""
    (tmp_path / "sticky.yaml").write_text(DEAD_KUBELET)
    folder = tmp_path / "served"
    folder.mkdir()
    scenario = str(tmp_path / "sticky.yaml")
    cluster = start_embedded(scenario=scenario, seed=1, folder=folder, timeout_s=30)
    yield cluster
    cluster.stop()


def test_pod_that_will_not_go_makes_the_run_an_error_with_the_gpus_that_it_holds(
    sticky, certify, eventually
):
    client = connect(kubeconfig=str(sticky.kubeconfig), context=None, namespace=None)
    process = certify.start(
        *("--pyargs", "pytest_cre.suites", "-k", "nemotron5-8b", "--cre-option", "maxSteps=100000"),
        *("--cre-cluster", "kubernetes", "--cre-kubeconfig", str(sticky.kubeconfig)),
    )

    def is_out_of_reach():
        pods = [pod for pod in client.list(POD).items if pod["spec"].get("nodeName") == "h100-1"]
        if not pods or pods[0]["status"].get("phase") != "Running":
            return False
        name, container = pods[0]["metadata"]["name"], pods[0]["spec"]["containers"][0]["name"]
        try:
            with client.open_log(name, container, follow=False):
                return False
        except ApiProblem as problem:
            return problem.status == 500

    eventually(is_out_of_reach)
    process.send_signal(signal.SIGINT)
    done = certify.end(process)

    (stuck,) = client.list(POD).items
    report = done.json()
    assert report["result"] == "ERROR", done.output
    words = f"8 GPUs of h100-1 still held by default/{stuck['metadata']['name']}"
    assert report["leftovers"] == [words]
    assert f"left behind in the cluster: {words}" in " ".join(done.output.split())
    case = ElementTree.parse(done.folder / "m.xml").find(".//testcase[@name='clean-up']")
    assert words in ElementTree.tostring(case, encoding="unicode")


@pytest.mark.parametrize("times", [2, 3, 6])
def test_ctrl_c_again_costs_neither_reports_nor_clean_up(slow, certify, eventually, times):
    process = certify.start(
        *("--pyargs", "pytest_cre.suites", "-k", "nemotron5-8b", "--cre-option", "maxSteps=100000"),
        *slow.options,
    )
    eventually(slow.runs_pods)
    ticker = threading.Event()
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        ticker.wait(0.4)
    done = certify.end(process)

    assert done.code == pytest.ExitCode.INTERRUPTED, done.output
    assert "Traceback" not in done.output
    result = done.json()["result"]
    assert result == "FAILED" or (times > 2 and result == "ERROR")
    assert f"certification {result}" in done.output
    assert (done.folder / "m.xml").exists()
    eventually(lambda: slow.ours() == [])


def test_finished_pod_that_its_node_does_not_let_go_is_deleted_by_the_sweep(
    tmp_path, certify, eventually
):
    (tmp_path / "stuck.yaml").write_text(STUCK)
    folder = tmp_path / "served"
    folder.mkdir()
    scenario = str(tmp_path / "stuck.yaml")
    cluster = start_embedded(scenario=scenario, seed=1, folder=folder, timeout_s=30)
    try:
        client = connect(kubeconfig=str(cluster.kubeconfig), context=None, namespace=None)
        process = certify.start(
            *("--pyargs", "pytest_cre.suites", "-k", "nemotron5-8b", "--cre-option"),
            *("maxSteps=100000", "--cre-cluster", "kubernetes"),
            *("--cre-kubeconfig", str(cluster.kubeconfig)),
        )
        eventually(lambda: [p for p in client.list(POD).items if is_running(p)])
        process.send_signal(signal.SIGINT)
        done = certify.end(process)

        assert not client.list(POD).items
        assert (done.code, done.json()["leftovers"]) == (pytest.ExitCode.INTERRUPTED, [])
    finally:
        cluster.stop()


def is_running(pod):
    return pod["spec"].get("nodeName") == "h100-0" and pod["status"].get("phase") == "Running"
