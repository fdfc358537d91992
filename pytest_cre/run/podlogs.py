"""The logs of a group's pods: followed from the start of each container, read to their end."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_cre.cluster.logs import LogFollower, LogSource
from pytest_cre.cluster.pods import container_state
from pytest_cre.evidence.journal import GrowingLog
from pytest_cre.evidence.model import LogStream, PodFacts, Problem

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

_THREADS = 16


class PodLogs:
    """One follower per container instance."""

    def __init__(self, client: "Client", container: str, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._container = container
        self._followers: dict[tuple[str, int], tuple[LogSource, LogFollower]] = {}

    def follow(self, pod: Mapping[str, Any], facts: PodFacts) -> None:
        """Start to follow the pod's container, once it has started; again after a restart."""
        state = container_state(pod, self._container)
        if state.phase not in ("running", "terminated"):
            return
        key = (facts.uid, state.restart_count)
        if key not in self._followers:
            source = LogSource(
                pod=facts.name,
                pod_uid=facts.uid,
                container=self._container,
                node=facts.node,
                completion_index=facts.completion_index,
                attempt=facts.attempt,
                restart_count=state.restart_count,
                role=facts.role,
            )
            self._followers[key] = (source, LogFollower(self._client, source).start())

    @property
    def size_bytes(self) -> int:
        """Return how much has been read so far."""
        return sum(follower.size_bytes for _, follower in self._followers.values())

    def so_far(self, most_bytes: int | None = None) -> tuple[LogStream, ...]:
        """Return what has been read so far, as streams that are not complete.

        With `most_bytes` only the last whole lines that fit into it.
        """
        return sorted_streams(
            replace(_about(source), data=follower.snapshot(most_bytes))
            for source, follower in self._followers.values()
        )

    def growing(self) -> tuple[GrowingLog, ...]:
        """Return every log as it stands and grows, in the order in which they began."""
        return tuple(
            _Growing(_about(source), follower) for source, follower in self._followers.values()
        )

    def finish(self, patience_s: float) -> tuple[tuple[LogStream, ...], tuple[Problem, ...]]:
        """Read every log to its end, together within `patience_s`.

        Returns the streams, and what is missing of them. The logs of workers are taken as they
        are: an SSH server goes on.
        """
        pairs = self._followers.values()
        followers = [follower for source, follower in pairs if source.role != "worker"]
        hosts = [pair for pair in pairs if pair[0].role == "worker"]
        deadline_s = self._clock() + patience_s
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="cre-drain") as pool:
            streams = list(
                pool.map(lambda each: each.finish(max(0.0, deadline_s - self._clock())), followers)
            )
            context = list(pool.map(_as_it_is, hosts))
        return sorted_streams([*streams, *context]), _in_order(followers)

    def secure(self, patience_s: float) -> None:
        """Read all that was written up to now: the containers are being ended, and logs go with pods."""
        deadline_s = self._clock() + patience_s
        followers = [follower for _, follower in self._followers.values()]
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="cre-secure") as pool:
            list(
                pool.map(lambda each: each.secure(max(0.0, deadline_s - self._clock())), followers)
            )

    def cut(self, patience_s: float) -> tuple[tuple[LogStream, ...], tuple[Problem, ...]]:
        """Read every log up to now, as `finish` does, though its container may go on."""
        followers = [follower for _, follower in self._followers.values()]
        deadline_s = self._clock() + patience_s
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="cre-cut") as pool:
            streams = list(
                pool.map(lambda each: each.cut(max(0.0, deadline_s - self._clock())), followers)
            )
        return sorted_streams(streams), _in_order(followers)

    def abandon(self) -> tuple[LogStream, ...]:
        """Return what was read, without asking for more, and stop."""
        streams = self.so_far()
        for _, follower in self._followers.values():
            follower.close()
        return streams


@dataclass(frozen=True, slots=True)
class _Growing:
    stream: LogStream
    follower: LogFollower

    @property
    def whole_bytes(self) -> int:
        return self.follower.whole_bytes

    def read(self, start: int, end: int) -> bytes:
        return self.follower.read(start, end)


def _as_it_is(pair: tuple[LogSource, LogFollower]) -> LogStream:
    source, follower = pair
    stream = replace(_about(source), data=follower.snapshot())
    follower.close()
    return stream


def _about(source: LogSource) -> LogStream:
    return LogStream(
        pod=source.pod,
        data=b"",
        container=source.container,
        node=source.node,
        completion_index=source.completion_index,
        attempt=source.attempt,
        restart_count=source.restart_count,
        role=source.role,
    )


@dataclass(frozen=True, slots=True)
class ReadLog:
    """A log that has been read, as one that grows no more."""

    stream: LogStream

    @property
    def whole_bytes(self) -> int:
        """Return the size of its whole lines."""
        return self.stream.data.rfind(b"\n") + 1

    def read(self, start: int, end: int) -> bytes:
        """Return these bytes."""
        return self.stream.data[start:end]


def _in_order(followers: Iterable[LogFollower]) -> tuple[Problem, ...]:
    problems = [each.problem for each in followers if each.problem is not None]
    return tuple(sorted(problems, key=lambda each: (each.pod or "", each.code)))


def sorted_streams(streams: Iterable[LogStream]) -> tuple[LogStream, ...]:
    """Return the streams by completion index, then by pod and instance; those of workers last."""

    def order(each: LogStream) -> tuple[bool, float, int, str, int]:
        index = float("inf") if each.completion_index is None else each.completion_index
        return (each.is_context, index, each.attempt, each.pod, each.restart_count)

    return tuple(sorted(streams, key=order))
