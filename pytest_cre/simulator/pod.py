"""The life of one pod on a simulated node, from its binding to its end."""

import asyncio
import contextlib
import logging
from typing import Any

from pytest_cre.simulator.api import STRATEGIC_PATCH, ApiClient, ApiRefusal
from pytest_cre.simulator.container import Container
from pytest_cre.simulator.faults import Action, Fault, Subject
from pytest_cre.simulator.hardware import SimulatedNode
from pytest_cre.simulator.nodeobjects import now_text
from pytest_cre.simulator.podstart import Tell, pull_images, resolve_containers
from pytest_cre.simulator.podstatus import (
    SIGKILL_EXIT,
    ContainerExit,
    condition,
    pod_status,
)
from pytest_cre.simulator.world import World

Json = Any
_LOG = logging.getLogger(__name__)
_LOST_NODE_POLL_S = 0.5
_FINISHED = ("Succeeded", "Failed")


class PodRun:
    """One pod. Its task ends when the pod has ended and, if it is deleted, was let go."""

    def __init__(
        self,
        pod: Json,
        *,
        api: ApiClient,
        world: World,
        node: SimulatedNode,
        pod_ip: str,
        tell: Tell,
    ) -> None:
        self.pod, self.api, self.world, self.node, self.tell = pod, api, world, node, tell
        self.pod_ip = pod_ip
        self.name: str = pod["metadata"]["name"]
        self.namespace: str = pod["metadata"]["namespace"]
        self.uid: str = pod["metadata"]["uid"]
        self.containers = [self._container(each) for each in pod["spec"].get("containers") or ()]
        self.init_containers = [
            self._container(each) for each in pod["spec"].get("initContainers") or ()
        ]
        self._phase = "Pending"
        self._started_at: str | None = None
        self._is_initialized = not self.init_containers
        self._stop = asyncio.Event()
        self._eviction: tuple[str, str] | None = None  # message, and what marks it
        self._deletion: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def path(self) -> str:
        """Return the pod's address."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"

    def find(self, container: str) -> Container | None:
        """Return a container by name."""
        found = (
            each for each in (*self.containers, *self.init_containers) if each.name == container
        )
        return next(found, None)

    def start(self) -> None:
        """Begin the pod's life in the background."""
        self._task = asyncio.create_task(self._guarded())

    def update(self, pod: Json) -> None:
        """Take a newer state of the object."""
        self.pod = pod
        if pod["metadata"].get("deletionTimestamp"):
            self._stop.set()

    def vanish(self) -> None:
        """End at once and tell nobody: the object is gone."""
        if self._task is not None:
            self._task.cancel()

    async def finish(self) -> None:
        """Wait until nothing of the pod runs any more."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    def evict(self, message: str, *, mark: str = "TerminationByKubelet") -> None:
        """End the pod as evicted; `mark` is the reason of its condition DisruptionTarget, if any."""
        self._eviction = (message, mark)
        self._stop.set()

    def delete(self, mark: str = "") -> None:
        """Have the pod deleted, as somebody with a client does; `mark` as in `evict`."""
        self._deletion = asyncio.create_task(self._delete(mark))

    def lose_containers(self) -> None:
        """End every container at once: the node has started anew."""
        for container in self.containers:
            container.kill(ContainerExit(code=SIGKILL_EXIT, reason="ContainerStatusUnknown"))

    # Life

    async def _guarded(self) -> None:
        """One pod's trouble is its own: it is written down and the others live on."""
        try:
            await self._live()
        except ApiRefusal as refusal:
            if refusal.status not in (404, 409):  # gone, or another of the same name
                _LOG.warning("pod %s/%s: %s", self.namespace, self.name, refusal)
        except Exception:  # noqa: BLE001 - whatever it is, the other pods go on
            _LOG.exception("pod %s/%s", self.namespace, self.name)
        finally:
            await self._kill()

    async def _live(self) -> None:
        self.update(self.pod)
        status = self.pod.get("status") or {}
        if status.get("phase") not in _FINISHED:
            refusal = self._holding("refuse-admission")
            if refusal is not None:
                reason = refusal.reason or "UnexpectedAdmissionError"
                words = refusal.message or (
                    "Allocate failed due to no healthy devices present; cannot allocate "
                    "unhealthy devices nvidia.com/gpu, which is unexpected"
                )
                await self.report("Failed", reason=reason, message=words, is_bare=True)
            elif status.get("startTime"):
                # It was started by a kubelet that is no more; its containers are lost with it.
                await self._report_lost()
            else:
                await self._run_until_stopped()
                await self._flip()
        await self._stop.wait()
        if self.pod["metadata"].get("deletionTimestamp"):
            await self._let_go()

    async def _run_until_stopped(self) -> None:
        work = asyncio.create_task(self._run())
        stop = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await work
                await self._stop_containers()
                await self._report_stopped()
            else:
                work.result()
        finally:
            work.cancel()
            stop.cancel()

    async def _run(self) -> None:
        self._started_at = now_text()
        await self.report()
        await pull_images(self)
        await resolve_containers(self)
        await asyncio.sleep(self.world.scenario.pod_start_s)
        for container in self.init_containers:
            ended = await container.run_to_end(self.report)
            if ended.code:
                await self.report("Failed")
                return
        self._is_initialized = True
        self._phase = "Running"
        deadline_s = self.pod["spec"].get("activeDeadlineSeconds")
        runs = [asyncio.create_task(each.run_to_end(self.report)) for each in self.containers]
        try:
            async with asyncio.timeout(deadline_s):
                await asyncio.sleep(0)  # so that all have started before the first report
                await self.report("Running")
                ends = await asyncio.gather(*runs)
        except TimeoutError:
            await self._stop_containers()
            words = "Pod was active on the node longer than the specified deadline"
            await self.report("Failed", reason="DeadlineExceeded", message=words)
            return
        finally:
            for run in runs:
                run.cancel()
        is_well = all(ended.code == 0 for ended in ends)
        await self.report("Succeeded" if is_well else "Failed")

    # Ends

    async def _stop_containers(self) -> None:
        metadata, spec = self.pod["metadata"], self.pod["spec"]
        grace_s = metadata.get(
            "deletionGracePeriodSeconds", spec.get("terminationGracePeriodSeconds")
        )
        grace_s = 30.0 if grace_s is None else float(grace_s)
        await asyncio.gather(
            *(each.stop(grace_s) for each in (*self.init_containers, *self.containers))
        )

    async def _kill(self) -> None:
        for container in (*self.init_containers, *self.containers):
            await container.stop(0.0)

    async def _report_stopped(self) -> None:
        for container in self.containers:
            if container.state.ended is None:
                container.state.end(
                    ContainerExit(code=SIGKILL_EXIT, reason="ContainerStatusUnknown")
                )
        if self._eviction is None:
            is_well = all(
                each.state.ended.code == 0 for each in self.containers if each.state.ended
            )
            await self.report("Succeeded" if is_well else "Failed")
            return
        message, mark = self._eviction
        await self.tell(self.pod, "Warning", "Evicted", message)
        disrupted = (condition("DisruptionTarget", True, mark, message),) if mark else ()
        await self.report("Failed", conditions=disrupted, reason="Evicted", message=message)
        self._stop.clear()
        if self.pod["metadata"].get("deletionTimestamp"):
            self._stop.set()

    async def _report_lost(self) -> None:
        self._started_at = self.pod["status"]["startTime"]
        for container in self.containers:
            container.state.end(ContainerExit(code=SIGKILL_EXIT, reason="ContainerStatusUnknown"))
        self._is_initialized = True
        await self.report("Failed")

    async def _flip(self) -> None:
        """Turn a pod that succeeded into one that was not admitted, as kubelets that restart do."""
        fault = self._holding("flip") if self._phase == "Succeeded" else None
        if fault is not None:
            await asyncio.sleep(fault.seconds or 0.0)
            words = "Allocate failed due to no healthy devices present"
            await self.report("Failed", reason="UnexpectedAdmissionError", message=words)

    async def _delete(self, mark: str) -> None:
        with contextlib.suppress(ApiRefusal):
            if mark:
                words = "Pod was preempted to accommodate a higher priority pod"
                status = {"conditions": [condition("DisruptionTarget", True, mark, words)]}
                await self.api.call(
                    "PATCH", f"{self.path}/status", {"status": status}, content_type=STRATEGIC_PATCH
                )
            body = {"gracePeriodSeconds": 1, "preconditions": {"uid": self.uid}}
            await self.api.call("DELETE", self.path, body)

    def _holding(self, action: Action) -> Fault | None:
        """Return the fault of this kind that lies on the pod."""
        names = [each.name for each in self.containers]
        subject = self.subject(names[0] if names else "")
        return next(self.world.faults.holding(action, subject), None)

    async def _let_go(self) -> None:
        await self._while_reachable()
        if (fault := self._holding("stuck-terminating")) is not None:
            if fault.seconds is None:
                await asyncio.Event().wait()
            else:
                await asyncio.sleep(fault.seconds)
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
        with contextlib.suppress(ApiRefusal):
            await self.api.call("DELETE", self.path, body)

    # Status

    async def report(
        self,
        phase: str | None = None,
        *,
        conditions: tuple[Json, ...] = (),
        reason: str = "",
        message: str = "",
        is_bare: bool = False,
    ) -> None:
        """Write the pod's status as it is now, once its node is within reach.

        `is_bare`: no container was ever made, so none is told of.
        """
        self._phase = phase or self._phase
        await self._while_reachable()
        status = pod_status(
            self._phase,
            states=[each.state for each in self.containers],
            init_states=[each.state for each in self.init_containers],
            started_at=self._started_at,
            pod_ip=self.pod_ip,
            is_initialized=self._is_initialized,
            conditions=conditions,
            reason=reason,
            message=message,
        )
        if is_bare:
            del status["containerStatuses"]
        patch = {"metadata": {"uid": self.uid}, "status": status}
        await self.api.call("PATCH", f"{self.path}/status", patch, content_type=STRATEGIC_PATCH)

    async def warn(self, reason: str, message: str) -> None:
        """Write an Event of type Warning about the pod."""
        await self.tell(self.pod, "Warning", reason, message)

    async def _while_reachable(self) -> None:
        while self.world.is_lost(self.node.name):
            await asyncio.sleep(_LOST_NODE_POLL_S)

    def subject(self, container: str, command: str = "") -> Subject:
        """Return a container of this pod as faults see it."""
        metadata = self.pod["metadata"]
        index = (metadata.get("annotations") or {}).get(
            "batch.kubernetes.io/job-completion-index", ""
        )
        return Subject(
            node=self.node.name,
            namespace=self.namespace,
            pod=self.name,
            pod_uid=self.uid,
            container=container,
            labels=metadata.get("labels") or {},
            index=int(index) if index.isdigit() else None,
            command=command,
        )

    def _container(self, container: Json) -> Container:
        return Container(container, self)
