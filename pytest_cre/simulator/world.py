"""What simulated containers share: the hardware, the faults, each other, and checkpoints."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pytest_cre.simulator.containercall import ContainerCall
from pytest_cre.simulator.faults import Fault, FaultBook, Subject
from pytest_cre.simulator.hardware import Participant, SimulatedNode
from pytest_cre.simulator.logbuffer import LogBuffer, Stream
from pytest_cre.simulator.podstatus import SIGKILL_EXIT, ContainerExit
from pytest_cre.simulator.scenario import Scenario

if TYPE_CHECKING:
    from pytest_cre.simulator.rendezvous import Group

Json = Any


class PodControl(Protocol):
    """What a container can bring about in its pod."""

    def evict(self, message: str) -> None:
        """End the pod as evicted by its node."""


class World:
    """The state of one simulated cluster's machines."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario = scenario
        self.seed = seed
        self.nodes: Mapping[str, SimulatedNode] = {each.name: each for each in scenario.nodes}
        self.faults = FaultBook(scenario.faults)
        self.groups: dict[str, Group[ContainerRun]] = {}
        self.runs: dict[str, ContainerRun] = {}  # running containers by pod UID and name
        self.checkpoints: dict[str, int] = {}  # newest durable step by place
        self.replayed: dict[str, int] = {}  # exit codes of recordings by their key
        self.ports: dict[str, int] = {}  # local ports that stand for those of process containers
        self.has_service: Callable[[str, str], Awaitable[bool]] = _no_service
        self._lost: dict[str, float] = {}  # nodes out of reach, until when

    def lose_node(self, name: str, seconds: float | None) -> None:
        """Cut a node off the cluster, for good or for some seconds."""
        self._lost[name] = time.monotonic() + seconds if seconds is not None else float("inf")

    def is_lost(self, name: str) -> bool:
        """Return whether a node is out of the cluster's reach."""
        return time.monotonic() < self._lost.get(name, 0.0)

    def run_at(self, namespace: str, host: str) -> "ContainerRun | None":
        """Return the running container that answers to a host name such as `job-0.job`."""
        names = host.split(".")
        for run in self.runs.values():
            if run.subject.namespace != namespace or run.host_name != names[0]:
                continue
            if len(names) == 1 or run.subdomain == names[1]:
                return run
        return None


async def _no_service(namespace: str, name: str) -> bool:  # noqa: ARG001
    return False


class ContainerRun:
    """One run of one container: what its program reads and writes."""

    def __init__(
        self,
        *,
        world: World,
        pod: Json,
        control: PodControl,
        node: SimulatedNode,
        subject: Subject,
        call: ContainerCall,
        log: LogBuffer,
    ) -> None:
        self.world, self.node, self.subject, self.call, self.log = world, node, subject, call, log
        self.control = control
        self.host_name: str = pod["spec"].get("hostname") or pod["metadata"]["name"]
        self.subdomain: str = pod["spec"].get("subdomain") or ""
        owners = pod["metadata"].get("ownerReferences") or ()
        self.owner_uid: str = next((each["uid"] for each in owners), subject.pod_uid)
        self.labels: Mapping[str, str] = pod["metadata"].get("labels") or {}
        self.is_hung = False
        self.ended = asyncio.Event()
        self.ending: asyncio.Future[ContainerExit] = asyncio.get_running_loop().create_future()
        self._started_s = time.monotonic()

    @property
    def key(self) -> str:
        """Return the name of this run in the world."""
        return f"{self.subject.pod_uid}/{self.subject.container}"

    def write(self, text: str, stream: Stream = "stdout") -> None:
        """Write lines; a missing newline at the end is added."""
        self.log.write((text if text.endswith("\n") else text + "\n").encode(), stream)

    def end(self, ended: ContainerExit) -> None:
        """Make the container end, from outside its program."""
        if not self.ending.done():
            self.ending.set_result(ended)

    def reach(self, *, step: int | None = None, size_bytes: int | None = None) -> None:
        """Let the faults happen that wait for a step or a size."""
        for fault in self.world.faults.due(self.subject, step=step, size_bytes=size_bytes):
            apply_fault(self, fault)

    async def time_faults(self) -> None:
        """Let the faults happen that wait for time, as it passes."""
        for delay_s, number in self.world.faults.timed(self.subject):
            await asyncio.sleep(max(0.0, self._started_s + delay_s - time.monotonic()))
            if fault := self.world.faults.happen(number, self.subject):
                apply_fault(self, fault)

    def participant(self, ranks: int) -> Participant:
        """Return the node with this container's ranks, as fast as the faults leave it."""
        elapsed_s = time.monotonic() - self._started_s
        nvlink = network = step = 1.0
        book = self.world.faults
        for fault in book.holding("slow-link", self.subject, elapsed_s=elapsed_s):
            nvlink *= fault.factor if fault.link != "network" else 1.0
            network *= fault.factor if fault.link != "nvlink" else 1.0
        for fault in book.holding("straggler", self.subject, elapsed_s=elapsed_s):
            step *= fault.factor
        return Participant(
            node=self.node,
            ranks=ranks,
            nvlink_factor=nvlink,
            network_factor=network,
            step_factor=step,
            is_on_sockets=self.is_on_sockets,
        )

    @property
    def is_on_sockets(self) -> bool:
        """Return whether the node's fast network is not found by programs."""
        elapsed_s = time.monotonic() - self._started_s
        holding = self.world.faults.holding("socket-fallback", self.subject, elapsed_s=elapsed_s)
        return next(holding, None) is not None

    def wrong_values(self, size_bytes: int) -> int:
        """Return how many elements of a message come out wrong."""
        elapsed_s = time.monotonic() - self._started_s
        holding = self.world.faults.holding(
            "wrong-values", self.subject, elapsed_s=elapsed_s, size_bytes=size_bytes
        )
        return sum(fault.count for fault in holding)


def apply_fault(run: ContainerRun, fault: Fault) -> None:
    """Carry out an event on a container."""
    _EFFECTS[fault.action](run, fault)


def _crash(run: ContainerRun, fault: Fault) -> None:
    reason = fault.reason or ("OOMKilled" if fault.exit_code == SIGKILL_EXIT else "")
    if fault.exit_code != SIGKILL_EXIT or fault.message:
        run.write(fault.message or "RuntimeError: CUDA error: unspecified launch failure", "stderr")
    run.end(ContainerExit(code=fault.exit_code, reason=reason))


def _hang(run: ContainerRun, fault: Fault) -> None:  # noqa: ARG001
    run.is_hung = True


def _evict(run: ContainerRun, fault: Fault) -> None:
    run.control.evict(fault.message or "The node was low on resource: memory.")


def _stop_heartbeat(run: ContainerRun, fault: Fault) -> None:
    run.world.lose_node(run.node.name, fault.seconds)


def _stick_log(run: ContainerRun, fault: Fault) -> None:  # noqa: ARG001
    run.log.is_stuck = True


_EFFECTS: Mapping[str, Callable[[ContainerRun, Fault], None]] = {
    "crash": _crash,
    "hang": _hang,
    "evict": _evict,
    "stop-heartbeat": _stop_heartbeat,
    "log-stuck": _stick_log,
}
