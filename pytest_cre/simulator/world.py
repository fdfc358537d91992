"""What simulated containers share: the hardware, the faults, each other, and checkpoints."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

from pytest_cre.simulator.containercall import ContainerCall
from pytest_cre.simulator.faults import Action, Fault, FaultBook, Subject
from pytest_cre.simulator.hardware import Participant, SimulatedNode
from pytest_cre.simulator.logbuffer import LogBuffer, Stream
from pytest_cre.simulator.podstatus import SIGKILL_EXIT, ContainerExit
from pytest_cre.simulator.scenario import Scenario

if TYPE_CHECKING:
    from pytest_cre.simulator.rendezvous import Group

Json = Any


class PodControl(Protocol):
    """What a container can bring about in its pod."""

    def evict(self, message: str, *, mark: str = "TerminationByKubelet") -> None:
        """End the pod as evicted; `mark` is the reason of its condition DisruptionTarget, if any."""

    def delete(self, mark: str = "") -> None:
        """Have the pod deleted, as somebody with a client does; `mark` as in `evict`."""

    async def warn(self, reason: str, message: str) -> None:
        """Write an Event of type Warning about the pod."""


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
        self.replay_starts: dict[str, float] = {}  # by Job, in monotonic seconds
        self.replays: dict[str, int] = {}  # how often each pod of a Job, by its name, was replayed
        self.ports: dict[str, int] = {}  # local ports that stand for those of process containers
        self.has_service: Callable[[str, str], Awaitable[bool]] = _no_service
        self.hit_node: Callable[[str, Fault], None] = lambda name, fault: None  # noqa: ARG005
        self.new_log: Callable[[Subject, int, Callable[[], int]], LogBuffer] = _new_log
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


def _new_log(subject: Subject, restarts: int, clock_ns: Callable[[], int]) -> LogBuffer:  # noqa: ARG001
    return LogBuffer(clock_ns)


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
        self.owner_name: str = next((each.get("name", "") for each in owners), "") or self.owner_uid
        self.labels: Mapping[str, str] = pod["metadata"].get("labels") or {}
        self.is_hung = False
        self.is_to_restart = False  # whatever its pod's policy says
        self.launcher: ContainerRun | None = None  # whose ranks run here, started by mpirun
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

    def participant(self, ranks: int, *, way_factor: float, is_on_sockets: bool) -> Participant:
        """Return the node with this container's ranks, as fast as the faults leave it.

        `way_factor` is what slow ways to the others leave of its network.
        """
        elapsed_s = time.monotonic() - self._started_s
        nvlink, network, step = 1.0, way_factor, 1.0
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
            is_on_sockets=is_on_sockets,
        )

    @property
    def is_on_sockets(self) -> bool:
        """Return whether the node's fast network is not found by programs."""
        return next(self.holding("socket-fallback"), None) is not None

    def holding(self, action: Action) -> Iterator[Fault]:
        """Yield the conditions of one kind that hold now."""
        elapsed_s = time.monotonic() - self._started_s
        return self.world.faults.holding(action, self.subject, elapsed_s=elapsed_s)

    def gpu_factor(self, gpu: int) -> float:
        """Return the speed of one GPU: 1 is healthy, 0.5 half of it."""
        factors = [fault.factor for fault in self.holding("slow-gpu") if fault.gpu in (None, gpu)]
        return prod(factors)

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
    if run.launcher is not None:
        # A rank dies, not the SSH server that started it; mpirun ends with it.
        run.launcher.write(
            (fault.message or f"{run.host_name}: CUDA error: unspecified launch failure")
            + "\nmpirun detected that one or more processes exited with non-zero status, thus "
            f"causing the job to be terminated.\n  Node: {run.host_name}\n"
            f"  Exit code:    {fault.exit_code}",
            "stderr",
        )
        run.launcher.end(ContainerExit(code=fault.exit_code))
        return
    reason = fault.reason or ("OOMKilled" if fault.exit_code == SIGKILL_EXIT else "")
    if fault.exit_code != SIGKILL_EXIT or fault.message:
        run.write(fault.message or "RuntimeError: CUDA error: unspecified launch failure", "stderr")
    run.end(ContainerExit(code=fault.exit_code, reason=reason))


def _hang(run: ContainerRun, fault: Fault) -> None:  # noqa: ARG001
    run.is_hung = True


def _evict(run: ContainerRun, fault: Fault) -> None:
    run.control.evict(fault.message or "The node was low on resource: memory.")


def _evict_unmarked(run: ContainerRun, fault: Fault) -> None:
    run.control.evict(fault.message or "The node was low on resource: memory.", mark="")


def _preempt(run: ContainerRun, fault: Fault) -> None:  # noqa: ARG001
    run.control.delete("PreemptionByScheduler")


def _delete_pod(run: ContainerRun, fault: Fault) -> None:  # noqa: ARG001
    run.control.delete()


def _fail_and_delete(run: ContainerRun, fault: Fault) -> None:
    run.control.delete()
    _crash(run, fault)


def _restart(run: ContainerRun, fault: Fault) -> None:
    run.is_to_restart = True
    run.end(ContainerExit(code=fault.exit_code))


def _hit_node(run: ContainerRun, fault: Fault) -> None:
    run.world.hit_node(run.node.name, fault)


def _stop_heartbeat(run: ContainerRun, fault: Fault) -> None:
    run.world.lose_node(run.node.name, fault.seconds)


def _stick_log(run: ContainerRun, fault: Fault) -> None:  # noqa: ARG001
    run.log.is_stuck = True


def _rotate_log(run: ContainerRun, fault: Fault) -> None:  # noqa: ARG001
    run.log.rotate()


def _lose_log(run: ContainerRun, fault: Fault) -> None:  # noqa: ARG001
    run.log.lose()


def _burst(run: ContainerRun, fault: Fault) -> None:
    """Write many lines at once: alike, and of the same time."""
    line = fault.message or "again and again"
    run.log.write(f"{line}\n".encode() * fault.lines)


def _long_line(run: ContainerRun, fault: Fault) -> None:
    run.log.write(b"x" * fault.size_bytes + b"\n")


def _garbage(run: ContainerRun, fault: Fault) -> None:  # noqa: ARG001
    run.log.write(_GARBAGE)


# A byte of Latin-1, half a character, NUL, a lone surrogate, colours, a progress bar.
_GARBAGE = b"caf\xe9 \xe2\x82 \x00 \xed\xa0\x80 \x1b[31mred\x1b[0m 10%\r 20%\r100%\n"

_EFFECTS: Mapping[str, Callable[[ContainerRun, Fault], None]] = {
    **dict.fromkeys(("cordon", "lose-gpu", "node-condition", "reboot", "replace-node"), _hit_node),
    "crash": _crash,
    "delete-pod": _delete_pod,
    "evict": _evict,
    "evict-unmarked": _evict_unmarked,
    "fail-and-delete": _fail_and_delete,
    "hang": _hang,
    "log-burst": _burst,
    "log-garbage": _garbage,
    "log-line": _long_line,
    "log-lose": _lose_log,
    "log-rotate": _rotate_log,
    "log-stuck": _stick_log,
    "preempt": _preempt,
    "restart": _restart,
    "stop-heartbeat": _stop_heartbeat,
}
