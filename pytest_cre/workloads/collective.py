"""Collective benchmark over torch.distributed that prints the table of nccl-tests.

Started by torchrun, one process per GPU; NCCL on GPUs, gloo on CPUs. Needs nothing but torch and
exchange.py, which lies beside it.

Sizes, counts and bandwidths follow nccl-tests: for all_gather, reduce_scatter and alltoall the size
is that of all ranks together and the count that of one. Bus bandwidth is size / time times
2(n-1)/n (all_reduce), (n-1)/n (all_gather, reduce_scatter, alltoall) or 1 (broadcast, sendrecv).
Each time is the mean over ranks and iterations. A size that would leave a rank without an element
becomes one element per rank, so every planned size has its row. With `-N` the whole sweep is run that
many times into one table.

Both halves are timed. torch has no out-of-place form of all_reduce and broadcast, so both halves
of these run in place, each on a fresh buffer. alltoall and sendrecv in place destroy what they
read, so their values are not checked there (N/A), as in nccl-tests.

After the timed iterations of a half the collective runs once more on known values; `#wrong` is the
number of elements that came out wrong, summed over ranks. Exit code 1 when there was one.
`--plant-wrong RANK:INDEX` is a self-test: that element of that rank's result is spoilt before it is
checked, at every size that has it, so that a report of wrong values can be rehearsed.
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
from exchange import COLLECTIVES, DTYPES, REDUCING, ROOT, UNCHECKED_IN_PLACE, Exchange, bus_factor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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


def rank_and_index(text: str) -> tuple[int, int]:
    """Return the rank and the element of a text such as 1:0."""
    rank, colon, index = text.partition(":")
    if not (colon and rank.isdigit() and index.isdigit()):
        raise argparse.ArgumentTypeError(f"must be RANK:INDEX such as 1:0, got {text!r}")
    return int(rank), int(index)


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
    add("-N", dest="cycles", type=at_least(1), default=1, help="runs of the whole sweep")
    add("-c", dest="check", type=int, choices=(0, 1), default=1, help="check values")
    add("-d", dest="dtype", choices=sorted(DTYPES), default="float")
    add("--backend", choices=("auto", "nccl", "gloo"), default="auto")
    add("--timeout-s", type=at_least(1), default=600, help="longest wait for other ranks")
    add("--plant-wrong", type=rank_and_index, metavar="RANK:INDEX", help="self-test: spoil a value")
    given = parser.parse_args(argv)
    if not 0 < given.min_bytes <= given.max_bytes:
        parser.error("-b must be at least 1 and at most -e")
    if given.factor is not None and given.step_bytes is not None:
        parser.error("-f and -i exclude each other")
    if given.step_bytes == 0:
        parser.error("-i must be at least 1")
    if given.factor is None and given.step_bytes is None:
        given.step_bytes = 1 << 20
    missing = [name for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR") if name not in os.environ]
    if missing:
        parser.error(f"{', '.join(missing)} not set; start this with torchrun")
    if given.plant_wrong is not None:
        if not given.check:
            parser.error("--plant-wrong needs -c 1")
        ranks = int(os.environ["WORLD_SIZE"])
        if given.plant_wrong[0] >= ranks:
            parser.error(f"--plant-wrong must name one of the {ranks} ranks, from 0 on")
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


def time_cell(microseconds: float) -> str:
    """Return a time with as many decimals as its column has room for."""
    if microseconds >= 10000:
        return f"{microseconds:.0f}"
    return f"{microseconds:.1f}" if microseconds >= 100 else f"{microseconds:.2f}"


class Bench:
    """One rank of the benchmark: it times and checks a collective, and rank 0 prints the table."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
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
        self.sizes = planned_sizes(given)
        self.exchange = Exchange(given.collective, given.dtype, self.device, self.sizes[-1])
        self.wrong_cells = 0
        self.busbw_gbs: list[float] = []

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
            self.exchange.run(source, target)
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
            self.exchange.run(source, target)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3

    def cpu_seconds(self, source: torch.Tensor, target: torch.Tensor) -> float:
        """Return the seconds of all iterations, by this process's clock."""
        start = time.perf_counter()
        for _ in range(self.given.iterations):
            self.exchange.run(source, target)
        return time.perf_counter() - start

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
        self.print(f"# Collective test starting: {given.collective}_perf")
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
        given = self.given
        sent, received = self.exchange.counts(size_bytes)
        halves = [self.half_cells(size_bytes, in_place) for in_place in (False, True)]
        count = min(sent, received) // (self.ranks if given.collective == "alltoall" else 1)
        redop = "sum" if given.collective in REDUCING else "none"
        root = ROOT if given.collective == "broadcast" else -1
        self.print(
            f"{max(sent, received) * self.exchange.element_bytes:12d}  {count:12d}  "
            f"{given.dtype:>8}  {redop:>6}  {root:6d}  {halves[0]}  {halves[1]}"
        )

    def half_cells(self, size_bytes: int, in_place: bool) -> str:
        """Time and check one half of a row; return its four cells."""
        given, exchange = self.given, self.exchange
        source, target = exchange.buffers(size_bytes, in_place)
        exchange.fill(source)
        seconds = self.mean_seconds(source, target)
        wrong = "N/A"
        if given.check and not (in_place and given.collective in UNCHECKED_IN_PLACE):
            count = exchange.wrong_count(source, target, given.plant_wrong)
            self.wrong_cells += count > 0
            wrong = str(count)
        algbw_gbs = max(exchange.counts(size_bytes)) * exchange.element_bytes / seconds / 1e9
        busbw_gbs = algbw_gbs * bus_factor(given.collective, self.ranks)
        self.busbw_gbs.append(busbw_gbs)
        return f"{time_cell(seconds * 1e6):>7}  {algbw_gbs:6.2f}  {busbw_gbs:6.2f}  {wrong:>5}"

    def print_footer(self) -> None:
        """Print what stands below the rows: wrong values, mean bus bandwidth."""
        verdict = "FAILED" if self.wrong_cells else "OK"
        average = sum(self.busbw_gbs) / len(self.busbw_gbs)
        self.print(f"# Out of bounds values : {self.wrong_cells * self.ranks} {verdict}")
        self.print(f"# Avg bus bandwidth    : {average:g} ")
        self.print(f"#\n# Collective test concluded: {self.given.collective}_perf")


def main() -> int:
    """Run the sweeps; return the exit code: 1 when a value was wrong."""
    given = parse_arguments()
    bench = Bench(given)
    bench.print_header()
    for _ in range(given.cycles):
        for size_bytes in bench.sizes:
            bench.print_row(size_bytes)
    bench.print_footer()
    bench.barrier()
    dist.destroy_process_group()
    return 1 if bench.wrong_cells else 0


if __name__ == "__main__":
    sys.exit(main())
