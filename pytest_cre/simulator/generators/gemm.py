"""The GEMM burn-in of this project: rows of every GPU of a node, on modelled hardware."""

import argparse
import asyncio
from typing import TYPE_CHECKING

from pytest_cre.simulator.commandline import Launch, ProgramParser, UsageExit
from pytest_cre.simulator.generators.gpus import gpu_uuid, lost_gpus
from pytest_cre.simulator.noise import gauss

if TYPE_CHECKING:
    from pytest_cre.simulator.world import ContainerRun

_DTYPES = ("bfloat16", "half", "float", "double")
_LONGEST_SUM = 65536
# What a GPU reaches with other types, as a part of bfloat16.
_RATES = {"bfloat16": 1.0, "half": 1.0, "float": 0.5, "double": 0.06}
_CHECK_EVERY = 10


async def generate(run: "ContainerRun", launch: Launch) -> int:
    """Burn in; gives the exit code."""
    given = _options(launch.argv[1:])
    gpus = run.call.gpus or run.node.gpus
    planned = given.gpus or gpus
    lost = lost_gpus(run)
    visible = [gpu for gpu in range(min(planned, gpus)) if gpu not in lost]
    shape = f"dtype={given.dtype} m={given.m} n={given.n} k={given.k}"
    run.write(f"# gemm starting: gpus={planned} samples={given.samples} {shape} torch=2.9.1")
    if len(visible) < planned:
        run.write(f"# gemm problem: {len(visible)} of {planned} GPUs are visible")
    await asyncio.sleep(run.world.scenario.init_s)
    for gpu in visible:
        name = run.node.model.device
        run.write(f"# gemm gpu={gpu} uuid={gpu_uuid(run.node.name, gpu)} name={name}")
    spoilt: set[int] = set()
    for sample in range(1, given.samples + 1):
        await asyncio.sleep(run.world.scenario.table_s / given.samples)
        run.reach(step=sample)
        if run.is_hung or run.ending.done():
            await asyncio.Event().wait()
        for gpu in visible:
            wrong = _row(run, given, gpu, sample, shape)
            if wrong:
                spoilt.add(gpu)
    for gpu in sorted(spoilt):
        run.write(f"# gemm problem: gpu={gpu} ended with exit code 1")
    is_well = len(visible) == planned and not spoilt
    verdict = "OK" if is_well else "FAILED"
    run.write(f"# gemm concluded: gpus={len(visible)} of {planned} {verdict}")
    return 0 if is_well else 1


def _row(run: "ContainerRun", given: argparse.Namespace, gpu: int, sample: int, shape: str) -> int:
    """Write one row; return its wrong elements."""
    model = run.node.model
    wobble = gauss(run.world.seed, run.node.name, "gemm", gpu, sample, given.dtype)
    tflops = model.gemm_rate * _RATES[given.dtype] * run.gpu_factor(gpu)
    tflops *= max(0.1, 1.0 + model.noise_ratio * wobble)
    work = 2.0 * given.m * given.n * given.k / 1e12
    checks = max(1, round(given.seconds * tflops / work / _CHECK_EVERY))
    products = checks * _CHECK_EVERY
    wrong = run.wrong_values(0) * checks if gpu == 0 else 0
    if given.plant_wrong is not None and given.plant_wrong[0] == gpu:
        wrong += checks
    run.write(
        f"gemm gpu={gpu} sample={sample} {shape} products={products} "
        f"seconds={products * work / tflops:.6g} tflops={tflops:.6g} wrong={wrong}"
    )
    return wrong


def _options(argv: tuple[str, ...]) -> argparse.Namespace:
    """Return the options; raises `UsageExit` where the program would refuse them."""
    parser = ProgramParser(prog="gemm.py", usage="gemm.py [-h] [options]", allow_abbrev=False)
    add = parser.add_argument
    add("--gpus", type=_whole)
    add("--device", choices=("cuda", "cpu"), default="cuda")
    add("--dtype", choices=_DTYPES, default="bfloat16")
    for name in "mnk":
        add(f"-{name}", type=_whole, default=8192)
    add("--samples", type=_whole, default=6)
    add("--seconds", type=_seconds, default=10.0)
    add("--check-every", type=_whole, default=10)
    add("--plant-wrong", type=_gpu_and_index)
    given = parser.parse_args(list(argv))
    if given.k > _LONGEST_SUM:
        parser.error(f"argument -k: must be a whole number of 1 to {_LONGEST_SUM}, got '{given.k}'")
    if given.device == "cpu":
        raise UsageExit(1, "simulator: no model of processors; --device cuda\n")
    return given


def _whole(text: str) -> int:
    if not text.isdigit() or len(text) > 9 or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"must be seconds such as 10 or 0.5, got {text!r}")
    return value


def _gpu_and_index(text: str) -> tuple[int, int]:
    gpu, colon, index = text.partition(":")
    if not (colon and gpu.isdigit() and index.isdigit()):
        raise argparse.ArgumentTypeError(f"must be GPU:INDEX such as 3:0, got {text!r}")
    return int(gpu), int(index)
