"""The official Python client, as the harness and its users have it."""

import pytest

GROUP = ("batch", "v1")


@pytest.fixture(scope="module")
def client(cluster):
    from kubernetes import client, config

    connection = config.new_client_from_config(str(cluster.kubeconfig))
    yield lambda name: getattr(client, name)(connection)
    connection.close()


@pytest.fixture
def jobs(client):
    return client("CustomObjectsApi")


def job(name):
    containers = [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 8}}}]
    # The last field is newer than some of the clients.
    group = {"podGroupName": "g"}
    spec = {"restartPolicy": "Never", "containers": containers, "schedulingGroup": group}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"completions": 1, "template": {"spec": spec}},
    }


def test_job_goes_through_the_custom_objects_api(jobs):
    made = jobs.create_namespaced_custom_object(*GROUP, "default", "jobs", job("a"))
    assert made["spec"]["template"]["spec"]["schedulingGroup"] == {"podGroupName": "g"}
    read = jobs.get_namespaced_custom_object(*GROUP, "default", "jobs", "a")
    assert read["metadata"]["uid"] == made["metadata"]["uid"]
    listed = jobs.list_namespaced_custom_object(*GROUP, "default", "jobs")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    jobs.delete_namespaced_custom_object(
        *GROUP,
        "default",
        "jobs",
        "a",
        propagation_policy="Background",
        body={"preconditions": {"uid": made["metadata"]["uid"]}},
    )
    assert jobs.list_namespaced_custom_object(*GROUP, "default", "jobs")["items"] == []


def test_client_sees_refusals_with_their_status(jobs):
    from kubernetes.client.rest import ApiException

    with pytest.raises(ApiException) as refused:
        jobs.get_namespaced_custom_object(*GROUP, "default", "jobs", "nope")
    assert refused.value.status == 404
    jobs.create_namespaced_custom_object(*GROUP, "default", "jobs", job("b"))
    with pytest.raises(ApiException) as refused:
        jobs.create_namespaced_custom_object(*GROUP, "default", "jobs", job("b"))
    assert refused.value.status == 409


def test_models_read_nodes_version_and_namespaces(client, kubelet):
    kubelet.add_node("n")
    nodes = client("CoreV1Api").list_node().items
    assert nodes[0].status.allocatable["nvidia.com/gpu"] == "8"
    assert client("VersionApi").get_code().major == "1"
    names = [item.metadata.name for item in client("CoreV1Api").list_namespace().items]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


def test_watch_of_the_client_sees_changes_and_its_timeout(client):
    from kubernetes import watch

    core = client("CoreV1Api")
    core.create_namespaced_config_map("default", {"metadata": {"name": "w"}, "data": {"a": "b"}})
    events = list(
        watch.Watch().stream(
            core.list_namespaced_config_map,
            "default",
            timeout_seconds=1,
            field_selector="metadata.name=w",
        )
    )
    assert [(event["type"], event["raw_object"]["data"]) for event in events] == [
        ("ADDED", {"a": "b"})
    ]


def test_log_of_the_client_is_a_stream_of_bytes(client, cluster, kubelet):
    if cluster("GET", "/api/v1/nodes/n").code == 404:
        kubelet.add_node("n")
    body = {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "i"}]},
    }
    kubelet.run(cluster.create("/api/v1/namespaces/default/pods", body))
    kubelet.answers["main"] = (200, [b'{"a": "b"}\n', b"\xff"])
    response = client("CoreV1Api").read_namespaced_pod_log(
        "p", "default", container="main", follow=True, _preload_content=False
    )
    assert b"".join(response.stream()) == b'{"a": "b"}\n\xff'
    response.release_conn()


def test_dynamic_client_discovers_the_kinds(client):
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

    connection = client("CoreV1Api").api_client
    assert isinstance(connection, ApiClient)
    resource = DynamicClient(connection).resources.get(api_version="batch/v1", kind="Job")
    assert resource.name == "jobs"
