"""The binaries of nccl-tests: `all_reduce_perf` and the others, under mpirun or alone."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_cre.formats.quantity import parse_message_bytes
from pytest_cre.simulator.commandline import Launch, UsageExit
from pytest_cre.simulator.generators.mpirun import run_ranks
from pytest_cre.simulator.generators.table import (
    ELEMENT_BYTES,
    REDUCING,
    TablePlan,
    planned_sizes,
    print_table,
)
from pytest_cre.simulator.generators.team import Team
from pytest_cre.simulator.hardware import SHARED

if TYPE_CHECKING:
    from pytest_cre.simulator.world import ContainerRun

COLLECTIVES = (
    "all_gather",
    "all_reduce",
    "alltoall",
    "broadcast",
    "reduce",
    "reduce_scatter",
    "sendrecv",
)
_BINARY = re.compile(r"([a-z_]+)_perf(_mpi)?")
_LONG = {
    "nthreads": "t",
    "ngpus": "g",
    "minbytes": "b",
    "maxbytes": "e",
    "stepbytes": "i",
    "stepfactor": "f",
    "iters": "n",
    "agg_iters": "m",
    "warmup_iters": "w",
    "run_cycles": "N",
    "check": "c",
    "op": "o",
    "datatype": "d",
    "root": "r",
    "blocking": "z",
    "parallel_init": "p",
    "stream_null": "y",
    "timeout": "T",
    "cudagraph": "G",
    "report_cputime": "C",
    "average": "a",
    "local_register": "R",
}
_DEFAULTS = {
    "t": "1",
    "g": "1",
    "b": "32M",
    "e": "32M",
    "i": "1M",
    "f": "",
    "n": "20",
    "w": "1",
    "N": "1",
    "c": "1",
    "o": "sum",
    "d": "float",
}
_MOST_ROWS = 100_000


def collective_of(program: str) -> str | None:
    """Return the collective of a binary's name, None when it is none of nccl-tests."""
    found = _BINARY.fullmatch(program)
    return found[1] if found and found[1] in COLLECTIVES else None


async def generate(run: "ContainerRun", launch: Launch) -> int:
    """Run the benchmark; gives the exit code."""
    options = read_options(launch)
    gpus = _number(options, "g", 1) * _number(options, "t", 1)
    if launch.launcher is None:
        available = run.call.gpus or run.node.gpus
        if gpus > available:
            run.write(
                f"{run.host_name}: Test CUDA failure common.cu:1023 'invalid device ordinal'\n"
                f" .. {run.host_name} pid 120: Test failure common.cu:891"
            )
            return 2
        launch = replace(launch, launcher="threads", processes=gpus)
    plan_of(options, launch.program, 1)  # a mistake shows before anybody is waited for

    async def drive(team: Team) -> int:
        return await print_table(team, plan_of(options, launch.program, team.size))

    return await run_ranks(run, launch, drive)


def read_options(launch: Launch) -> dict[str, str]:
    """Return the options by letter; an unknown one prints the usage and ends with 0, as it does."""
    options = dict(_DEFAULTS)
    words = list(launch.argv[1:])
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            letter = _LONG.get(name, "")
            if letter and not equals:
                value = words.pop(0) if words else ""
        else:
            letter, value = word[1:2] if word.startswith("-") else "", word[2:]
            if letter and not value:
                value = words.pop(0) if words else ""
        if letter not in _LONG.values() or not value:
            complaint = "" if letter == "h" else f"invalid option '{letter or word}'\n"
            raise UsageExit(0, f"{complaint}{_usage(launch.program)}")
        options[letter] = value
    return options


def plan_of(options: dict[str, str], name: str, ranks: int) -> TablePlan:
    """Return the table that the options ask for."""
    collective = collective_of(name) or "all_reduce"
    min_bytes, max_bytes = _size(options, "b", "minbytes"), _size(options, "e", "maxbytes")
    step_bytes = _size(options, "i", "stepbytes")
    factor = _number(options, "f", 1) if options["f"] else None
    dtype, redop = options["d"], options["o"] if collective in REDUCING else "none"
    if dtype not in ELEMENT_BYTES:
        raise UsageExit(255, f"invalid datatype {dtype!r}\n")
    if min_bytes > max_bytes or min_bytes < 1 or (factor is None and step_bytes < 1):
        raise UsageExit(255, f"invalid option values: minbytes {min_bytes}, maxbytes {max_bytes}\n")
    factor = factor if factor is not None and factor > 1 else None
    if factor is None and (max_bytes - min_bytes) // step_bytes > _MOST_ROWS:
        raise UsageExit(255, "simulator: more sizes than it writes\n")
    element = ELEMENT_BYTES[dtype]
    shares = ranks if collective in SHARED else 1
    rows = []
    for size_bytes in planned_sizes(min_bytes, max_bytes, factor, step_bytes):
        count = size_bytes // element // shares
        if shares > 1:
            count -= count % max(1, 16 // element)  # shares are aligned to 16 bytes
        rows.append((count * shares * element, count))
    return TablePlan(
        tool="nccl-tests",
        name=name,
        collective=collective,
        rows=rows,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        step_words=f"{factor}(factor)" if factor else f"{step_bytes}(bytes)",
        iterations=_number(options, "n", 1),
        warmups=_number(options, "w", 0),
        is_checked=_number(options, "c", 0) > 0,
        dtype=dtype,
        redop=redop,
        cycles=_number(options, "N", 1),
    )


def _size(options: dict[str, str], letter: str, name: str) -> int:
    try:
        return parse_message_bytes(options[letter].upper())
    except ValueError:
        raise UsageExit(255, f"invalid size specified for '{name}'\n") from None


def _number(options: dict[str, str], letter: str, lowest: int) -> int:
    """Return a number as the program reads it: what is none counts as the lowest."""
    text = options.get(letter, "")
    return max(lowest, int(text)) if re.fullmatch(r"[0-9]{1,9}", text) else lowest


def _usage(program: str) -> str:
    lines = [f"[-{letter},--{name} <value>]" for name, letter in sorted(_LONG.items())]
    return f"USAGE: {program} \n\t" + " \n\t".join([*lines, "[-h,--help]"]) + "\n"
