"""One container of a simulated pod: started, watched, restarted, stopped; its log kept."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from pytest_cre.simulator.containercall import ContainerCall, Fetch, resolve_call
from pytest_cre.simulator.faults import Action, Fault, Subject
from pytest_cre.simulator.generators import program_for
from pytest_cre.simulator.hardware import SimulatedNode
from pytest_cre.simulator.nodeobjects import NODE_ADDRESS, now_text
from pytest_cre.simulator.podstatus import SIGKILL_EXIT, SIGTERM_EXIT, ContainerExit, ContainerState
from pytest_cre.simulator.world import ContainerRun, PodControl, World

if TYPE_CHECKING:
    from pytest_cre.simulator.logbuffer import LogBuffer

Json = Any
Report = Callable[[], Awaitable[None]]

_RESTART_S = (1.0, 10.0)  # back-off between restarts in place
_MESSAGE_BYTES = 2048
_MESSAGE_LINES = 80


class PodSide(PodControl, Protocol):
    """What a container needs of its pod."""

    pod: Json
    pod_ip: str
    world: World
    node: SimulatedNode

    def subject(self, container: str, command: str = "") -> Subject:
        """Return a container of the pod as faults see it."""


class Container:
    """A container's state and its logs: of the run that goes on or ended last, and of the one before."""

    def __init__(self, spec: Json, pod: PodSide) -> None:
        self.spec, self.pod = spec, pod
        self.name: str = spec["name"]
        self.image: str = spec.get("image", "")
        self.state = ContainerState(name=self.name, image=self.image, identity=_identity())
        self.log: LogBuffer | None = None
        self.previous_log: LogBuffer | None = None
        self._call: ContainerCall | None = None
        self._run: ContainerRun | None = None
        self._program: asyncio.Task[int] | None = None

    async def resolve(self, pod: Json, fetch: Fetch) -> None:
        """Find out what the container runs; raises `ConfigProblem`."""
        self._call = await resolve_call(
            pod, self.spec, pod_ip=self.pod.pod_ip, host_ip=NODE_ADDRESS, fetch=fetch
        )

    def holding(self, action: Action) -> Iterator[Fault]:
        """Yield the conditions of one kind that hold for the container's run now or at its end."""
        return iter(()) if self._run is None else self._run.holding(action)

    async def run_to_end(self, report: Report) -> ContainerExit:
        """Return how the container ended for good, after the restarts its pod allows."""
        policy = self.pod.pod["spec"].get("restartPolicy", "Always")
        delay_s = _RESTART_S[0]
        while True:
            ended = await self._run_once()
            is_over = policy == "Never" or (policy == "OnFailure" and ended.code == 0)
            if is_over and not (self._run is not None and self._run.is_to_restart):
                return ended
            self.state.restart(_identity())
            await report()
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, _RESTART_S[1])
            self._start()
            await report()

    def _start(self) -> None:
        if self._call is None:
            raise RuntimeError("a container is started before it was resolved")
        world, subject = self.pod.world, self.pod.subject(self.name, " ".join(self._call.argv))
        log = world.new_log(subject, self.state.restarts, time.time_ns)
        self.previous_log, self.log = self.log, log
        self._run = ContainerRun(
            world=world,
            pod=self.pod.pod,
            control=self.pod,
            node=self.pod.node,
            subject=subject,
            call=self._call,
            log=log,
        )
        for fault in self._run.holding("log-size"):
            log.rotation_bytes = fault.size_bytes
        self.state.started_at = now_text()
        world.runs[self._run.key] = self._run
        self._program = asyncio.create_task(program_for(self._run))

    async def _run_once(self) -> ContainerExit:
        if self.state.started_at is None:
            self._start()
        if self._run is None or self._program is None:
            raise RuntimeError("the container was not started")
        run, program = self._run, self._program
        clock = asyncio.create_task(run.time_faults())
        try:
            await asyncio.wait((program, run.ending), return_when=asyncio.FIRST_COMPLETED)
            if run.ending.done():
                ended = run.ending.result()
                await _cancel(program)
            else:
                ended = ContainerExit(code=program.result())
        finally:
            clock.cancel()
            self._close(run)
        self._end(ended)
        return ended

    def _close(self, run: ContainerRun) -> None:
        """Take the run out of the world; its program may still be ending."""
        if self.pod.world.runs.get(run.key) is run:
            del self.pod.world.runs[run.key]
        for group in list(self.pod.world.groups.values()):
            if any(member is run for member in group.members.values()):
                group.leave(run)
                if group.is_closed or not group.members:
                    self.pod.world.groups.pop(group.key, None)
        run.ended.set()

    def _end(self, ended: ContainerExit) -> None:
        if self.log is not None:
            for fault in self.holding("log-tail"):
                self.log.write((fault.message or "RESULT 480.1").encode())
            self.log.is_endless = next(self.holding("log-endless"), None) is not None
            self.log.close()
        is_wanted = self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        if is_wanted and ended.code and not ended.message and self.log is not None:
            message = self.log.tail(lines=_MESSAGE_LINES, limit_bytes=_MESSAGE_BYTES)
            ended = ContainerExit(code=ended.code, reason=ended.reason, message=message)
        self.state.end(ended)

    def kill(self, ended: ContainerExit) -> None:
        """End the container from outside, if it runs."""
        if self._run is not None:
            self._run.end(ended)

    async def stop(self, grace_s: float) -> None:
        """End the container as SIGTERM and then SIGKILL would."""
        run, program = self._run, self._program
        if program is None or run is None:
            return
        if not program.done():
            program.cancel()
            await asyncio.wait((program,), timeout=max(grace_s, 0.1))
        if self.state.is_running:
            self._close(run)
            code = SIGTERM_EXIT if grace_s > 0 and program.done() else SIGKILL_EXIT
            if program.done() and not program.cancelled():
                code = program.result()  # it came to its own end first
            self._end(ContainerExit(code=code))


async def _cancel(program: "asyncio.Task[int]") -> None:
    program.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await program


def _identity() -> str:
    return f"simulated://{uuid4().hex}"
