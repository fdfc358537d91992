"""Simulated nodes on the embedded API server, in one process."""

import asyncio
import json
import re
import ssl

import aiohttp
import pytest

from pytest_cre.simulator.run import run_simulator
from tests.simulator.scenes import PODS


def test_nodes_are_registered_ready_and_marked_as_simulated(play):
    async def scene(cluster):
        return await cluster.api.list_all("/api/v1/nodes", {})

    nodes, _ = play(scene)
    assert [node["metadata"]["name"] for node in nodes] == ["h100-0", "h100-1"]
    node = nodes[0]
    labels = node["metadata"]["labels"]
    assert labels["cre.pytest.org/simulated"] == "true"
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert labels["nvidia.com/gpu.count"] == "8"
    assert labels["kubernetes.io/hostname"] == "h100-0"
    assert node["spec"]["taints"] == [
        {"key": "cre.pytest.org/simulated", "value": "true", "effect": "NoSchedule"}
    ]
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    ready = [each for each in node["status"]["conditions"] if each["type"] == "Ready"]
    assert ready[0]["status"] == "True"
    limits = json.loads(node["metadata"]["annotations"]["cre.pytest.org/simulated-limits"])
    assert {limit["tier"] for limit in limits} == {"simulated"}


def test_nodes_have_leases_and_those_there_already_are_adopted(play):
    async def scene(cluster):
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        before, _ = await cluster.api.list_all(leases, {})
        node = await cluster.api.call("GET", "/api/v1/nodes/h100-0")
        patch = {"metadata": {"labels": {"nvidia.com/gpu.count": "1"}}}
        await cluster.api.call(
            "PATCH", "/api/v1/nodes/h100-0", patch, content_type="application/merge-patch+json"
        )
        from pytest_cre.simulator.kubelet import Kubelet
        from pytest_cre.simulator.scenario import load_scenario
        from pytest_cre.simulator.world import World

        second = asyncio.create_task(
            Kubelet(cluster.api, World(load_scenario("h100-2"), 0)).run(ready := asyncio.Event())
        )
        await asyncio.wait_for(ready.wait(), 5)
        again = await cluster.api.call("GET", "/api/v1/nodes/h100-0")
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        return before, node, again

    leases, node, again = play(scene)
    assert [lease["spec"]["holderIdentity"] for lease in leases] == ["h100-0", "h100-1"]
    assert again["metadata"]["uid"] == node["metadata"]["uid"]
    assert again["metadata"]["labels"]["nvidia.com/gpu.count"] == "8"
    assert again["status"]["nodeInfo"]["bootID"] != node["status"]["nodeInfo"]["bootID"]


def test_pod_goes_from_running_to_its_end(play):
    async def scene(cluster):
        await cluster.create("p", "echo a; sleep 0.1; exit 3")
        running = await cluster.running("p")
        return running, await cluster.ended("p"), await cluster.logs("p")

    running, ended, logs = play(scene)
    assert "startedAt" in running["status"]["containerStatuses"][0]["state"]["running"]
    assert running["status"]["podIP"].startswith("10.")
    conditions = {each["type"]: each["status"] for each in running["status"]["conditions"]}
    assert conditions["Ready"] == conditions["Initialized"] == "True"
    state = ended["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["status"]["phase"], state["exitCode"], state["reason"]) == ("Failed", 3, "Error")
    assert state["finishedAt"] >= state["startedAt"]
    assert logs == (200, "a\n")


def test_pod_with_restart_policy_on_failure_is_restarted_in_place(play, monkeypatch):
    monkeypatch.setattr("pytest_cre.simulator.container._RESTART_S", (0.02, 0.02))

    async def scene(cluster):
        await cluster.create("p", "echo run; sleep 0.1; exit 1", restartPolicy="OnFailure")
        pod = await cluster.until(
            "p",
            lambda pod: any(
                each["restartCount"] and each["state"].get("running")
                for each in pod["status"].get("containerStatuses", ())
            ),
        )
        return pod, await cluster.logs("p", previous="true")

    pod, previous = play(scene)
    status = pod["status"]["containerStatuses"][0]
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert previous == (200, "run\n")


def test_pod_that_is_deleted_is_stopped_and_let_go(play):
    async def scene(cluster):
        await cluster.create("p", "sleep 60")
        await cluster.running("p")
        await cluster.api.call("DELETE", f"{PODS}/p")
        await cluster.gone("p")
        return await cluster.logs("p")

    assert play(scene)[0] == 404


def test_pod_that_ended_is_let_go_when_deleted(play):
    async def scene(cluster):
        await cluster.create("p", "true")
        await cluster.ended("p")
        await cluster.api.call("DELETE", f"{PODS}/p")
        await cluster.gone("p")
        return True

    assert play(scene)


def test_pod_with_a_deadline_fails_on_it(play):
    async def scene(cluster):
        await cluster.create("p", "sleep 60", activeDeadlineSeconds=1)
        return await cluster.ended("p")

    status = play(scene)["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143


def test_pod_waits_for_a_config_map_that_comes_later(play):
    async def scene(cluster):
        volumes = [{"name": "s", "configMap": {"name": "late"}}]
        containers = [
            {
                "name": "main",
                "image": "x",
                "command": ["sh", "/cre/a.sh"],
                "volumeMounts": [{"name": "s", "mountPath": "/cre"}],
            }
        ]
        await cluster.create("p", "", volumes=volumes, containers=containers)
        events = "/api/v1/namespaces/default/events"
        while not [
            each
            for each in (await cluster.api.list_all(events, {}))[0]
            if each["reason"] == "FailedMount"
        ]:
            await asyncio.sleep(0.02)
        body = {"metadata": {"name": "late"}, "data": {"a.sh": "echo mounted"}}
        await cluster.api.call("POST", "/api/v1/namespaces/default/configmaps", body)
        await cluster.ended("p")
        return await cluster.logs("p")

    assert play(scene) == (200, "mounted\n")


def test_pod_with_failing_init_container_never_runs(play):
    async def scene(cluster):
        init = [{"name": "init", "image": "x", "command": ["sh", "-c", "exit 2"]}]
        await cluster.create("p", "echo never", initContainers=init)
        return await cluster.ended("p")

    status = play(scene)["status"]
    assert status["phase"] == "Failed"
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 2
    assert "waiting" in status["containerStatuses"][0]["state"]


def test_pod_that_fails_shows_the_end_of_its_log_as_message(play):
    async def scene(cluster):
        container = {
            "name": "main",
            "image": "x",
            "command": ["sh", "-c", "echo the reason; exit 1"],
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }
        await cluster.create("p", "", containers=[container])
        return await cluster.ended("p")

    state = play(scene)["status"]["containerStatuses"][0]["state"]["terminated"]
    assert state["message"] == "the reason\n"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({}, "a\nb\nc\n"),
        ({"tailLines": "2"}, "b\nc\n"),
        ({"limitBytes": "3"}, "a\nb"),
        ({"follow": "true"}, "a\nb\nc\n"),
        ({"sinceSeconds": "3600"}, "a\nb\nc\n"),
        ({"sinceTime": "2200-01-01T00:00:00Z"}, ""),
    ],
)
def test_logs_follow_their_options(play, query, text):
    async def scene(cluster):
        await cluster.create("p", "echo a; echo b; echo c")
        await cluster.ended("p")
        return await cluster.logs("p", **query)

    assert play(scene) == (200, text)


def test_logs_with_timestamps_and_since_overlap_by_whole_seconds(play):
    async def scene(cluster):
        await cluster.create("p", "echo a; echo b")
        await cluster.ended("p")
        _, stamped = await cluster.logs("p", timestamps="true")
        last = stamped.splitlines()[-1].split()[0]
        return stamped, await cluster.logs("p", sinceTime=last)

    stamped, since = play(scene)
    assert re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z [ab]\n){2}", stamped)
    assert since == (200, "a\nb\n")  # what a resume by time has to expect


def test_logs_that_cannot_be_had_are_refused_as_kubelets_do(play):
    async def scene(cluster):
        await cluster.create("p", "sleep 60")
        await cluster.create("q", "true", volumes=[{"name": "s", "configMap": {"name": "none"}}])
        await cluster.running("p")
        return (
            await cluster.logs("p", previous="true"),
            await cluster.logs("p", tailLines="x"),
            await cluster.logs("none"),
        )

    previous, bad, none = play(scene)
    assert previous[0] == 400
    assert "previous terminated container" in previous[1]
    assert bad == (400, "tailLines must be a whole number of at least 0, got 'x'\n")
    assert none[0] == 404


def test_log_stream_starts_before_the_first_line(play):
    async def scene(cluster):
        await cluster.create("p", "sleep 60")
        await cluster.running("p")
        url = f"{await cluster.kubelet_url()}/containerLogs/default/p/main"
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, params={"follow": "true"}, ssl=False) as response,
        ):
            return response.status

    assert play(scene) == 200


def test_kubelet_certificate_is_its_own(play):
    async def scene(cluster):
        async with aiohttp.ClientSession() as session:
            try:
                await session.get(f"{await cluster.kubelet_url()}/healthz")
            except aiohttp.ClientConnectorCertificateError as problem:
                return problem.certificate_error

    assert isinstance(play(scene), ssl.SSLCertVerificationError)


def test_image_pull_fault_keeps_the_pod_waiting(play):
    async def scene(cluster):
        await cluster.create("p", "echo never", labels={"team": "a"})
        pod = await cluster.until("p", lambda pod: pod["status"].get("containerStatuses"))
        await cluster.api.call("DELETE", f"{PODS}/p")
        await cluster.gone("p")
        return pod

    pod = play(scene, "faults: [{match: {labels: {team: a}}, action: image-pull-back-off}]\n")
    waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] in ("ContainerCreating", "ErrImagePull", "ImagePullBackOff")
    assert pod["status"]["phase"] == "Pending"


def test_evict_fault_fails_the_pod_as_its_node_would(play):
    async def scene(cluster):
        await cluster.create("p", "sleep 60")
        return await cluster.ended("p")

    status = play(scene, "faults: [{action: evict, after: {seconds: 0.05}}]\n")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    disruption = [each for each in status["conditions"] if each["type"] == "DisruptionTarget"]
    assert disruption[0]["reason"] == "TerminationByKubelet"


def test_lost_node_reports_nothing_and_serves_no_log_until_it_is_back(play):
    async def scene(cluster):
        await cluster.create("p", "echo a; sleep 0.1")
        await cluster.running("p")
        await asyncio.sleep(0.3)
        silent = await cluster.get("p")
        with pytest.raises(aiohttp.ClientError):
            await cluster.logs("p")
        return silent, await cluster.ended("p")

    fault = "faults: [{action: stop-heartbeat, seconds: 1, after: {seconds: 0.05}}]\n"
    silent, ended = play(scene, fault)
    assert silent["status"]["phase"] == "Running"
    assert ended["status"]["phase"] == "Succeeded"


def test_job_of_two_nodes_meets_through_its_service_and_retries_after_a_crash(play):
    script = (
        "torchrun --nnodes=2 --nproc-per-node=8 --node-rank=$JOB_COMPLETION_INDEX "
        "--master-addr=j-0.j /opt/pretrain_gpt.py --train-iters=8 --log-interval=4 --num-layers=2 "
        "--hidden-size=8 --num-attention-heads=2 --micro-batch-size=1 --eval-iters=0 --save=/c "
        "--load=/c --save-interval=2"
    )
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "completionMode": "Indexed",
            "completions": 2,
            "parallelism": 2,
            "backoffLimit": 3,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "subdomain": "j",
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [
                        {
                            "name": "main",
                            "image": "x",
                            "command": ["sh", "-c", script],
                            "resources": {"limits": {"nvidia.com/gpu": "8"}},
                        }
                    ],
                }
            },
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "j"},
        "spec": {"clusterIP": "None", "selector": {"job-name": "j"}},
    }

    async def scene(cluster):
        await cluster.api.call("POST", "/api/v1/namespaces/default/services", service)
        await cluster.api.call("POST", "/apis/batch/v1/namespaces/default/jobs", job)
        while True:
            found = await cluster.api.call("GET", "/apis/batch/v1/namespaces/default/jobs/j")
            kinds = {each["type"] for each in found["status"].get("conditions", ())}
            if kinds & {"Complete", "Failed"}:
                break
            await asyncio.sleep(0.02)
        pods, _ = await cluster.api.list_all(PODS, {"labelSelector": "job-name=j"})
        texts = [(await cluster.logs(pod["metadata"]["name"]))[1] for pod in pods]
        return kinds, pods, "".join(texts)

    kinds, pods, text = play(
        scene,
        "hardware: {h100: {stepTimeS: 0.005}}\n"
        "faults: [{match: {node: h100-1}, action: crash, after: {step: 6}, times: 1}]\n",
    )
    assert "Complete" in kinds
    assert len(pods) == 4
    assert " loading checkpoint from /c at iteration 4\n" in text


def test_simulator_with_an_unknown_scenario_starts_nothing():
    async def scene():
        await run_simulator(
            server="http://127.0.0.1:1",
            token=None,
            ca_file=None,
            scenario="nope",
            seed=None,
            ready=asyncio.Event(),
        )

    with pytest.raises(ValueError, match="'nope' is unknown; choices: a100-4"):
        asyncio.run(scene())
