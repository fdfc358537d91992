"""The logs of a group's pods: followed from the start of each container, read to their end."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pytest_cre.cluster.logs import LogFollower, LogSource
from pytest_cre.cluster.pods import container_state
from pytest_cre.evidence.model import LogStream, PodFacts, Problem

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

_THREADS = 16


class PodLogs:
    """One follower per container instance."""

    def __init__(self, client: "Client", container: str) -> None:
        self._client = client
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
            )
            self._followers[key] = (source, LogFollower(self._client, source).start())

    @property
    def size_bytes(self) -> int:
        """Return how much has been read so far."""
        return sum(follower.size_bytes for _, follower in self._followers.values())

    def so_far(self) -> tuple[LogStream, ...]:
        """Return what has been read so far, as streams that are not complete."""
        return _sorted(_stream(source, follower) for source, follower in self._followers.values())

    def finish(self, deadline_s: float) -> tuple[tuple[LogStream, ...], tuple[Problem, ...]]:
        """Read every log to its end and stop; return the streams and what is missing of them.

        `deadline_s` is on the clock of the followers (monotonic).
        """
        followers = [follower for _, follower in self._followers.values()]
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="cre-drain") as pool:
            streams = list(pool.map(lambda each: each.finish(deadline_s), followers))
        problems = tuple(each.problem for each in followers if each.problem is not None)
        return _sorted(streams), tuple(sorted(problems, key=lambda each: (each.pod or "", each.code)))

    def abandon(self) -> tuple[LogStream, ...]:
        """Stop at once and return what was read."""
        for _, follower in self._followers.values():
            follower.stop()
        return self.so_far()
