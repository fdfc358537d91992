"""Faults of nodes and pods, as a client of the cluster sees them."""

import pytest

NODE = "/api/v1/nodes/h100-0"


def faults(*stanzas):
    return "faults:\n" + "".join(f"- {each}\n" for each in stanzas)


async def node_until(cluster, wanted):
    while True:
        node = await cluster.api.call("GET", NODE)
        if wanted(node):
            return node


def conditions(item):
    return {each["type"]: each for each in item["status"].get("conditions", ())}


def test_cordon_makes_the_node_unschedulable(play):
    async def scene(cluster):
        await cluster.create("p", "sleep 5")
        return await node_until(cluster, lambda node: node["spec"].get("unschedulable"))

    assert play(scene, faults("{action: cordon}"))["metadata"]["name"] == "h100-0"


def test_lost_gpus_are_allocatable_no_more_but_counted_in_the_capacity(play):
    async def scene(cluster):
        await cluster.create("p", "sleep 5")
        return await node_until(
            cluster, lambda node: node["status"]["allocatable"]["nvidia.com/gpu"] != "8"
        )

    status = play(scene, faults("{action: lose-gpu, count: 3}"))["status"]
    assert status["allocatable"]["nvidia.com/gpu"] == "5"
    assert status["capacity"]["nvidia.com/gpu"] == "8"


def test_node_condition_becomes_true_and_the_others_stay(play):
    async def scene(cluster):
        await cluster.create("p", "sleep 5")
        return await node_until(cluster, lambda node: "GpuFellOff" in conditions(node))

    found = conditions(
        play(scene, faults("{action: node-condition, condition: GpuFellOff, message: Xid 79}"))
    )
    assert (found["GpuFellOff"]["status"], found["GpuFellOff"]["message"]) == ("True", "Xid 79")
    assert found["Ready"]["status"] == "True"


def test_reboot_gives_a_new_boot_id_and_loses_the_containers(play):
    async def scene(cluster):
        before = await cluster.api.call("GET", NODE)
        await cluster.create("p", "sleep 9")
        pod = await cluster.ended("p")
        boot = before["status"]["nodeInfo"]["bootID"]
        after = await node_until(cluster, lambda n: n["status"]["nodeInfo"]["bootID"] != boot)
        return pod, before["metadata"]["uid"] == after["metadata"]["uid"]

    pod, is_same = play(scene, faults("{action: reboot, after: {seconds: 0.05}}"))
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (pod["status"]["phase"], ended["reason"]) == ("Failed", "ContainerStatusUnknown")
    assert is_same


def test_replaced_node_comes_again_with_another_uid(play):
    async def scene(cluster):
        before = await cluster.api.call("GET", NODE)
        await cluster.create("p", "sleep 5")
        await cluster.running("p")
        uid = before["metadata"]["uid"]
        while True:
            nodes, _ = await cluster.api.list_all("/api/v1/nodes", {})
            found = [
                each["metadata"]["uid"] for each in nodes if each["metadata"]["name"] == "h100-0"
            ]
            if found and found != [uid]:
                return len(nodes)

    assert play(scene, faults("{action: replace-node}")) == 2


@pytest.mark.parametrize(
    ("action", "reason", "mark"),
    [("evict", "Evicted", "TerminationByKubelet"), ("evict-unmarked", "Evicted", None)],
)
def test_evicted_pod_fails_with_and_without_its_mark(play, action, reason, mark):
    async def scene(cluster):
        await cluster.create("p", "sleep 9")
        return await cluster.ended("p")

    pod = play(scene, faults(f"{{action: {action}}}"))
    assert pod["status"]["reason"] == reason
    assert conditions(pod).get("DisruptionTarget", {}).get("reason") == mark


def test_preempted_pod_is_marked_and_goes(play):
    async def scene(cluster):
        await cluster.create("p", "sleep 9")
        marked = await cluster.until("p", lambda pod: "DisruptionTarget" in conditions(pod))
        await cluster.gone("p")
        return marked

    pod = play(scene, faults("{action: preempt, after: {seconds: 0.1}}"))
    assert conditions(pod)["DisruptionTarget"]["reason"] == "PreemptionByScheduler"


@pytest.mark.parametrize("action", ["delete-pod", "fail-and-delete"])
def test_deleted_pod_is_gone(play, action):
    async def scene(cluster):
        await cluster.create("p", "sleep 9")
        await cluster.gone("p")
        return True

    assert play(scene, faults(f"{{action: {action}, after: {{seconds: 0.05}}}}"))


def test_restart_in_place_keeps_the_log_before_as_previous(play):
    async def scene(cluster):
        await cluster.create("p", "echo hello; sleep 0.4")
        pod = await cluster.ended("p")
        return pod, await cluster.logs("p", previous="true"), await cluster.logs("p")

    pod, before, now = play(
        scene, faults("{action: restart, exitCode: 7, after: {seconds: 0.1}, times: 1}")
    )
    status = pod["status"]["containerStatuses"][0]
    assert (pod["status"]["phase"], status["restartCount"]) == ("Succeeded", 1)
    assert status["lastState"]["terminated"]["exitCode"] == 7
    assert before == now == (200, "hello\n")


def test_config_error_keeps_the_pod_waiting(play):
    async def scene(cluster):
        await cluster.create("p", "true")
        return await cluster.until(
            "p", lambda pod: "message" in str(pod["status"].get("containerStatuses"))
        )

    pod = play(scene, faults("{action: config-error, message: secret x is gone}"))
    waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting == {"reason": "CreateContainerConfigError", "message": "secret x is gone"}


def test_pod_that_is_not_admitted_has_no_container(play):
    async def scene(cluster):
        await cluster.create("p", "true")
        return await cluster.ended("p"), await cluster.logs("p")

    pod, (code, _) = play(scene, faults("{action: refuse-admission}"))
    assert pod["status"]["reason"] == "UnexpectedAdmissionError"
    assert not pod["status"].get("containerStatuses")
    assert code == 400


def test_pod_stuck_in_terminating_goes_when_its_time_is_over(play):
    async def scene(cluster):
        await cluster.create("p", "sleep 9")
        await cluster.running("p")
        body = {"gracePeriodSeconds": 1}
        await cluster.api.call("DELETE", "/api/v1/namespaces/default/pods/p", body)
        still = await cluster.until("p", lambda pod: pod["metadata"].get("deletionTimestamp"))
        await cluster.gone("p")
        return still

    assert play(scene, faults("{action: stuck-terminating, seconds: 0.2}"))


def test_pod_flips_to_failed_after_its_success(play):
    async def scene(cluster):
        await cluster.create("p", "true")
        return await cluster.until("p", lambda pod: pod["status"]["phase"] == "Failed")

    assert play(scene, faults("{action: flip, seconds: 0.1}"))["status"]["reason"] == (
        "UnexpectedAdmissionError"
    )
