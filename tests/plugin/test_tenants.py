"""Nodes that other tenants use: left out with the holder's name, and the run is not green for it."""

from xml.etree import ElementTree

import pytest

from pytest_cre.cluster.client import connect
from pytest_cre.cluster.local import start_embedded
from pytest_cre.cluster.objects import POD

SMALL = ("--cre-option", "minBytes=1G", "-k", "nccl-all-reduce and intra")
WORDS = "6 of 8 GPUs in use by default/train-0 and 1 other pod"


def holder(name, gpus):
    resources = {"limits": {"nvidia.com/gpu": gpus}}
    main = {"name": "main", "image": "i:1", "command": ["sleep", "3600"], "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": "h100-1", "containers": [main]},
    }


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A cluster of two nodes, one of which somebody else uses."""
    folder = tmp_path_factory.mktemp("shared")
    cluster = start_embedded(scenario="h100-2", seed=1, folder=folder, timeout_s=30)
    client = connect(kubeconfig=str(cluster.kubeconfig), context=None, namespace=None)
    for name, gpus in (("train-0", "4"), ("train-1", "2")):
        client.create_or_adopt(holder(name, gpus))
    yield ("--cre-cluster", "kubernetes", "--cre-kubeconfig", str(cluster.kubeconfig))
    assert len(client.list(POD).items) == 2  # of others, so untouched
    cluster.stop()


def test_node_in_use_is_named_with_its_holder_everywhere_and_the_run_incomplete(shared, certify):
    done = certify("--pyargs", "pytest_cre.suites", *SMALL, *shared)

    report = done.json()
    assert (done.code, report["result"]) == (10, "INCOMPLETE"), done.output
    assert report["nodes"] == ["h100-0"]
    assert report["excluded"] == [{"node": "h100-1", "reason": "busy", "message": WORDS}]
    assert [item["nodes"] for item in report["items"]] == [["h100-0"]]
    assert [item["code"] for item in report["items"]] == ["pass"]
    assert f"excluded node h100-1: busy: {WORDS}" in done.output
    case = ElementTree.parse(done.folder / "m.xml").find(".//testcase[@name='excluded h100-1']")
    assert WORDS in ElementTree.tostring(case, encoding="unicode")


def test_node_in_use_that_is_accepted_does_no_harm(shared, certify):
    done = certify("--pyargs", "pytest_cre.suites", *SMALL, *shared, "--cre-accept-excluded=busy")

    assert (done.code, done.json()["result"]) == (0, "PASSED"), done.output


def test_busy_node_that_is_asked_for_by_name_leaves_nothing_to_test(shared, certify):
    done = certify("--pyargs", "pytest_cre.suites", *SMALL, *shared, "--cre-nodes=h100-1")

    (item,) = done.json()["items"]
    assert (done.code, item["code"]) == (10, "unmet"), done.output
    assert f"h100-1 busy ({WORDS})" in item["text"]
