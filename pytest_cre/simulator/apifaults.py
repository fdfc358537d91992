"""Planted faults of an API server: which requests, from when on, what, and how often.

A genuine API server cannot be made to misbehave from outside, so only the embedded one plays them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

ApiAction = Literal[
    "answer",
    "black-hole",
    "close",
    "delay",
    "duplicate-events",
    "error-event",
    "forget-history",
    "garbage-line",
    "lose-answer",
    "no-bookmarks",
    "null-lists",
    "recreate",
    "refuse",
    "reset",
    "slow-drip",
    "unknown-fields",
    "unknown-values",
]

API_ACTIONS: Mapping[ApiAction, frozenset[str]] = {
    "answer": frozenset({"code", "retryAfter", "message"}),
    "black-hole": frozenset({"seconds", "lines"}),
    "close": frozenset({"lines"}),
    "delay": frozenset({"seconds"}),
    "duplicate-events": frozenset(),
    "error-event": frozenset({"code", "lines"}),
    "forget-history": frozenset({"lines"}),
    "garbage-line": frozenset({"lines"}),
    "lose-answer": frozenset(),
    "no-bookmarks": frozenset(),
    "null-lists": frozenset(),
    "recreate": frozenset({"object"}),
    "refuse": frozenset({"seconds"}),
    "reset": frozenset({"lines"}),
    "slow-drip": frozenset({"bytesPerSecond"}),
    "unknown-fields": frozenset(),
    "unknown-values": frozenset(),
}
"""Actions with the parameters that each takes."""

API_NEEDED: Mapping[ApiAction, frozenset[str]] = {
    "answer": frozenset({"code"}),
    "delay": frozenset({"seconds"}),
    "forget-history": frozenset({"lines"}),
    "recreate": frozenset({"object"}),
    "refuse": frozenset({"seconds"}),
    "slow-drip": frozenset({"bytesPerSecond"}),
}
"""Parameters that cannot be left out."""

ON_WATCHES = frozenset(
    {"duplicate-events", "error-event", "forget-history", "garbage-line", "no-bookmarks"}
)
"""Actions that only a watch can suffer."""

SIMULATOR_AGENT = "pytest-cre-simulator"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSubject:
    """A request as faults see it. `resource` is such as `pods` or `pods/log`, else the path."""

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    client: str = ""  # what it calls itself


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiMatch:
    """Shell patterns that a request must meet, all of those given."""

    verb: str | None = None
    resource: str | None = None
    namespace: str | None = None
    name: str | None = None
    client: str | None = None  # None: everybody but the simulated nodes

    def matches(self, subject: ApiSubject) -> bool:
        """Return whether the request meets every pattern."""
        if self.client is None and subject.client.startswith(SIMULATOR_AGENT):
            return False
        pairs = (
            (self.verb, subject.verb),
            (self.resource, subject.resource),
            (self.namespace, subject.namespace),
            (self.name, subject.name),
            (self.client, subject.client),
        )
        return all(pattern is None or fnmatchcase(text, pattern) for pattern, text in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiFault:
    """One stanza. `times`: how many requests it hits, None for each that matches."""

    action: ApiAction
    match: ApiMatch
    after_requests: int = 0  # matching ones that are spared first
    after_s: float = 0.0  # since the first matching one
    times: int | None = None
    every: int = 1  # only each nth of the matching requests
    lasting_s: float | None = None  # since its first hit
    code: int | None = None
    retry_after: int | None = None
    message: str = ""
    seconds: float | None = None
    lines: int = 0  # of a stream, that come through first
    bytes_per_second: int = 0
    object: str = ""
