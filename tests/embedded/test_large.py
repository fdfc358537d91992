"""Large Jobs: what they cost grows with their pods, not with the square of them."""

import asyncio
import json
import random
import time
from datetime import UTC, datetime

from pytest_cre.embedded import bodies
from pytest_cre.embedded.kinds import JOB, NAMESPACE, NODE, POD
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.server import ClusterSettings, control_loops
from pytest_cre.embedded.store import Store

# Ten times what is measured on an idle machine; the square of 600 would take longer.
CPU_BUDGET_S = 8.0
NODES, PODS = 300, 600
ENDED = {"terminated": {"exitCode": 0, "reason": "Completed"}}
STATUS = {
    "phase": "Succeeded",
    "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "state": ENDED}],
}


class Cluster:
    """All controllers in this process; pods succeed once so many of them have a node."""

    def __init__(self, together):
        self.together = together
        self.bound = []
        self.store = Store(history_events=64)
        self.registry = Registry(self.store, clock=lambda: datetime.now(UTC), rng=random.Random(1))
        self.loops = control_loops(self.registry, ClusterSettings(token="t"))
        self.nodes = set()
        self.is_done = asyncio.Event()
        self.store.subscribe(POD, self.pod_changed)
        self.store.subscribe(JOB, self.job_changed)

    def create(self, kind, namespace, obj):
        body = bodies.parse_object(json.dumps(obj).encode(), "", kind, "Strict")
        return self.registry.create(kind, namespace, body.obj)

    def pod_changed(self, change):
        node = change.record.obj["spec"].get("nodeName")
        if node and change.record.obj["status"]["phase"] == "Pending":
            self.nodes.add(node)
            self.bound.append(change.record.key)
            if len(self.bound) >= self.together:
                while self.bound:
                    asyncio.get_running_loop().call_soon(self.end, self.bound.pop())

    def end(self, key):
        pod = self.store.get(POD, key)
        if pod is not None and pod.obj["status"]["phase"] == "Pending":
            obj = {**pod.obj, "status": {**pod.obj["status"], **STATUS}}
            self.registry.update(POD, *key, obj, subresource="status")

    def job_changed(self, change):
        conditions = change.record.obj["status"].get("conditions", [])
        if any(condition["type"] in ("Complete", "Failed") for condition in conditions):
            self.is_done.set()


async def run(job, together=1):
    cluster = Cluster(together)
    tasks = [asyncio.create_task(loop.run()) for loop in cluster.loops]
    await asyncio.sleep(0)
    cluster.create(NAMESPACE, "", {"metadata": {"name": "default"}})
    await asyncio.sleep(0)
    for index in range(NODES):
        labels = {"kubernetes.io/hostname": f"n{index}"}
        amounts = {"nvidia.com/gpu": "8", "pods": "110"}
        node = cluster.create(
            NODE,
            "",
            {
                "metadata": {"name": f"n{index}", "labels": labels},
                "status": {"allocatable": amounts},
            },
        )
        ready = {**node.obj, "spec": {}}
        ready["status"] = {
            **node.obj["status"],
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        cluster.store.put(NODE, node.key, ready)
    begun_s = time.process_time()
    cluster.create(JOB, "default", job)
    await asyncio.wait_for(cluster.is_done.wait(), 60)
    used_s = time.process_time() - begun_s
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return cluster, used_s


def job(pods, gpus, **spec):
    limits = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    containers = [{"name": "c", "image": "i", **limits}]
    pod = {"restartPolicy": "Never", "containers": containers, **spec}
    return {
        "metadata": {"name": "j"},
        "spec": {
            "completionMode": "Indexed",
            "completions": pods,
            "parallelism": pods,
            "backoffLimit": 0,
            "template": {"metadata": {"labels": {"app": "j"}}, "spec": pod},
        },
    }


def test_job_of_many_pods_completes_within_its_budget():
    cluster, used_s = asyncio.run(run(job(PODS, "2")))
    status = cluster.store.get(JOB, ("default", "j")).obj["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (PODS, f"0-{PODS - 1}")
    assert used_s < CPU_BUDGET_S


def test_job_on_many_named_nodes_that_keeps_its_pods_apart_completes_within_its_budget():
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n{index}"]}]}
        for index in range(NODES)
    ]
    apart = {
        "labelSelector": {"matchLabels": {"app": "j"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity = {
        "nodeAffinity": {required: {"nodeSelectorTerms": terms}},
        "podAntiAffinity": {required: [apart]},
    }
    cluster, used_s = asyncio.run(run(job(NODES, "8", affinity=affinity), together=NODES))
    assert len(cluster.nodes) == NODES
    assert used_s < CPU_BUDGET_S
