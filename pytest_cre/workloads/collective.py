"""Collective benchmark over torch.distributed that prints the table of nccl-tests.

Started by torchrun, one process per GPU; NCCL on GPUs, gloo on CPUs. Needs nothing but torch.

Sizes, counts and bandwidths follow nccl-tests: for all_gather, reduce_scatter and alltoall the size
is that of all ranks together and the count that of one. Bus bandwidth is size / time times
2(n-1)/n (all_reduce), (n-1)/n (all_gather, reduce_scatter, alltoall) or 1 (broadcast, sendrecv).
Each time is the mean over ranks and iterations. A size that would leave a rank without an element
becomes one element per rank, so every planned size has its row.

Both halves are timed. torch has no out-of-place form of all_reduce and broadcast, so both halves
of these run in place, each on a fresh buffer. alltoall and sendrecv in place destroy what they
read, so their values are not checked there (N/A), as in nccl-tests.

Values: after the timed iterations every rank fills its buffer with numbers of its own, spoils what
it will receive into, runs the collective once more and counts the elements that are not what must
come out; `#wrong` is the sum over ranks.
All numbers are small integers, exact in every type whatever the order of summation. Exit code 1
when a value was wrong. `--inject-wrong SIZE` is a self-test: one element of that size is spoilt on
the last rank before it is checked, so that a report of wrong values can be rehearsed.
"""

from __future__ import annotations

import argparse
import datetime
import os
import socket
import sys
import time
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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


def message_bytes(text: str) -> int:
    """Return the bytes of a size such as 8, 512M or 16G; K, M, G, T are powers of 1024."""
    powers = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
    digits = text[:-1] if text[-1:].upper() in ("K", "M", "G", "T") else text
    if not digits.isdigit():
        raise argparse.ArgumentTypeError(f"must be a size such as 8, 512M or 16G, got {text!r}")
    return int(digits) << (10 * powers[text[len(digits) :].upper()])


def at_least(lowest: int) -> Callable[[str], int]:
    """Return an argument type for whole numbers from `lowest` on."""

    def whole_number(text: str) -> int:
        if not text.isdigit() or int(text) < lowest:
            raise argparse.ArgumentTypeError(
                f"must be a whole number of at least {lowest}, got {text!r}"
            )
        return int(text)

    return whole_number


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the arguments; a mistake ends the program with code 2 and one line."""
    parser = argparse.ArgumentParser(
        usage="torchrun ... collective.py [options]",
        description=__doc__.partition("\n")[0],
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--collective", choices=COLLECTIVES, default="all_reduce")
    add("-b", dest="min_bytes", type=message_bytes, default=32 << 20, help="smallest message")
    add("-e", dest="max_bytes", type=message_bytes, default=32 << 20, help="largest message")
    add("-f", dest="factor", type=at_least(2), help="each size is this many times the last")
    add("-i", dest="step_bytes", type=message_bytes, help="each size is this much larger")
    add("-n", dest="iterations", type=at_least(1), default=20, help="timed iterations")
    add("-w", dest="warmups", type=at_least(0), default=5, help="iterations before them")
    add("-c", dest="check", type=int, choices=(0, 1), default=1, help="check values")
    add("-d", dest="dtype", choices=sorted(DTYPES), default="float")
    add("--backend", choices=("auto", "nccl", "gloo"), default="auto")
    add("--timeout-s", type=at_least(1), default=600, help="longest wait for other ranks")
    add("--inject-wrong", type=message_bytes, metavar="SIZE", help="self-test: spoil a value")
    given = parser.parse_args(argv)
    if not 0 < given.min_bytes <= given.max_bytes:
        parser.error("-b must be at least 1 and at most -e")
    if given.factor is not None and given.step_bytes is not None:
        parser.error("-f and -i exclude each other")
    if given.step_bytes == 0:
        parser.error("-i must be at least 1")
    if given.factor is None and given.step_bytes is None:
        given.step_bytes = 1 << 20
    if given.inject_wrong is not None and not given.check:
        parser.error("--inject-wrong needs -c 1")
    if given.inject_wrong not in (None, *planned_sizes(given)):
        parser.error("--inject-wrong must be a size of the sweep")
    missing = [name for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR") if name not in os.environ]
    if missing:
        parser.error(f"{', '.join(missing)} not set; start this with torchrun")
    return given


def planned_sizes(given: argparse.Namespace) -> list[int]:
    """Return the message sizes in bytes: from -b to -e by factor or step."""
    sizes = [given.min_bytes]
    while True:
        last = sizes[-1]
        following = last * given.factor if given.factor else last + given.step_bytes
        if following > given.max_bytes:
            return sizes
        sizes.append(following)


def bus_factor(collective: str, ranks: int) -> float:
    """Return what turns size / time into bus bandwidth."""
    if collective == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if collective in SHARED else 1.0


def time_cell(microseconds: float) -> str:
    """Return a time with as many decimals as its column has room for."""
    if microseconds >= 10000:
        return f"{microseconds:.0f}"
    return f"{microseconds:.1f}" if microseconds >= 100 else f"{microseconds:.2f}"


class Bench:
    """One rank: its device, its buffers, and the collective on them."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.collective = given.collective
        self.dtype = DTYPES[given.dtype]
        self.element_bytes = torch.empty(0, dtype=self.dtype).element_size()
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        backend = given.backend
        if backend == "auto":
            backend = "nccl" if torch.cuda.is_available() else "gloo"
        self.is_gpu = backend == "nccl"
        self.device = torch.device("cpu")
        if self.is_gpu:
            torch.cuda.set_device(self.local_rank)
            self.device = torch.device("cuda", self.local_rank)
        timeout = datetime.timedelta(seconds=given.timeout_s)
        dist.init_process_group(backend, init_method="env://", timeout=timeout)
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.wrong_cells = 0
        self.busbw_gbs: list[float] = []
        sent, received = self.counts(planned_sizes(given)[-1])
        if self.collective in IN_PLACE_ONLY:
            sent = 0
        self.source = torch.empty(sent, dtype=self.dtype, device=self.device)
        self.target = torch.empty(received, dtype=self.dtype, device=self.device)

    # Collectives

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

    def buffers(
        self, sent: int, received: int, in_place: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the tensors that a rank reads and writes; in place, one lies inside the other."""
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

    # Time

    def barrier(self) -> None:
        """Wait for the device and for every rank."""
        if self.is_gpu:
            dist.barrier(device_ids=[self.local_rank])
            torch.cuda.synchronize()
        else:
            dist.barrier()

    def mean_seconds(self, source: torch.Tensor, target: torch.Tensor) -> float:
        """Return the time of one iteration, mean over iterations and ranks."""
        for _ in range(self.given.warmups):
            self.run(source, target)
        self.barrier()
        seconds_of = self.gpu_seconds if self.is_gpu else self.cpu_seconds
        total = torch.tensor([seconds_of(source, target)], dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return total.item() / self.ranks / self.given.iterations

    def gpu_seconds(self, source: torch.Tensor, target: torch.Tensor) -> float:
        """Return the seconds of all iterations, by the GPU's own clock."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(self.given.iterations):
            self.run(source, target)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3

    def cpu_seconds(self, source: torch.Tensor, target: torch.Tensor) -> float:
        """Return the seconds of all iterations, by this process's clock."""
        start = time.perf_counter()
        for _ in range(self.given.iterations):
            self.run(source, target)
        return time.perf_counter() - start

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

    def wrong_count(self, source: torch.Tensor, target: torch.Tensor, size_bytes: int) -> int:
        """Run once on fresh values; return the wrong elements, summed over ranks."""
        # What earlier runs left behind would look right; no right value looks like this one.
        spoilt = torch.tensor(126 if self.collective in REDUCING else 254).to(self.dtype)
        target.fill_(spoilt.item())
        self.fill(source)
        self.run(source, target)
        if self.given.inject_wrong == size_bytes and self.rank == self.ranks - 1:
            target[target.numel() // 2] += 1
        wrong = torch.zeros(1, dtype=torch.int64, device=self.device)
        for begin, index in self.index_blocks(target.numel()):
            found = target[begin : begin + index.numel()]
            wrong += (found != self.right_values(index, target.numel()).to(self.dtype)).sum()
        dist.all_reduce(wrong)
        return int(wrong.item())

    # Table

    def print(self, line: str) -> None:
        """Print on rank 0, by one write, so that no other output can stand inside a line."""
        if self.rank == 0:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def print_header(self) -> None:
        """Print what stands above the rows: versions, parameters, devices, columns."""
        given = self.given
        version = f"# torch.distributed collective benchmark, torch {torch.__version__}"
        if self.is_gpu:
            version += f", NCCL version {'.'.join(map(str, torch.cuda.nccl.version()))}"
        step = f"{given.factor}(factor)" if given.factor else f"{given.step_bytes}(bytes)"
        devices = [""] * self.ranks
        dist.all_gather_object(devices, self.device_words())
        self.print(version)
        self.print(f"# Collective test starting: {self.collective}_perf")
        self.print(
            f"# nThread 1 nGpus 1 minBytes {given.min_bytes} maxBytes {given.max_bytes} "
            f"step: {step} warmup iters: {given.warmups} iters: {given.iterations} agg iters: 1 "
            f"validation: {given.check} graph: 0"
        )
        self.print("#\n# Using devices")
        for line in devices:
            self.print(line)
        if not self.is_gpu:
            self.print("# Using network Socket")  # gloo speaks TCP; what NCCL takes, it says itself
        names = "   time   algbw   busbw #wrong"
        units = "   (us)  (GB/s)  (GB/s)       "
        self.print(f"#\n#{'out-of-place':>75}{'in-place':>31}")
        self.print(f"#       size         count      type   redop    root  {names}  {names}")
        self.print(f"#        (B)    (elements)                            {units}  {units}")

    def device_words(self) -> str:
        """Return the line of this rank and its device."""
        bus, name = "0000:00:00", "CPU"
        if self.is_gpu:
            facts = torch.cuda.get_device_properties(self.local_rank)
            name = facts.name
            if hasattr(facts, "pci_bus_id"):
                bus = f"{facts.pci_domain_id:04x}:{facts.pci_bus_id:02x}:{facts.pci_device_id:02x}"
        return (
            f"#  Rank {self.rank:2d} Group  0 Pid {os.getpid():6d} on {socket.gethostname():>10} "
            f"device {self.local_rank:2d} [{bus}] {name}"
        )

    def print_row(self, size_bytes: int) -> None:
        """Time one size and print its row."""
        sent, received = self.counts(size_bytes)
        halves = [self.half_cells(size_bytes, in_place) for in_place in (False, True)]
        count = min(sent, received) // (self.ranks if self.collective == "alltoall" else 1)
        redop = "sum" if self.collective in REDUCING else "none"
        root = ROOT if self.collective == "broadcast" else -1
        self.print(
            f"{max(sent, received) * self.element_bytes:12d}  {count:12d}  "
            f"{self.given.dtype:>8}  {redop:>6}  {root:6d}  {halves[0]}  {halves[1]}"
        )

    def half_cells(self, size_bytes: int, in_place: bool) -> str:
        """Time and check one half of a row; return its four cells."""
        sent, received = self.counts(size_bytes)
        source, target = self.buffers(sent, received, in_place)
        self.fill(source)
        seconds = self.mean_seconds(source, target)
        wrong = "N/A"
        if self.given.check and not (in_place and self.collective in UNCHECKED_IN_PLACE):
            count = self.wrong_count(source, target, size_bytes)
            self.wrong_cells += count > 0
            wrong = str(count)
        algbw_gbs = max(sent, received) * self.element_bytes / seconds / 1e9
        busbw_gbs = algbw_gbs * bus_factor(self.collective, self.ranks)
        self.busbw_gbs.append(busbw_gbs)
        return f"{time_cell(seconds * 1e6):>7}  {algbw_gbs:6.2f}  {busbw_gbs:6.2f}  {wrong:>5}"

    def print_footer(self) -> None:
        """Print what stands below the rows: wrong values, mean bus bandwidth."""
        verdict = "FAILED" if self.wrong_cells else "OK"
        average = sum(self.busbw_gbs) / len(self.busbw_gbs)
        self.print(f"# Out of bounds values : {self.wrong_cells * self.ranks} {verdict}")
        self.print(f"# Avg bus bandwidth    : {average:g} ")
        self.print(f"#\n# Collective test concluded: {self.collective}_perf")


def main() -> int:
    """Run the sweep; return the exit code: 1 when a value was wrong."""
    given = parse_arguments()
    bench = Bench(given)
    bench.print_header()
    for size_bytes in planned_sizes(given):
        bench.print_row(size_bytes)
    bench.print_footer()
    bench.barrier()
    dist.destroy_process_group()
    return 1 if bench.wrong_cells else 0


if __name__ == "__main__":
    sys.exit(main())
