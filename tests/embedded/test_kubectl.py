"""What a person types, answered as a real cluster would."""

import re

import pytest

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: %s, labels: {suite: k}}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: "registry/image:1", resources: {limits: {nvidia.com/gpu: "8"}}}
"""


def rows(text):
    """Cells of a printed table, split where two or more blanks stand."""
    return [re.split(r" {2,}", line.strip()) for line in text.splitlines()]


@pytest.fixture(scope="module", autouse=True)
def nodes(kubelet):
    kubelet.add_node("gpu-0", labels={"node-role.kubernetes.io/worker": ""})
    kubelet.add_node("gpu-1")


@pytest.fixture
def job(cluster, kubelet, request):
    """Apply a job and see its pods run; gives its name and the pods."""
    name = request.node.name.removeprefix("test_kubectl_").replace("_", "-")[:40]
    cluster.kubectl("apply", "--validate=false", "-f", "-", stdin=JOB % name)
    path = f"/api/v1/namespaces/default/pods?labelSelector=job-name%3D{name}"
    body = cluster.until(
        path,
        lambda a: (
            all(p["spec"].get("nodeName") for p in a.body["items"]) and len(a.body["items"]) == 2
        ),
    )
    pods = [kubelet.run(pod) for pod in body["items"]]
    cluster.until(
        f"/apis/batch/v1/namespaces/default/jobs/{name}", lambda a: a.body["status"]["ready"] == 2
    )
    yield name, pods
    cluster(
        "DELETE",
        f"/apis/batch/v1/namespaces/default/jobs/{name}",
        {"propagationPolicy": "Background"},
    )
    for pod in pods:
        cluster("DELETE", kubelet.path(pod), {"gracePeriodSeconds": 0})
        cluster.gone(kubelet.path(pod))


def test_kubectl_version_and_api_resources(cluster):
    assert "Server Version: v1.37.0+pytest-cre.embedded" in cluster.kubectl("version")
    listed = {line.split()[0] for line in cluster.kubectl("api-resources").splitlines()}
    assert {"pods", "nodes", "jobs", "leases", "configmaps", "services", "events"} <= listed


def test_kubectl_get_nodes_shows_the_usual_columns(cluster):
    table = rows(cluster.kubectl("get", "nodes"))
    assert table[0] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [row[:3] + row[4:] for row in table[1:]] == [
        ["gpu-0", "Ready", "worker", "v1.37.0"],
        ["gpu-1", "Ready", "<none>", "v1.37.0"],
    ]
    cluster.patch("/api/v1/nodes/gpu-1", {"spec": {"unschedulable": True}})
    assert "Ready,SchedulingDisabled" in cluster.kubectl("get", "node", "gpu-1")
    cluster.patch("/api/v1/nodes/gpu-1", {"spec": {"unschedulable": None}})


def test_kubectl_get_pods_and_jobs(cluster, job):
    name, pods = job
    table = rows(cluster.kubectl("get", "pods", "-o", "wide", "-l", f"job-name={name}"))
    assert table[0] == [
        "NAME",
        "READY",
        "STATUS",
        "RESTARTS",
        "AGE",
        "IP",
        "NODE",
        "NOMINATED NODE",
        "READINESS GATES",
    ]
    assert [row[1:4] + row[5:7] for row in table[1:]] == [
        ["1/1", "Running", "0", "10.0.0.1", node] for node in ("gpu-0", "gpu-1")
    ]
    table = rows(cluster.kubectl("get", "jobs", name))
    assert table[0] == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert table[1][:3] == [name, "Running", "0/2"]
    assert [row[0] for row in rows(cluster.kubectl("get", "po", "-o", "name"))] == [
        f"pod/{pod['metadata']['name']}" for pod in pods
    ]


def test_kubectl_get_all_by_label(cluster, job):
    name, _pods = job
    text = cluster.kubectl("get", "all,cm,lease", "-l", "suite=k")
    assert [row[0] for row in rows(text)] == ["NAME", f"job.batch/{name}"]
    assert "No resources found" in cluster.kubectl("get", "all,cm,lease", "-l", "suite=other")


def test_kubectl_apply_again_changes_what_may_change(cluster, job):
    name, _pods = job
    changed = (JOB % name).replace("backoffLimit: 0", "backoffLimit: 3")
    text = cluster.kubectl("apply", "--validate=false", "-f", "-", stdin=changed)
    assert text == f"job.batch/{name} configured\n"
    text = cluster.kubectl("apply", "--validate=false", "-f", "-", stdin=changed)
    assert text == f"job.batch/{name} unchanged\n"


def test_kubectl_describe_shows_events(cluster, job):
    name, pods = job
    text = cluster.kubectl("describe", "job", name)
    assert "Completion Mode:    Indexed" in text
    assert "2 Active (2 Ready) / 0 Succeeded / 0 Failed" in text
    for pod in pods:
        assert f"Created pod: {pod['metadata']['name']}" in text
    text = cluster.kubectl("describe", "pod", pods[0]["metadata"]["name"])
    assert f"Successfully assigned default/{pods[0]['metadata']['name']} to gpu-0" in text
    text = cluster.kubectl("describe", "node", "gpu-0")
    assert re.search(r"nvidia.com/gpu +8 +8", text)


def test_kubectl_logs_follow_a_job(cluster, kubelet, job):
    name, pods = job
    kubelet.answers["main"] = (200, [b"first\n", b"second\n"])
    assert cluster.kubectl("logs", pods[0]["metadata"]["name"]) == "first\nsecond\n"
    text = cluster.kubectl("logs", "-f", "-l", f"job-name={name}", "--prefix", "--tail=-1")
    assert len(text.splitlines()) == 4
    kubelet.requests.clear()
    cluster.kubectl("logs", pods[1]["metadata"]["name"], "--tail=3", "--timestamps", "--since=1m")
    assert kubelet.requests[0][1] == {"tailLines": "3", "timestamps": "true", "sinceSeconds": "60"}
    assert "not found" in cluster.kubectl("logs", "nope", code=1)


def test_kubectl_wait_for_a_condition(cluster, kubelet, job):
    name, pods = job
    for pod in pods:
        kubelet.finish(pod)
    text = cluster.kubectl("wait", "--for=condition=complete", f"job/{name}", "--timeout=10s")
    assert text == f"job.batch/{name} condition met\n"
    table = rows(cluster.kubectl("get", "job", name))
    assert table[1][1:3] == ["Complete", "2/2"]
    table = rows(cluster.kubectl("get", "pods"))
    assert [row[1:3] for row in table[1:]] == [["0/1", "Completed"]] * 2


def test_kubectl_delete_waits_until_the_pods_are_gone(cluster, kubelet, job):
    name, pods = job
    for pod in pods:
        kubelet.finish(pod)
    text = cluster.kubectl("delete", "job", name, "--cascade=foreground", "--timeout=10s")
    assert text.startswith(f'job.batch "{name}" deleted')
    assert "No resources found" in cluster.kubectl("get", "pods")


def test_kubectl_get_watch_prints_changes_as_rows(cluster):
    text = cluster.kubectl("get", "nodes", "-w", "--request-timeout=1s", code=0)
    assert [row[0] for row in rows(text)][:3] == ["NAME", "gpu-0", "gpu-1"]


def test_kubectl_get_the_other_kinds(cluster):
    cluster.create(
        "/api/v1/namespaces/default/services",
        {"metadata": {"name": "s"}, "spec": {"clusterIP": "None"}},
    )
    table = rows(cluster.kubectl("get", "svc"))
    assert table[0] == ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]
    assert table[1][:5] == ["s", "ClusterIP", "None", "<none>", "<none>"]
    assert rows(cluster.kubectl("get", "ns"))[1][:2] == ["default", "Active"]
    assert rows(cluster.kubectl("get", "sa"))[1][0] == "default"
    cluster.kubectl("get", "cm,secrets,endpoints,leases,events", "-A")
    text = cluster.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")
    assert text == "gpu-0 gpu-1"
