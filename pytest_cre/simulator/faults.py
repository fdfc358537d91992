"""Planted faults: which node, pod or container, from when on, what, and how often."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

Action = Literal[
    "config-error",
    "cordon",
    "crash",
    "delete-pod",
    "evict",
    "evict-unmarked",
    "fail-and-delete",
    "failed-test",
    "flip",
    "hang",
    "image-pull-back-off",
    "log-burst",
    "log-endless",
    "log-eof",
    "log-garbage",
    "log-line",
    "log-lose",
    "log-refuse",
    "log-reset",
    "log-rotate",
    "log-size",
    "log-stuck",
    "log-tail",
    "lose-gpu",
    "lost-gpu",
    "no-dcgm",
    "node-condition",
    "preempt",
    "reboot",
    "refuse-admission",
    "replace-node",
    "restart",
    "slow-gpu",
    "slow-link",
    "socket-fallback",
    "stop-heartbeat",
    "straggler",
    "stuck-terminating",
    "wrong-values",
]
Link = Literal["both", "network", "nvlink"]

ON_NODES: Mapping[str, frozenset[str]] = {
    "cordon": frozenset(),
    "lose-gpu": frozenset({"count"}),
    "node-condition": frozenset({"condition", "reason", "message"}),
    "reboot": frozenset(),
    "replace-node": frozenset(),
    "stop-heartbeat": frozenset({"seconds"}),
}
"""Events that befall the container's whole node, with the parameters each takes."""

ON_LOGS: Mapping[str, frozenset[str]] = {
    "log-burst": frozenset({"lines", "message"}),
    "log-garbage": frozenset(),
    "log-line": frozenset({"bytes"}),
    "log-lose": frozenset(),
    "log-rotate": frozenset(),
    "log-stuck": frozenset(),
}
"""Events in the container's log, with the parameters each takes."""

EVENTS: Mapping[str, frozenset[str]] = {
    **ON_NODES,
    **ON_LOGS,
    "crash": frozenset({"exitCode", "reason", "message"}),
    "delete-pod": frozenset(),
    "evict": frozenset({"message"}),
    "evict-unmarked": frozenset({"message"}),
    "fail-and-delete": frozenset({"exitCode", "message"}),
    "hang": frozenset(),
    "preempt": frozenset({"message"}),
    "restart": frozenset({"exitCode"}),
}
"""Actions that happen once in a container's life, with the parameters each takes."""

CONDITIONS: Mapping[str, frozenset[str]] = {
    "config-error": frozenset({"message"}),
    "failed-test": frozenset({"test", "gpu", "message"}),
    "flip": frozenset({"seconds"}),
    "image-pull-back-off": frozenset({"message"}),
    "log-endless": frozenset(),
    "log-eof": frozenset({"reads"}),
    "log-refuse": frozenset({"code", "reads"}),
    "log-reset": frozenset({"reads"}),
    "log-size": frozenset({"bytes"}),
    "log-tail": frozenset({"message"}),
    "lost-gpu": frozenset({"gpu"}),
    "no-dcgm": frozenset(),
    "refuse-admission": frozenset({"reason", "message"}),
    "slow-gpu": frozenset({"factor", "gpu"}),
    "slow-link": frozenset({"factor", "link"}),
    "socket-fallback": frozenset(),
    "straggler": frozenset({"factor"}),
    "stuck-terminating": frozenset({"seconds"}),
    "wrong-values": frozenset({"count"}),
}
"""Actions that hold for a container from a moment on, with the parameters each takes."""

NEEDED: Mapping[str, frozenset[str]] = {
    "log-line": frozenset({"bytes"}),
    "log-refuse": frozenset({"code"}),
    "log-size": frozenset({"bytes"}),
    "lost-gpu": frozenset({"gpu"}),
    "node-condition": frozenset({"condition"}),
    "slow-gpu": frozenset({"factor"}),
    "slow-link": frozenset({"factor"}),
    "straggler": frozenset({"factor"}),
}
"""Parameters that cannot be left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A container as faults, recordings and processes see it."""

    node: str
    namespace: str
    pod: str
    pod_uid: str
    container: str
    labels: Mapping[str, str]
    index: int | None = None  # completion index of an Indexed Job
    command: str = ""  # command and arguments with blanks between

    @property
    def entry(self) -> str:
        """Return the catalog entry, `domain/variant`, or nothing."""
        return self.labels.get("cre.pytest.org/entry", "").replace(".", "/", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Shell patterns that a subject must meet, all of those given."""

    node: str | None = None
    pod: str | None = None
    namespace: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    entry: str | None = None
    container: str | None = None
    command: str | None = None
    index: int | None = None

    def matches(self, subject: Subject) -> bool:
        """Return whether the subject meets every pattern."""
        pairs = [
            (self.node, subject.node),
            (self.pod, subject.pod),
            (self.namespace, subject.namespace),
            (self.entry, subject.entry),
            (self.container, subject.container),
            (self.command, subject.command),
            *((pattern, subject.labels.get(key, "")) for key, pattern in self.labels.items()),
        ]
        if self.index is not None and self.index != subject.index:
            return False
        return all(pattern is None or fnmatchcase(text, pattern) for pattern, text in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """When a fault begins; without any of these, with the container."""

    step: int | None = None
    size_bytes: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One stanza. `times`: how many containers it hits, None for each that matches."""

    action: Action
    match: Match
    after: After = After()
    times: int | None = None
    factor: float = 1.0
    link: Link = "both"
    to: Match | None = None  # the other end of a slow way between nodes
    exit_code: int = 1
    reason: str = ""
    message: str = ""
    count: int = 1
    seconds: float | None = None
    gpu: int | None = None  # None: every one
    test: str | None = None  # of diagnostics; None: every one
    condition: str = ""  # of the node
    lines: int = 500
    size_bytes: int = 0
    reads: int | None = None  # of the log, the first so many; None: each
    code: int = 500


class FaultBook:
    """The faults of a scenario and what they have hit so far."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = tuple(faults)
        self._hit: list[set[str]] = [set() for _ in self._faults]
        self._happened: set[tuple[int, str]] = set()
        self.hits: list[tuple[Action, Subject]] = []  # each fault and container once

    def holding(
        self, action: Action, subject: Subject, *, elapsed_s: float = 0.0, size_bytes: int = 0
    ) -> Iterator[Fault]:
        """Yield the conditions of one kind that hold for the subject now."""
        for index, fault in enumerate(self._faults):
            after = fault.after
            has_begun = elapsed_s >= (after.seconds or 0.0) and size_bytes >= (
                after.size_bytes or 0
            )
            is_asked = fault.action == action and fault.to is None
            if is_asked and has_begun and self._claim(index, subject):
                yield fault

    def way_factors(self, subjects: Sequence[Subject]) -> list[float]:
        """Return what slow ways between some of the subjects leave of the network of each."""
        factors = [1.0] * len(subjects)
        for fault in self._faults:
            if fault.to is None:
                continue
            ends = [
                {index for index, each in enumerate(subjects) if end.matches(each)}
                for end in (fault.match, fault.to)
            ]
            if all(ends) and len(ends[0] | ends[1]) > 1:
                for index in ends[0] | ends[1]:
                    factors[index] *= fault.factor
        return factors

    def due(
        self, subject: Subject, *, step: int | None = None, size_bytes: int | None = None
    ) -> Iterator[Fault]:
        """Yield the events that happen to the subject on reaching a step or size, each once."""
        for index, fault in enumerate(self._faults):
            after = fault.after
            is_reached = (after.step is not None and step is not None and step >= after.step) or (
                after.size_bytes is not None
                and size_bytes is not None
                and size_bytes >= after.size_bytes
            )
            if fault.action in EVENTS and is_reached and self._happen(index, subject):
                yield fault

    def timed(self, subject: Subject) -> list[tuple[float, int]]:
        """Return delay and number of the events that time brings about, soonest first."""
        return sorted(
            (fault.after.seconds or 0.0, index)
            for index, fault in enumerate(self._faults)
            if fault.action in EVENTS
            and fault.after.step is None
            and fault.after.size_bytes is None
            and fault.match.matches(subject)
        )

    def happen(self, index: int, subject: Subject) -> Fault | None:
        """Return the timed event to carry out now, None when it has been used up."""
        return self._faults[index] if self._happen(index, subject) else None

    def _happen(self, index: int, subject: Subject) -> bool:
        key = (index, subject.pod_uid)
        if key in self._happened or not self._claim(index, subject):
            return False
        self._happened.add(key)
        return True

    def _claim(self, index: int, subject: Subject) -> bool:
        """Return whether the fault hits the subject's pod, counting each pod once."""
        fault, hit = self._faults[index], self._hit[index]
        if subject.pod_uid in hit:
            return True
        if not fault.match.matches(subject):
            return False
        if fault.times is not None and len(hit) >= fault.times:
            return False
        hit.add(subject.pod_uid)
        self.hits.append((fault.action, subject))
        return True
