"""The processes of one launch over the pods of a group: who they are, where each one writes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

from pytest_cre.simulator.commandline import Launch, UsageExit
from pytest_cre.simulator.hardware import Participant
from pytest_cre.simulator.logbuffer import Stream
from pytest_cre.simulator.rendezvous import Group, PeerLost, join_group

if TYPE_CHECKING:
    from pytest_cre.simulator.world import ContainerRun

TeamDriver = Callable[["Team"], Awaitable[int]]

NCCL_VERSION = "2.27.7"
CLOSING_S = 0.3  # from SIGTERM until torchrun has closed its workers
NOTICE_S = 0.2  # until the others notice that a peer is gone
_ATTEMPT_LABEL = "cre.pytest.org/attempt"
_LOCAL = ("localhost", "127.0.0.1", "::1")


# What NCCL says of each network.
_OOB = "[RO]; OOB eth0:10.0.0.1<0>"
_NETWORK_LINES: Mapping[str, tuple[str, ...]] = {
    "Socket": (
        "NET/IB : No device found.",
        "NET/Socket : Using [0]eth0:10.0.0.1<0>",
        "Using network Socket",
    ),
    "IB": (f"NET/IB : Using [0]mlx5_0:1/IB {_OOB}", "Using network IB"),
    "RoCE": (f"NET/IB : Using [0]mlx5_0:1/RoCE {_OOB}", "Using network IB"),
    "EFA": ("NET/OFI Selected provider is efa, fabric is efa", "Using network Libfabric"),
}


class Team:
    """Ranks, their pods and their hardware. Rank 0 is on the first pod."""

    def __init__(self, group: "Group[ContainerRun]", launch: Launch) -> None:
        self.group, self.launch = group, launch
        self.env: Mapping[str, str] = launch.env
        self.places: list[tuple[ContainerRun, int]] = []  # pod and local rank, by rank
        for node_rank in sorted(group.members):
            count = group.ranks[node_rank]
            self.places += [(group.members[node_rank], local) for local in range(count)]
        self.world = group.runs[0].world

    @property
    def size(self) -> int:
        """Return the number of ranks."""
        return len(self.places)

    @cached_property
    def noise_key(self) -> tuple[object, ...]:
        """Return what noise depends on: the seed, the nodes, and the attempt after the first."""
        nodes = sorted({run.node.name for run, _ in self.places})
        attempt = self.group.runs[0].labels.get(_ATTEMPT_LABEL, "0")
        return (self.world.seed, *nodes, *(("attempt", attempt) if attempt != "0" else ()))

    def write(self, rank: int, text: str, stream: Stream = "stdout") -> None:
        """Write lines as a rank: into its own pod's log, or that of mpirun with a tag."""
        if self.launch.launcher != "mpirun":
            self.places[rank][0].write(text, stream)
            return
        if self.launch.is_tagged:
            text = "\n".join(
                f"[1,{rank}]<{stream}>:{line}" for line in text.rstrip("\n").split("\n")
            )
        self.group.runs[0].write(text, stream)

    def process_id(self, rank: int) -> int:
        """Return the number of a rank's process."""
        return 120 + self.places[rank][1]

    def bus_id(self, rank: int) -> str:
        """Return the address of a rank's GPU."""
        digest = blake2b(self.places[rank][0].node.name.encode(), digest_size=1).digest()[0] % 4
        return f"0000:{0x10 * (self.places[rank][1] + 1) + digest:02x}:00"

    def participants(self) -> list[Participant]:
        """Return the nodes as fast as faults and environment leave them."""
        counts = self._counts()
        book = counts[0][0].world.faults
        factors = book.way_factors([run.subject for run, _ in counts])
        return [
            self._fitted(
                run.participant(
                    count, way_factor=factor, is_on_sockets=self.network_of(run) == "Socket"
                )
            )
            for (run, count), factor in zip(counts, factors, strict=True)
        ]

    def _fitted(self, member: Participant) -> Participant:
        """Return the member with only those ways that the environment leaves it."""
        node = member.node
        if self.env.get("NCCL_MNNVL_ENABLE") == "0":
            member = replace(member, node=replace(node, domain=node.name))
        if self.env.get("NCCL_P2P_DISABLE") == self.env.get("NCCL_SHM_DISABLE") == "1":
            loop = node.model.network_gbs / node.model.nvlink_busbw_gbs
            member = replace(member, nvlink_factor=loop * member.network_factor)
        return member

    def _counts(self) -> list[tuple["ContainerRun", int]]:
        group = self.group
        return [
            (group.members[rank], group.ranks[rank])
            for rank in sorted(group.members)
            if group.ranks[rank]
        ]

    def network_of(self, run: "ContainerRun") -> str:
        """Return the network that NCCL takes on a node."""
        is_refused = self.env.get("NCCL_IB_DISABLE") == "1" or self.env.get("NCCL_NET") == "Socket"
        return "Socket" if is_refused or run.is_on_sockets else run.node.model.network

    def wrong_values(self, size_bytes: int) -> int:
        """Return how many elements come out wrong, over all ranks."""
        return sum(run.wrong_values(size_bytes) for run, _ in self._counts())

    async def reach(self, *, step: int | None = None, size_bytes: int | None = None) -> None:
        """Let faults happen at a step or size; does not return when one ends or stops the work."""
        for run in self.group.runs:
            run.reach(step=step, size_bytes=size_bytes)
        if self.group.is_hung or any(run.ending.done() for run in self.group.runs):
            await asyncio.Event().wait()

    def write_nccl_init(self) -> None:
        """Write what NCCL says of itself at the start, as NCCL_DEBUG asks."""
        level = self.env.get("NCCL_DEBUG", "").upper()
        if level in ("VERSION", "WARN", "INFO", "TRACE"):
            self.write(0, f"NCCL version {NCCL_VERSION}+cuda13.0")
        if level not in ("INFO", "TRACE"):
            return
        for rank, (run, local) in enumerate(self.places):
            process = self.process_id(rank)
            lead = f"{run.host_name}:{process}:{process + 40} [{local}] NCCL INFO"
            network = self.network_of(run)
            lines = [
                *_NETWORK_LINES.get(network, (f"Using network {network}",)),
                f"comm 0x55d0c0 rank {rank} nranks {self.size} cudaDev {local} nvmlDev {local} "
                f"busId {self.bus_id(rank)} commId 0x5eed - Init COMPLETE",
            ]
            self.write(rank, "\n".join(f"{lead} {line}" for line in lines))


async def run_torch(run: "ContainerRun", launch: Launch, driver: TeamDriver) -> int:
    """Do the work with all the pods that meet at the launch's master; gives the exit code."""
    processes = launch.processes or (run.call.gpus or run.node.gpus or 1)
    if launch.launcher is None:
        processes = 1
    if launch.launcher == "torchrun" and run.call.gpus and processes > run.call.gpus:
        words = "torch.AcceleratorError: CUDA error: invalid device ordinal"
        run.write(f"[rank{run.call.gpus}]: {words}", "stderr")
        return _report_child(run, launch, 1)
    is_local = launch.nodes == 1
    place = run.key if is_local else f"{run.subject.namespace}/{launch.master}"
    group = _join(run, launch, f"{place}:{launch.port}", processes)
    timeout_s = run.world.scenario.rendezvous_timeout_s
    try:
        async with asyncio.timeout(timeout_s):
            await group.complete.wait()
    except TimeoutError:
        run.write(
            f"torch.distributed.DistStoreError: Timed out after {timeout_s:.0f} seconds waiting for "
            f"clients. {len(group.members)}/{group.size} clients joined.",
            "stderr",
        )
        return _report_child(run, launch, 1)
    if launch.launcher == "torchrun" and not await _resolves(run, group.runs[0], launch.master):
        run.write(
            f"torch.distributed.DistNetworkError: The client socket has failed to connect to "
            f"[{launch.master}]:{launch.port}: gai error: -2 - Name or service not known",
            "stderr",
        )
        return _report_child(run, launch, 1)
    team = Team(group, launch)

    async def drive() -> int:
        return await driver(team)

    rank = _first_rank(team, run)
    try:
        return _report_child(run, launch, await group.work(run, drive), rank)
    except PeerLost as lost:
        await asyncio.sleep(NOTICE_S)
        run.write(
            f"[rank{rank}]: torch.distributed.DistBackendError: NCCL error: remote "
            f"process exited or there was a network error, NCCL version {NCCL_VERSION}\n"
            f"ncclRemoteError: connection to {lost.host_name} closed by remote peer",
            "stderr",
        )
        return _report_child(run, launch, 1, rank)
    except asyncio.CancelledError:
        if launch.launcher == "torchrun" and not run.ending.done():
            words = "api.SignalException: Process 1 got signal: 15"
            run.write(f"torch.distributed.elastic.multiprocessing.{words}", "stderr")
            await asyncio.sleep(CLOSING_S)
        raise


def _join(run: "ContainerRun", launch: Launch, key: str, processes: int) -> "Group[ContainerRun]":
    rank = launch.node_rank
    groups = run.world.groups
    if rank is None:
        waiting = groups.get(key)
        taken = waiting.members if waiting is not None and not waiting.is_closed else {}
        free = [number for number in range(launch.nodes) if number not in taken]
        rank = run.subject.index if run.subject.index in free else next(iter(free), 0)
    if rank >= launch.nodes:
        raise UsageExit(1, f"ValueError: node_rank {rank} is not below nnodes {launch.nodes}\n")
    return join_group(groups, key, size=launch.nodes, rank=rank, processes=processes, run=run)


async def _resolves(run: "ContainerRun", first: "ContainerRun", master: str) -> bool:
    """Return whether the master's name leads to the first pod: it needs a Service for that."""
    if master in (*_LOCAL, first.host_name, first.subject.pod):
        return True
    names = master.split(".")
    if len(names) < 2 or names[0] != first.host_name or names[1] != first.subdomain:
        return False
    return await run.world.has_service(run.subject.namespace, first.subdomain)


def _first_rank(team: Team, run: "ContainerRun") -> int:
    return next((rank for rank, (member, _) in enumerate(team.places) if member is run), 0)


def _report_child(run: "ContainerRun", launch: Launch, code: int, rank: int = 0) -> int:
    """Return the exit code of the whole pod: torchrun tells of a child's and ends with 1."""
    if code == 0 or launch.launcher != "torchrun":
        return code
    run.write(
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
        f"{launch.argv[0]} FAILED\n"
        f"  rank      : {rank} (local_rank: 0)\n  exitcode  : {code} (pid: 120)",
        "stderr",
    )
    return 1
