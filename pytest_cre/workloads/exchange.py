"""Collectives over torch.distributed: which tensors a rank reads and writes, and what must come out.

Part of collective.py, which lies beside it inside the pod.

Values: every rank fills its buffer with numbers of its own, spoils what it will receive into, runs the
collective and counts the elements that are not what must come out. All numbers are small integers,
exact in every type whatever the order of summation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Iterator

DTYPES = {
    "int8": torch.int8,
    "uint8": torch.uint8,
    "int32": torch.int32,
    "int64": torch.int64,
    "half": torch.float16,
    "float": torch.float32,
    "double": torch.float64,
    "bfloat16": torch.bfloat16,
}
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv")
SHARED = ("all_gather", "reduce_scatter", "alltoall")  # size is that of all ranks together
REDUCING = ("all_reduce", "reduce_scatter")
UNCHECKED_IN_PLACE = ("alltoall", "sendrecv")
IN_PLACE_ONLY = ("all_reduce", "broadcast")
BLOCK = 1 << 22  # elements filled and checked at a time, so that checks need little memory
ROOT = 0


def bus_factor(collective: str, ranks: int) -> float:
    """Return what turns size / time into bus bandwidth."""
    if collective == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if collective in SHARED else 1.0


class Exchange:
    """One rank of a collective: its buffers, the collective on them, and the values."""

    def __init__(self, collective: str, dtype: str, device: torch.device, max_bytes: int) -> None:
        self.collective = collective
        self.dtype = DTYPES[dtype]
        self.device = device
        self.is_gpu = device.type == "cuda"
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.element_bytes = torch.empty(0, dtype=self.dtype).element_size()
        sent, received = self.counts(max_bytes)
        if collective in IN_PLACE_ONLY:
            sent = 0
        self.source = torch.empty(sent, dtype=self.dtype, device=device)
        self.target = torch.empty(received, dtype=self.dtype, device=device)

    def counts(self, size_bytes: int) -> tuple[int, int]:
        """Return the elements that each rank sends and receives for a planned size."""
        count = max(1, size_bytes // self.element_bytes)
        share = max(1, count // self.ranks)
        whole = share * self.ranks
        if self.collective == "all_gather":
            return share, whole
        if self.collective == "reduce_scatter":
            return whole, share
        return (whole, whole) if self.collective == "alltoall" else (count, count)

    def buffers(self, size_bytes: int, in_place: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the tensors that a rank reads and writes; in place, one lies inside the other."""
        sent, received = self.counts(size_bytes)
        source, target = self.source[:sent], self.target[:received]
        if self.collective in IN_PLACE_ONLY:
            return target, target
        if not in_place:
            return source, target
        if self.collective == "all_gather":
            return target[self.rank * sent : (self.rank + 1) * sent], target
        if self.collective == "reduce_scatter":
            return source, source[self.rank * received : (self.rank + 1) * received]
        return target, target

    # Collectives

    def run(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Run the collective once."""
        if self.collective == "all_reduce":
            dist.all_reduce(target)
        elif self.collective == "broadcast":
            dist.broadcast(target, src=ROOT)
        elif self.collective == "alltoall":
            dist.all_to_all_single(target, source)
        elif self.collective == "sendrecv":
            self.send_on(source, target)
        elif self.collective == "all_gather":
            self.all_gather(source, target)
        else:
            self.reduce_scatter(source, target)

    def send_on(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Send to the next rank and receive from the one before."""
        if self.ranks == 1:
            target.copy_(source)
            return
        following, before = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
        send = dist.P2POp(dist.isend, source, following)
        receive = dist.P2POp(dist.irecv, target, before)
        for work in dist.batch_isend_irecv([send, receive]):
            work.wait()

    def all_gather(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Give every rank the shares of all; older gloo knows only lists of tensors."""
        if self.is_gpu:
            dist.all_gather_into_tensor(target, source)
        else:
            dist.all_gather(list(target.chunk(self.ranks)), source)

    def reduce_scatter(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Give every rank the sum of its shares; gloo has none, so it exchanges and adds up."""
        if self.is_gpu:
            dist.reduce_scatter_tensor(target, source)
        else:
            shares = torch.empty_like(source)
            dist.all_to_all_single(shares, source)
            target.copy_(shares.view(self.ranks, -1).sum(0, dtype=self.dtype))

    # Values

    def index_blocks(self, count: int) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield the begin of each block of a buffer, and the indexes in it."""
        for begin in range(0, count, BLOCK):
            end = min(begin + BLOCK, count)
            yield begin, torch.arange(begin, end, dtype=torch.int64, device=self.device)

    def own_values(self, rank: int | torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """Return what a rank has in its buffer at these indexes.

        For sums: one rank, another for each index, holds a number below 61, and the others hold
        -1, 0 and 1 in turn, so that no partial sum in any order leaves what bfloat16 holds exactly.
        """
        if self.collective not in REDUCING:
            return (index * 31 + (index >> 8) * 7 + rank * 17) % 251
        owned = (index * 31 + (index >> 8) * 7) % 61
        return torch.where(index % self.ranks == rank, owned, (index + rank) % 3 - 1)

    def summed_values(self, index: torch.Tensor) -> torch.Tensor:
        """Return the sum of every rank's values."""
        owner = index % self.ranks
        total = (index * 31 + (index >> 8) * 7) % 61 - ((index + owner) % 3 - 1)
        for extra in range(self.ranks % 3):  # three ranks in a row add up to 0
            total = total + (index + extra) % 3 - 1
        return total

    def right_values(self, index: torch.Tensor, received: int) -> torch.Tensor:
        """Return what must stand in this rank's result at these indexes."""
        if self.collective == "all_reduce":
            return self.summed_values(index)
        if self.collective == "reduce_scatter":
            return self.summed_values(index + self.rank * received)
        if self.collective == "broadcast":
            return self.own_values(ROOT, index)
        if self.collective == "sendrecv":
            return self.own_values((self.rank - 1) % self.ranks, index)
        share = received // self.ranks
        sender, within = index // share, index % share
        if self.collective == "alltoall":
            within = within + self.rank * share
        return self.own_values(sender, within)

    def fill(self, tensor: torch.Tensor) -> None:
        """Put this rank's own values into a buffer."""
        for begin, index in self.index_blocks(tensor.numel()):
            values = self.own_values(self.rank, index).to(self.dtype)
            tensor[begin : begin + index.numel()] = values

    def wrong_count(
        self, source: torch.Tensor, target: torch.Tensor, planted: tuple[int, int] | None
    ) -> int:
        """Run once on fresh values; return the wrong elements, summed over ranks.

        `planted` names a rank and one of its elements, which is spoilt before it is checked.
        """
        # What earlier runs left behind would look right; no right value looks like this one.
        spoilt = torch.tensor(126 if self.collective in REDUCING else 254).to(self.dtype)
        target.fill_(spoilt.item())
        self.fill(source)
        self.run(source, target)
        if planted is not None and planted[0] == self.rank and planted[1] < target.numel():
            target[planted[1]] += 1
        wrong = torch.zeros(1, dtype=torch.int64, device=self.device)
        for begin, index in self.index_blocks(target.numel()):
            found = target[begin : begin + index.numel()]
            wrong += (found != self.right_values(index, target.numel()).to(self.dtype)).sum()
        dist.all_reduce(wrong)
        return int(wrong.item())
