"""A recorded log in place of a program."""

import asyncio
import time
from typing import TYPE_CHECKING

from pytest_cre.simulator.scenario import RecordingRule

if TYPE_CHECKING:
    from pytest_cre.simulator.world import ContainerRun

_POLL_S = 0.02


async def generate(run: "ContainerRun", rule: RecordingRule) -> int:
    """Replay on completion index 0; the other pods of the Job idle until that ends.

    A pod without a completion index replays for itself.
    """
    replayed = run.world.replayed
    key = f"{run.owner_uid}/{run.subject.container}"
    if run.subject.index:
        while key not in replayed:
            await asyncio.sleep(_POLL_S)
        return replayed[key]
    replayed.pop(key, None)
    code = 1  # where the replay is broken off
    try:
        code = await _replay(run, rule)
    finally:
        replayed[key] = code
    return code


async def _replay(run: "ContainerRun", rule: RecordingRule) -> int:
    start_s = time.monotonic()
    for output in rule.recording.outputs:
        wait_s = start_s + output.offset_s / rule.speed - time.monotonic()
        if wait_s > 0.002:  # shorter waits take longer than they are
            await asyncio.sleep(wait_s)
        run.log.write(output.data, output.stream)
    return rule.recording.exit_code
