import itertools
import threading

import pytest


@pytest.fixture(scope="module")
def node(kubelet):
    kubelet.add_node("node-a")
    return "node-a"


@pytest.fixture
def pod(cluster, kubelet, node, namespace):
    """A running pod with the one container `main`; gives its path."""
    body = {
        "metadata": {"name": "p"},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "i"}]},
    }
    kubelet.run(cluster.create(f"{namespace}/pods", body))
    kubelet.answers["main"] = (200, [b"one\n", b"two \xff\n", b"no newline"])
    kubelet.requests.clear()
    return f"{namespace}/pods/p"


def read(cluster, path):
    with cluster.open("GET", path) as response:
        return response.status, response.headers["Content-Type"], response.read()


def test_log_passes_on_the_kubelets_bytes(cluster, pod, kubelet):
    expected = (200, "text/plain", b"one\ntwo \xff\nno newline")
    assert read(cluster, f"{pod}/log") == expected
    namespace = pod.split("/")[4]
    assert kubelet.requests == [(f"/containerLogs/{namespace}/p/main", {})]


def test_log_options_reach_the_kubelet(cluster, pod, kubelet):
    query = (
        "follow=true&timestamps=true&previous=true&tailLines=5&limitBytes=100"
        "&sinceTime=2026-01-01T00:00:00.5Z&container=main&pretty=true"
    )
    read(cluster, f"{pod}/log?{query}")
    assert kubelet.requests[0][1] == {
        "follow": "true",
        "timestamps": "true",
        "previous": "true",
        "tailLines": "5",
        "limitBytes": "100",
        "sinceTime": "2026-01-01T00:00:00Z",
    }
    read(cluster, f"{pod}/log?sinceSeconds=30&follow=false")
    assert kubelet.requests[1][1] == {"sinceSeconds": "30"}


def test_followed_log_comes_line_by_line(cluster, pod, kubelet):
    kubelet.release.clear()
    kubelet.answers["main"] = (200, [b"first\n", None, b"second\n"])
    with cluster.open("GET", f"{pod}/log?follow=true") as response:
        assert response.readline() == b"first\n"
        kubelet.release.set()
        assert response.read() == b"second\n"


def test_many_logs_are_followed_at_once(cluster, pod, kubelet):
    kubelet.release.clear()
    kubelet.answers["main"] = (200, [b"first\n", None, b"second\n"])
    texts = []

    def follow():
        texts.append(read(cluster, f"{pod}/log?follow=true")[2])

    threads = [threading.Thread(target=follow) for _ in range(20)]
    for thread in threads:
        thread.start()
    while len(kubelet.requests) < 20:
        assert any(thread.is_alive() for thread in threads)
    kubelet.release.set()
    for thread in threads:
        thread.join(10)
    assert texts == [b"first\nsecond\n"] * 20


def test_refusal_of_the_kubelet_is_passed_on_as_400(cluster, pod, kubelet):
    text = 'container "main" in pod "p" is waiting to start: ContainerCreating'
    kubelet.answers["main"] = (400, [text.encode()])
    answer = cluster("GET", f"{pod}/log")
    assert (answer.code, answer.body["reason"], answer.body["message"]) == (400, "BadRequest", text)


@pytest.mark.parametrize(("given", "code"), [(404, 404), (500, 500), (503, 503)])
def test_error_of_the_kubelet_is_a_status_with_its_code(cluster, pod, kubelet, given, code):
    kubelet.answers["main"] = (given, [b"broken"])
    answer = cluster("GET", f"{pod}/log")
    assert (answer.code, answer.body["status"]) == (code, "Failure")


def test_log_of_an_unreachable_kubelet_is_500_and_says_why(cluster, namespace, kubelet):
    cluster.create("/api/v1/nodes", {"metadata": {"name": "node-dead"}})
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}},
    }
    cluster.patch("/api/v1/nodes/node-dead/status", {"status": status})
    body = {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "node-dead", "containers": [{"name": "main", "image": "i"}]},
    }
    cluster.create(f"{namespace}/pods", body)
    answer = cluster("GET", f"{namespace}/pods/p/log")
    assert answer.code == 500
    assert answer.body["message"] == (
        f'Get "https://127.0.0.1:1/containerLogs/{namespace.rpartition("/")[2]}/p/main": '
        "dial tcp 127.0.0.1:1: connect: connection refused"
    )


def test_log_of_a_pod_without_a_node_is_empty(cluster, namespace):
    spec = {"schedulingGates": [{"name": "wait"}], "containers": [{"name": "c", "image": "i"}]}
    cluster.create(f"{namespace}/pods", {"metadata": {"name": "p"}, "spec": spec})
    answer = cluster("GET", f"{namespace}/pods/p/log")
    assert (answer.code, answer.body) == (204, "")


def test_log_of_a_missing_pod_is_404(cluster, namespace):
    answer = cluster("GET", f"{namespace}/pods/nope/log")
    assert (answer.code, answer.body["message"]) == (404, 'pods "nope" not found')


def test_log_without_a_container_name_needs_a_single_container(cluster, namespace):
    containers = [{"name": name, "image": "i"} for name in ("a", "b")]
    body = {"metadata": {"name": "p"}, "spec": {"nodeName": "x", "containers": containers}}
    cluster.create(f"{namespace}/pods", body)
    answer = cluster("GET", f"{namespace}/pods/p/log")
    assert (answer.code, answer.body["message"]) == (
        400,
        "a container name must be specified for pod p, choose one of: [a b]",
    )
    answer = cluster("GET", f"{namespace}/pods/p/log?container=c")
    assert (answer.code, answer.body["message"]) == (400, "container c is not valid for pod p")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("tailLines=-1", 422),
        ("limitBytes=0", 422),
        ("sinceSeconds=0", 422),
        ("tailLines=abc", 400),
        ("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422),
        ("sinceTime=abc", 400),
    ],
)
def test_log_option_that_makes_no_sense_is_refused(cluster, pod, kubelet, query, code):
    answer = cluster("GET", f"{pod}/log?{query}")
    assert (answer.code, answer.body["status"]) == (code, "Failure")
    assert kubelet.requests == []


def test_client_that_leaves_ends_the_request_to_the_kubelet(cluster, pod, kubelet):
    # More than all buffers on the way hold: the kubelet can end only if its reader is gone.
    kubelet.answers["main"] = (200, itertools.repeat(b"x" * 65536))
    with cluster.open("GET", f"{pod}/log?follow=true") as response:
        assert response.read(10)
    assert kubelet.reader_left.wait(5)
