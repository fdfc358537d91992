"""Every node's kubelet in one: registers nodes, keeps them alive, runs the pods bound to them."""

import asyncio
import contextlib
import logging
from typing import Any
from uuid import uuid4

from pytest_cre.simulator.api import MERGE_PATCH, STRATEGIC_PATCH, ApiClient, ApiRefusal
from pytest_cre.simulator.faults import Fault
from pytest_cre.simulator.hardware import SimulatedNode
from pytest_cre.simulator.logserver import LogServer
from pytest_cre.simulator.nodeobjects import (
    LEASE_NAMESPACE,
    lease_object,
    node_object,
    node_status,
    now_micro_text,
    now_text,
    ready_conditions,
)
from pytest_cre.simulator.pod import PodRun
from pytest_cre.simulator.podstatus import condition
from pytest_cre.simulator.world import World

Json = Any

_LOG = logging.getLogger(__name__)
_CONCURRENT_CALLS = 16
LEASE_PERIOD_S = 10.0  # as kubelets do
_STATUS_PERIODS = 30  # leases renewed between two heartbeats in the node's status
_TAINT_TIMEOUT_S = 30.0
_TAINT_POLL_S = (0.05, 1.0)
_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases"
_NOT_READY_TAINT = "node.kubernetes.io/not-ready"


class Kubelet:
    """Plays the kubelets of a scenario's nodes to one API server."""

    def __init__(
        self, api: ApiClient, world: World, *, lease_period_s: float = LEASE_PERIOD_S
    ) -> None:
        self.api, self.world = api, world
        self._lease_period_s = lease_period_s
        self.pods: dict[str, PodRun] = {}
        self._by_name: dict[tuple[str, str], PodRun] = {}
        self._server = LogServer(
            lambda namespace, name: self._by_name.get((namespace, name)), world.is_lost
        )
        self._boot = uuid4().hex
        self._version = "v0.0.0"
        self._since = now_text()
        self._addresses = 0
        self._limit = asyncio.Semaphore(_CONCURRENT_CALLS)
        self._boots: dict[str, str] = {}  # of the nodes that were rebooted
        self._gpus: dict[str, int] = {}  # of the nodes that have lost some
        self._tasks: set[asyncio.Task[None]] = set()
        world.has_service = self._has_service
        world.hit_node = self._hit_node

    async def run(self, ready: asyncio.Event) -> None:
        """Register the nodes, set `ready`, and run pods until cancelled."""
        await self._server.start()
        try:
            version = await self.api.call("GET", "/version")
            self._version = str(version.get("gitVersion") or self._version)
            await self._each(self._register)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._renew_leases())
                group.create_task(self._follow_pods())
                await self._await_schedulable()
                ready.set()
        finally:
            await self._end_pods()
            await self._server.stop()

    # Nodes

    async def _each(self, action: Any, nodes: list[SimulatedNode] | None = None) -> None:
        """Do something for every node, some at a time."""

        async def limited(node: SimulatedNode) -> None:
            async with self._limit:
                await action(node)

        every = list(self.world.nodes.values()) if nodes is None else nodes
        async with asyncio.TaskGroup() as group:
            for node in every:
                group.create_task(limited(node))

    async def _register(self, node: SimulatedNode) -> None:
        body = node_object(node, self.world.scenario.limits_json)
        path = f"/api/v1/nodes/{node.name}"
        status = self._status(node)
        try:
            seen = await self.api.call("POST", "/api/v1/nodes", {**body, "status": status})
        except ApiRefusal as refusal:
            if refusal.status != 409:
                raise
            # It is there from an earlier start: it is adopted, and becomes what the scenario says.
            patch = {"metadata": {key: body["metadata"][key] for key in ("labels", "annotations")}}
            seen = await self.api.call("PATCH", path, patch, content_type=MERGE_PATCH)
        if seen.get("status", {}).get("nodeInfo", {}).get("bootID") != status["nodeInfo"]["bootID"]:
            await self.api.call(
                "PATCH", f"{path}/status", {"status": status}, content_type=STRATEGIC_PATCH
            )
        lease = lease_object(node.name, seen["metadata"]["uid"])
        try:
            await self.api.call("POST", _LEASES, lease)
        except ApiRefusal as refusal:
            if refusal.status != 409:
                raise
            await self._renew(node)

    def _status(self, node: SimulatedNode) -> Json:
        return node_status(
            node,
            port=self._server.port,
            version=self._version,
            boot=self._boots.get(node.name, self._boot),
            ready_since=self._since,
            gpus=self._gpus.get(node.name, node.gpus),
        )

    def _hit_node(self, name: str, fault: Fault) -> None:
        """Let a fault befall a node, in the background."""
        task = asyncio.create_task(self._spoil_node(self.world.nodes[name], fault))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _spoil_node(self, node: SimulatedNode, fault: Fault) -> None:
        path = f"/api/v1/nodes/{node.name}"
        match fault.action:
            case "cordon":
                await self._kindly("PATCH", path, {"spec": {"unschedulable": True}}, MERGE_PATCH)
                return
            case "replace-node":
                await self._kindly("DELETE", path, {}, "application/json")
                await self._register(node)
                return
            case "reboot":
                self._boots[node.name] = uuid4().hex
                for run in self.pods.values():
                    if run.node is node:
                        run.lose_containers()
            case "lose-gpu":
                left = self._gpus.get(node.name, node.gpus) - fault.count
                self._gpus[node.name] = max(0, left)
        status = self._status(node)
        if fault.action == "node-condition":
            words = fault.message or "reported by a planted fault"
            found = condition(fault.condition, True, fault.reason or "Planted", words)
            status["conditions"].append(found)
        await self._kindly("PATCH", f"{path}/status", {"status": status}, STRATEGIC_PATCH)

    async def _await_schedulable(self) -> None:
        """Wait until the cluster has seen the nodes ready; without a controller it never says so."""
        delay_s, longest_s = _TAINT_POLL_S
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TAINT_TIMEOUT_S):
                while True:
                    nodes, _ = await self.api.list_all("/api/v1/nodes", {})
                    ours = [each for each in nodes if each["metadata"]["name"] in self.world.nodes]
                    if not any(_is_tainted(each) for each in ours):
                        return
                    await asyncio.sleep(delay_s)
                    delay_s = min(delay_s * 1.5, longest_s)

    async def _renew_leases(self) -> None:
        """Keep the nodes alive, those that are within reach."""
        rounds = 0
        while True:
            await asyncio.sleep(self._lease_period_s)
            rounds += 1
            alive = [
                each for each in self.world.nodes.values() if not self.world.is_lost(each.name)
            ]
            await self._each(self._renew, alive)
            if rounds % _STATUS_PERIODS == 0:
                await self._each(self._beat, alive)

    async def _renew(self, node: SimulatedNode) -> None:
        patch = {"spec": {"renewTime": now_micro_text(), "holderIdentity": node.name}}
        await self._kindly("PATCH", f"{_LEASES}/{node.name}", patch, MERGE_PATCH)

    async def _beat(self, node: SimulatedNode) -> None:
        patch = {"status": {"conditions": ready_conditions(self._since)}}
        await self._kindly("PATCH", f"/api/v1/nodes/{node.name}/status", patch, STRATEGIC_PATCH)

    async def _kindly(self, verb: str, path: str, body: Json, content_type: str) -> None:
        """Call, and only note a refusal: somebody may have deleted the object."""
        try:
            await self.api.call(verb, path, body, content_type=content_type)
        except ApiRefusal as refusal:
            _LOG.warning("%s %s: %s", verb, path, refusal)

    # Pods

    async def _follow_pods(self) -> None:
        async for kind, item in self.api.follow(
            "/api/v1/pods", {"fieldSelector": "spec.nodeName!="}
        ):
            if kind == "LISTED":
                present = {pod["metadata"]["uid"] for pod in item}
                for uid in [uid for uid in self.pods if uid not in present]:
                    self._forget(uid)
                for pod in item:
                    self._see(pod)
            elif kind == "DELETED":
                self._forget(item["metadata"]["uid"])
            else:
                self._see(item)

    def _see(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        node = self.world.nodes.get(pod["spec"].get("nodeName", ""))
        if uid in self.pods:
            self.pods[uid].update(pod)
        elif node is not None:
            self._addresses += 1
            run = PodRun(
                pod,
                api=self.api,
                world=self.world,
                node=node,
                pod_ip=_pod_ip(self._addresses),
                tell=self._tell,
            )
            self.pods[uid] = run
            self._by_name[run.namespace, run.name] = run
            run.start()

    def _forget(self, uid: str) -> None:
        run = self.pods.pop(uid, None)
        if run is not None:
            run.vanish()
            if self._by_name.get((run.namespace, run.name)) is run:
                del self._by_name[run.namespace, run.name]

    async def _end_pods(self) -> None:
        runs = list(self.pods.values())
        for run in runs:
            run.vanish()
        await asyncio.gather(*(run.finish() for run in runs))

    async def _has_service(self, namespace: str, name: str) -> bool:
        try:
            await self.api.call("GET", f"/api/v1/namespaces/{namespace}/services/{name}")
        except ApiRefusal:
            return False
        return True

    async def _tell(self, pod: Json, kind: str, reason: str, message: str) -> None:
        metadata = pod["metadata"]
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name'][:200]}.{uuid4().hex[:16]}",
                "namespace": metadata["namespace"],
            },
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet", "host": pod["spec"].get("nodeName", "")},
            "firstTimestamp": now_text(),
            "lastTimestamp": now_text(),
            "count": 1,
        }
        path = f"/api/v1/namespaces/{metadata['namespace']}/events"
        await self._kindly("POST", path, event, "application/json")


def _is_tainted(node: Json) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(taint.get("key") == _NOT_READY_TAINT for taint in taints)


def _pod_ip(number: int) -> str:
    return f"10.{64 + (number >> 16) % 64}.{(number >> 8) % 256}.{number % 256}"
