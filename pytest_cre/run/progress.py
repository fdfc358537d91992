"""What a running workflow tells whoever watches: small frozen facts, no text."""

from dataclasses import dataclass
from typing import Literal

Phase = Literal[
    "waiting",
    "creating",
    "queued",
    "starting",
    "running",
    "draining",
    "restarting",
    "cleaning",
    "done",
]
"""waiting: another group or campaign holds the nodes. queued: a pod is not scheduled. starting: all
are scheduled, not all run. draining: ended, logs are read to their end. restarting: ended early, and is created again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProgress:
    """One group entered a phase, or says again that it is still in it."""

    entry: str
    scale: str
    group: str
    attempt: int
    nodes: tuple[str, ...]
    phase: Phase
    pods_running: int = 0
    remaining_s: float | None = None  # until the deadline of this phase
    detail: str = ""  # the scheduler's words, a waiting reason, who holds the lease
    log_bytes: int = 0
