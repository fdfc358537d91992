"""Containers that work as one group: they wait for each other, and one's end is felt by all."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Protocol, TypeVar


class Member(Protocol):
    """What a group needs to know of a container."""

    host_name: str
    is_hung: bool


M = TypeVar("M", bound=Member)


class PeerLost(Exception):
    """A member of the group ended before the work was done."""

    def __init__(self, host_name: str) -> None:
        super().__init__(host_name)
        self.host_name = host_name


class Group(Generic[M]):
    """The members of one rendezvous, by node rank. `size` members make it complete."""

    def __init__(self, key: str, size: int) -> None:
        self.key = key
        self.size = size
        self.members: dict[int, M] = {}
        self.ranks: dict[int, int] = {}  # processes by node rank
        self.is_closed = False
        self.complete = asyncio.Event()
        self.outcome: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def runs(self) -> Sequence[M]:
        """Return the members in the order of their ranks."""
        return [self.members[rank] for rank in sorted(self.members)]

    @property
    def world_size(self) -> int:
        """Return the number of processes."""
        return sum(self.ranks.values())

    @property
    def is_hung(self) -> bool:
        """Return whether a member hangs, so that all do."""
        return any(run.is_hung for run in self.runs)

    def join(self, rank: int, processes: int, run: M) -> None:
        """Add a member, in place of one of the same rank."""
        self.members[rank] = run
        self.ranks[rank] = processes
        if len(self.members) >= self.size:
            self.complete.set()

    def leave(self, run: M) -> None:
        """Take a member out; while the work goes on, the others lose a peer."""
        ranks = [rank for rank, member in self.members.items() if member is run]
        if self.complete.is_set():
            self.is_closed = True
            if not self.outcome.done():
                self.outcome.set_exception(PeerLost(run.host_name))
                self.outcome.exception()  # it is no mistake when nobody is left to be told
        for rank in ranks if not self.complete.is_set() else ():
            del self.members[rank]

    async def work(self, run: M, driver: Callable[[], Awaitable[int]]) -> int:
        """Return the exit code of the group's work; the member of the lowest rank drives it.

        Raises `PeerLost` as soon as a member has ended.
        """
        if self.runs[0] is not run:
            return await asyncio.shield(self.outcome)
        task = asyncio.ensure_future(driver())
        try:
            await asyncio.wait((task, self.outcome), return_when=asyncio.FIRST_COMPLETED)
            if not self.outcome.done():
                self.outcome.set_result(task.result())
            return self.outcome.result()
        finally:
            task.cancel()


def join_group(
    groups: dict[str, Group[M]], key: str, *, size: int, rank: int, processes: int, run: M
) -> Group[M]:
    """Return the group that waits under the key, or a new one, with the member in it."""
    group = groups.get(key)
    if group is None or group.is_closed or group.size != size:
        group = groups[key] = Group[M](key, size)
    group.join(rank, processes, run)
    return group
