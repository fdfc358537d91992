"""The collective benchmark of this project over torch.distributed, under torchrun."""

import argparse
from typing import TYPE_CHECKING

from pytest_cre.formats.quantity import parse_message_bytes
from pytest_cre.simulator.commandline import Launch, ProgramParser, UsageExit
from pytest_cre.simulator.generators.table import (
    ELEMENT_BYTES,
    TablePlan,
    planned_sizes,
    print_table,
)
from pytest_cre.simulator.generators.team import Team, run_torch
from pytest_cre.simulator.hardware import SHARED

if TYPE_CHECKING:
    from pytest_cre.simulator.world import ContainerRun

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv")
DTYPES = ("int8", "uint8", "int32", "int64", "half", "float", "double", "bfloat16")
_MOST_ROWS = 100_000


async def generate(run: "ContainerRun", launch: Launch) -> int:
    """Run the benchmark; gives the exit code."""
    if launch.launcher != "torchrun":
        run.write("collective.py: error: RANK, WORLD_SIZE, MASTER_ADDR not set", "stderr")
        return 2

    async def drive(team: Team) -> int:
        try:
            plan = plan_of(launch.argv[1:], team.size)
        except UsageExit as ending:
            team.write(0, ending.text, "stderr" if ending.code else "stdout")
            return ending.code
        return await print_table(team, plan)

    return await run_torch(run, launch, drive)


def plan_of(argv: tuple[str, ...], ranks: int) -> TablePlan:
    """Return the table that the arguments ask for; raises `UsageExit`."""
    parser = ProgramParser(
        prog="collective.py", usage="torchrun ... collective.py [options]", allow_abbrev=False
    )
    add = parser.add_argument
    add("--collective", choices=COLLECTIVES, default="all_reduce")
    add("-b", dest="min_bytes", type=_message_bytes, default=32 << 20)
    add("-e", dest="max_bytes", type=_message_bytes, default=32 << 20)
    add("-f", dest="factor", type=_whole)
    add("-i", dest="step_bytes", type=_message_bytes)
    add("-n", dest="iterations", type=_whole, default=20)
    add("-w", dest="warmups", type=_whole, default=5)
    add("-N", dest="cycles", type=_whole, default=1)
    add("-c", dest="check", type=int, choices=(0, 1), default=1)
    add("-d", dest="dtype", choices=DTYPES, default="float")
    add("--backend", choices=("auto", "nccl", "gloo"), default="auto")
    add("--timeout-s", type=_whole, default=600)
    add("--plant-wrong", type=_rank_and_index)
    given = parser.parse_args(list(argv))
    if not 0 < given.min_bytes <= given.max_bytes:
        parser.error("-b must be at least 1 and at most -e")
    if given.factor is not None and given.step_bytes is not None:
        parser.error("-f and -i exclude each other")
    if given.factor is not None and given.factor < 2:
        parser.error("argument -f: must be a whole number of at least 2")
    if not given.iterations or not given.cycles:
        parser.error("argument -n: must be a whole number of at least 1")
    if given.plant_wrong is not None:
        if not given.check:
            parser.error("--plant-wrong needs -c 1")
        if given.plant_wrong[0] >= ranks:
            parser.error(f"--plant-wrong must name one of the {ranks} ranks, from 0 on")
    step_bytes = given.step_bytes or 1 << 20
    if given.factor is None and (given.max_bytes - given.min_bytes) // step_bytes > _MOST_ROWS:
        parser.error("simulator: more sizes than it writes")
    sizes = planned_sizes(given.min_bytes, given.max_bytes, given.factor, step_bytes)
    return TablePlan(
        tool="torch",
        name=f"{given.collective}_perf",
        collective=given.collective,
        rows=[_row(size, given.collective, given.dtype, ranks) for size in sizes],
        min_bytes=given.min_bytes,
        max_bytes=given.max_bytes,
        step_words=f"{given.factor}(factor)" if given.factor else f"{step_bytes}(bytes)",
        iterations=given.iterations,
        warmups=given.warmups,
        is_checked=bool(given.check),
        dtype=given.dtype,
        redop="sum" if given.collective in ("all_reduce", "reduce_scatter") else "none",
        cycles=given.cycles,
        planted=given.plant_wrong[1] if given.plant_wrong is not None else None,
    )


def _row(size_bytes: int, collective: str, dtype: str, ranks: int) -> tuple[int, int]:
    """Return printed size and count: no rank is left without an element."""
    element = ELEMENT_BYTES[dtype]
    count = max(1, size_bytes // element)
    if collective not in SHARED:
        return count * element, count
    share = max(1, count // ranks)
    return share * ranks * element, share


def _message_bytes(text: str) -> int:
    try:
        return parse_message_bytes(text.upper())
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def _rank_and_index(text: str) -> tuple[int, int]:
    rank, colon, index = text.partition(":")
    if not (colon and rank.isdigit() and index.isdigit()):
        raise argparse.ArgumentTypeError(f"must be RANK:INDEX such as 1:0, got {text!r}")
    return int(rank), int(index)


def _whole(text: str) -> int:
    if not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(text)
