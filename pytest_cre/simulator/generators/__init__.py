"""What simulated containers write: benchmarks and trainings on modelled hardware."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from pytest_cre.simulator.commandline import Launch, UsageExit, take_apart
from pytest_cre.simulator.generators import (
    collective,
    dcgm,
    gemm,
    megatron,
    nccltests,
    replay,
)
from pytest_cre.simulator.generators.shell import Shell
from pytest_cre.simulator.process import run_process

if TYPE_CHECKING:
    from pytest_cre.simulator.world import ContainerRun

_LOG = logging.getLogger(__name__)
_NOT_FOUND_EXIT = 127
_NOT_RECORDED = "no recording of the scenario matches this container"
NOT_REPLAYED = "NotReplayed"  # reason of the Event about a pod that none of the recordings fits

Generator = Callable[["ContainerRun", Launch], Awaitable[int]]
_PROGRAMS: Mapping[str, Generator] = {
    "collective.py": collective.generate,
    "dcgmi": dcgm.generate,
    "gemm.py": gemm.generate,
    "pretrain_gpt.py": megatron.generate,
}


async def program_for(run: "ContainerRun") -> int:
    """Do what the container's command does; gives its exit code."""
    try:
        for process in run.world.scenario.processes:
            if process.match.matches(run.subject):
                return await run_process(run, process.python)
        for rule in run.world.scenario.recordings:
            if rule.match.matches(run.subject):
                return await replay.generate(run, rule)
        return await run_command(run, run.call.argv)
    except asyncio.CancelledError:
        raise
    except Exception as problem:  # noqa: BLE001 - a mistake here ends one container, not all
        _LOG.exception("container of pod %s", run.subject.pod)
        run.write(f"simulator: {type(problem).__name__}: {problem}", "stderr")
        return 1


async def run_command(
    run: "ContainerRun", argv: tuple[str, ...], env: dict[str, str] | None = None
) -> int:
    """Do what one command line does; gives its exit code."""
    try:
        launch = take_apart(argv, dict(run.call.env) if env is None else env)
        generator = _generator(launch)
        if generator is not None:
            scenario = run.world.scenario
            if scenario.only_recordings:
                run.write(f"simulator: {_NOT_RECORDED}, and onlyRecordings is set", "stderr")
                return _NOT_FOUND_EXIT
            if scenario.recordings:
                words = f"{_NOT_RECORDED}, so its output is generated"
                await run.control.warn(NOT_REPLAYED, f"{words} (scenario {scenario.name})")
            return await generator(run, launch)
    except UsageExit as ending:
        run.write(ending.text, "stderr" if ending.code else "stdout")
        return ending.code
    shell = Shell(run, launch.env, run_command)
    if shell.knows(launch):
        return await shell.run(launch)
    run.write(
        f"simulator: no model of {launch.program!r}; it knows torchrun with collective.py or "
        "pretrain_gpt.py, gemm.py, dcgmi diag, nccl-tests binaries, and sh with echo, sleep and exit",
        "stderr",
    )
    return _NOT_FOUND_EXIT


def _generator(launch: Launch) -> Generator | None:
    """Return what imitates the program, None where nothing of this package does."""
    if nccltests.collective_of(launch.program) is not None:
        return nccltests.generate
    return _PROGRAMS.get(launch.program)
