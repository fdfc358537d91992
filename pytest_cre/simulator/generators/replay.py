"""A recorded log in place of a program."""

import asyncio
import time
from typing import TYPE_CHECKING

from pytest_cre.simulator.rendezvous import Group, PeerLost, join_group
from pytest_cre.simulator.scenario import RecordingRule

if TYPE_CHECKING:
    from pytest_cre.simulator.world import ContainerRun


async def generate(run: "ContainerRun", rule: RecordingRule) -> int:
    """Replay on completion index 0; the other pods of the Job idle until that ends.

    A pod without a completion index replays for itself.
    """
    index = run.subject.index
    if index is None:
        return await _replay(run, rule)
    key = f"recording/{run.owner_uid}/{run.subject.container}"
    if index:
        return await _idle(run, key)
    group = join_group(run.world.groups, key, size=1, rank=0, processes=1, run=run)

    async def drive(_: Group) -> int:
        return await _replay(run, rule)

    return await group.work(run, drive)


async def _idle(run: "ContainerRun", key: str) -> int:
    """Wait for the pod that replays, and then for its end."""
    while (group := run.world.groups.get(key)) is None:
        await asyncio.sleep(0.02)
    try:
        return await asyncio.shield(group.outcome)
    except PeerLost:
        return 1


async def _replay(run: "ContainerRun", rule: RecordingRule) -> int:
    start_s = time.monotonic()
    for output in rule.recording.outputs:
        wait_s = start_s + output.offset_s / rule.speed - time.monotonic()
        if wait_s > 0.002:
            await asyncio.sleep(wait_s)
        run.log.write(output.data, output.stream)
    return rule.recording.exit_code
