"""The table of nccl-tests on modelled hardware: header, a row per size and cycle, footer."""

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_cre.simulator.hardware import bus_factor, group_speed
from pytest_cre.simulator.noise import gauss

if TYPE_CHECKING:
    from pytest_cre.simulator.generators.team import Team

ELEMENT_BYTES = {
    **dict.fromkeys(("int8", "uint8", "f8e4m3", "f8e5m2"), 1),
    **dict.fromkeys(("half", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float"), 4),
    **dict.fromkeys(("int64", "uint64", "double"), 8),
}
UNCHECKED_IN_PLACE = ("alltoall", "sendrecv")
REDUCING = ("all_reduce", "reduce_scatter", "reduce")
_QUIET_ITERATIONS = 20  # fewer of them are noisier
_SHORTEST_WAIT_S = 0.002

Tool = Literal["nccl-tests", "torch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """What is measured. `rows` are printed size and count, in order."""

    tool: Tool
    name: str  # as the header names the test
    collective: str
    rows: Sequence[tuple[int, int]]
    min_bytes: int
    max_bytes: int
    step_words: str
    iterations: int
    warmups: int
    is_checked: bool
    dtype: str
    redop: str
    cycles: int = 1
    planted: int | None = None  # an element of one rank that is spoilt before values are checked

    def spoilt(self, count: int, ranks: int) -> int:
        """Return how many elements of a row the plan itself spoils; `count` as the row prints it."""
        received = count * ranks if self.collective in ("all_gather", "alltoall") else count
        return int(self.planted is not None and self.planted < received)


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """Out-of-place or in-place figures of one row; `wrong` None where values are not checked."""

    time_us: float
    algbw_gbs: float
    busbw_gbs: float
    wrong: int | None

    def cells(self) -> str:
        """Return the four cells as nccl-tests prints them."""
        wrong = "N/A" if self.wrong is None else f"{self.wrong:g}"
        time_cell = f"{self.time_us:.2f}"
        if self.time_us >= 10000:
            time_cell = f"{self.time_us:.0f}"
        elif self.time_us >= 100:
            time_cell = f"{self.time_us:.1f}"
        return f"{time_cell:>7}  {self.algbw_gbs:6.2f}  {self.busbw_gbs:6.2f}  {wrong:>5}"


async def print_table(team: "Team", plan: TablePlan) -> int:
    """Write the whole table as rank 0, in the scenario's time; gives the exit code."""
    await asyncio.sleep(team.world.scenario.init_s)
    team.write_nccl_init()
    _write_header(team, plan)
    total = len(plan.rows) * plan.cycles
    start_s, printed = time.monotonic(), 0
    busbw_gbs: list[float] = []
    wrong_cells = 0
    for cycle in range(plan.cycles):
        for size_bytes, count in plan.rows:
            await team.reach(size_bytes=size_bytes)
            printed += 1
            due_s = start_s + team.world.scenario.table_s * printed / total
            if (wait_s := due_s - time.monotonic()) > _SHORTEST_WAIT_S:
                await asyncio.sleep(wait_s)
            halves = measure(team, plan, (size_bytes, count), cycle=cycle)
            busbw_gbs += [each.busbw_gbs for each in halves]
            wrong_cells += sum(bool(each.wrong) for each in halves)
            root = "0" if plan.collective in ("broadcast", "reduce") else "-1"
            team.write(
                0,
                f"{size_bytes:12d}  {count:12d}  {plan.dtype:>8}  {plan.redop:>6}  {root:>6}  "
                f"{halves[0].cells()}  {halves[1].cells()}",
            )
    _write_footer(team, plan, busbw_gbs, wrong_cells)
    return 1 if wrong_cells else 0


def measure(
    team: "Team", plan: TablePlan, row: tuple[int, int], *, cycle: int
) -> tuple[Half, Half]:
    """Return the figures of a row, out of place and in place."""
    size_bytes, count = row
    group = team.participants()
    plain_s = group_speed(plan.collective, group).seconds(size_bytes)
    ratio = max(each.node.model.noise_ratio for each in group)
    ratio *= max(1.0, math.sqrt(_QUIET_ITERATIONS / plan.iterations))
    factor = bus_factor(plan.collective, team.size)
    wrong = None
    if plan.is_checked:
        wrong = team.wrong_values(size_bytes) + plan.spoilt(count, team.size)

    def measured(half: int, wrong: int | None) -> Half:
        key = (plan.collective, size_bytes, plan.iterations, cycle, half)
        seconds = plain_s * max(0.1, 1.0 + ratio * gauss(*team.noise_key, *key))
        algbw_gbs = size_bytes / seconds / 1e9
        return Half(
            time_us=seconds * 1e6, algbw_gbs=algbw_gbs, busbw_gbs=algbw_gbs * factor, wrong=wrong
        )

    is_checked_in_place = plan.collective not in UNCHECKED_IN_PLACE
    return measured(0, wrong), measured(1, wrong if is_checked_in_place else None)


def _write_header(team: "Team", plan: TablePlan) -> None:
    lines = [
        f"# Collective test starting: {plan.name}",
        f"# nThread 1 nGpus 1 minBytes {plan.min_bytes} maxBytes {plan.max_bytes} "
        f"step: {plan.step_words} warmup iters: {plan.warmups} iters: {plan.iterations} "
        f"agg iters: 1 validation: {int(plan.is_checked)} graph: 0",
        "#",
        "# Using devices",
    ]
    if plan.tool == "nccl-tests":
        lines.insert(0, "# nccl-tests version 2.17.8 nccl-headers=22707 nccl-library=22707")
    else:
        lines.insert(
            0, "# torch.distributed collective benchmark, torch 2.9.1, NCCL version 2.27.7"
        )
    lines += [
        f"#  Rank {rank:2d} Group  0 Pid {team.process_id(rank):6d} on {run.host_name:>10} "
        f"device {local:2d} [{team.bus_id(rank)}] {run.node.model.device}"
        for rank, (run, local) in enumerate(team.places)
    ]
    names = "   time   algbw   busbw #wrong"
    units = "   (us)  (GB/s)  (GB/s)       "
    lines += [
        "#",
        f"#{'out-of-place':>75}{'in-place':>31}",
        f"#       size         count      type   redop    root  {names}  {names}",
        f"#        (B)    (elements)                            {units}  {units}",
    ]
    team.write(0, "\n".join(lines))


def _write_footer(
    team: "Team", plan: TablePlan, busbw_gbs: Sequence[float], wrong_cells: int
) -> None:
    verdict = "FAILED" if wrong_cells else "OK"
    average = sum(busbw_gbs) / len(busbw_gbs) if busbw_gbs else 0.0
    lines = [
        f"# Out of bounds values : {wrong_cells * team.size} {verdict}",
        f"# Avg bus bandwidth    : {average:g} ",
        "#",
        f"# Collective test concluded: {plan.name}",
    ]
    if plan.tool == "nccl-tests":
        lines.append("#")
        if wrong_cells:
            first = team.places[0][0]
            lines.append(
                f"\n .. {first.host_name} pid {team.process_id(0)}: Test failure common.cu:1189"
            )
    team.write(0, "\n".join(lines))


def planned_sizes(min_bytes: int, max_bytes: int, factor: int | None, step_bytes: int) -> list[int]:
    """Return the sizes from the smallest to the largest, by factor or step."""
    sizes, size = [], min_bytes
    while size <= max_bytes:
        sizes.append(size)
        size = size * factor if factor else size + step_bytes
    return sizes
