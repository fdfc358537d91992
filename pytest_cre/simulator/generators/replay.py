"""A recorded log in place of a program."""

import asyncio
import time
from typing import TYPE_CHECKING

from pytest_cre.simulator.recordings import RecordedOutput, Recording
from pytest_cre.simulator.scenario import RecordingRule
from pytest_cre.simulator.shifting import NS, Shift

if TYPE_CHECKING:
    from pytest_cre.simulator.world import ContainerRun

_POLL_S = 0.02
_NOT_FOUND_EXIT = 127


async def generate(run: "ContainerRun", rule: RecordingRule) -> int:
    """Replay what was recorded of the pod's completion index, or of a pod without one.

    A pod of which nothing was recorded idles until that of index 0 ends, and ends with its code.
    """
    world, index = run.world, run.subject.index
    key = f"{run.owner_uid}/{run.subject.container}"
    recorded = rule.recordings.get(index)
    if recorded is None and (not index or 0 not in rule.recordings):
        run.write("simulator: the recording holds no log of such a pod", "stderr")
        return _NOT_FOUND_EXIT
    if recorded is None:
        while key not in world.replayed:
            await asyncio.sleep(_POLL_S)
        return world.replayed[key]
    # All pods of a Job share the moment from which times count, as they did when they were recorded.
    world.replay_starts.setdefault(run.owner_uid, time.monotonic())
    # A Job that is created again under its name goes on with the recordings.
    place = f"{run.subject.namespace}/{run.owner_name}/{run.subject.container}/{index}"
    nth = world.replays.get(place, 0)
    world.replays[place] = nth + 1
    recording = recorded[min(nth, len(recorded) - 1)]
    if index:
        return await _replay(run, recording, rule.speed)
    world.replayed.pop(key, None)
    code = 1  # where the replay is broken off
    try:
        code = await _replay(run, recording, rule.speed)
    finally:
        world.replayed[key] = code
    return code


async def _replay(run: "ContainerRun", recording: Recording, speed: float) -> int:
    start_s, lasted_ns = time.monotonic(), round(recording.lasted_s * NS)
    if recording.started_ns is not None:
        start_s = run.world.replay_starts[run.owner_uid]
    for output in recording.outputs:
        await _until(start_s + output.offset_s / speed)
        run.log.write(_now(output, recording.started_ns, lasted_ns), output.stream)
    await _until(start_s + recording.ended_s / speed)
    return recording.exit_code


def _now(output: RecordedOutput, started_ns: int | None, lasted_ns: int) -> bytes:
    """Return output in which the times of the recorded run are of now: as early or late as then."""
    if started_ns is None:
        return output.data
    shift = Shift(
        recorded_ns=started_ns + round(output.offset_s * NS),
        replayed_ns=time.time_ns(),
        lasted_ns=lasted_ns,
    )
    return shift.moved(output.data)


async def _until(moment_s: float) -> None:
    wait_s = moment_s - time.monotonic()
    if wait_s > 0.002:  # shorter waits take longer than they are
        await asyncio.sleep(wait_s)
