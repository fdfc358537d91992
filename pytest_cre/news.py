"""What a run says while it works: lines on the terminal, of each subject at most one a minute."""

import time
from collections.abc import Callable
from typing import Protocol

PAUSE_S = 60.0


class News(Protocol):
    """Takes news, to be told now and not twice."""

    def tell(self, line: str, *, subject: str = "") -> None:
        """Take a line; without a subject it is its own."""


class TerminalNews:
    """Writes lines with `write`; a subject that was told within the last minute is left out."""

    def __init__(
        self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._told_s: dict[str, float] = {}

    def tell(self, line: str, *, subject: str = "") -> None:
        """Write the line unless its subject was told less than a minute ago."""
        now_s = self._clock()
        last_s = self._told_s.get(subject or line)
        if last_s is None or now_s - last_s >= PAUSE_S:
            self._told_s[subject or line] = now_s
            self._write(line)
