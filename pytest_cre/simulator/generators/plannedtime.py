"""The time of a simulated program, as its plan has it."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

_SHORTEST_WAIT_S = 0.002


class PlannedTime:
    """A clock that goes on by what work takes, and waits until the real one has come as far.

    A busy machine wakes the program late. That is no slowness of the hardware that is modelled: what
    the program says of the time is what the plan says, and delays do not add up.
    """

    def __init__(self) -> None:
        self._began_at = datetime.now(UTC)
        self._began_s = time.monotonic()
        self.passed_s = 0.0

    async def spend(self, seconds: float) -> None:
        """Let the time of a piece of work pass."""
        self.passed_s += seconds
        wait_s = self._began_s + self.passed_s - time.monotonic()
        if wait_s > _SHORTEST_WAIT_S:
            await asyncio.sleep(wait_s)

    def stamp(self, decimals: int) -> str:
        """Return the time as a container's programs print it: local time, which is UTC."""
        now = self._began_at + timedelta(seconds=self.passed_s)
        text = now.strftime("%Y-%m-%d %H:%M:%S.%f")
        return text[: 19 + (decimals and decimals + 1)]
