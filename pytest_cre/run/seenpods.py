"""Every pod that a Job ever had, as last seen: pods vanish, what they said must not."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_cre.cluster.objects import metadata_of
from pytest_cre.cluster.pods import container_state, pod_facts, pod_problem
from pytest_cre.cluster.workloads.protocol import PodPlace, Workload
from pytest_cre.evidence.model import PodFacts, Problem
from pytest_cre.run.clocks import scheduled_ns

Pod = Mapping[str, Any]
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A pod as last seen; facts and problem stay those of its first end.

    `flip` is what the cluster told of a pod that had succeeded before.
    """

    version: tuple[object, bool]
    facts: PodFacts
    problem: Problem | None
    is_running: bool
    is_gone: bool
    flip: Problem | None = None


class SeenPods:
    """The pods of one workload by UID.

    A pod's attempt is its ordinal among those of its place, counted from `first_attempt`. The order
    in which deletions and failures are seen tells cause from consequence: a Job deletes its other
    pods only after one has failed, and one watch shows both in their true order.
    """

    def __init__(self, workload: Workload, *, first_attempt: int = 0) -> None:
        self._workload = workload
        self._first_attempt = first_attempt
        self._container = workload.main_container
        self._seen: dict[str, _Seen] = {}
        self._pods_at: dict[PodPlace, int] = {}
        self._look = 0
        self._deleted_at: dict[str, int] = {}  # by UID: the look that first showed it
        self._failed_at: dict[str, int] = {}  # only failures of a pod's own
        self.scheduled_ns: dict[str, int] = {}

    def update(self, pods: Iterable[Pod], gone: Collection[str]) -> list[tuple[Pod, PodFacts]]:
        """Take in what the cluster shows now; return the pods that are new or have changed.

        `gone` are UIDs of pods that it does not show any more.
        """
        self._look += 1
        changed = []
        for pod in sorted(pods, key=_age):
            uid = str(metadata_of(pod).get("uid"))
            version = (metadata_of(pod).get("resourceVersion"), uid in gone)
            previous = self._seen.get(uid)
            if previous is not None and previous.version == version:
                continue
            seen = self._take(uid, pod, version, previous)
            changed.append((pod, seen.facts))
        return changed

    def _take(
        self, uid: str, pod: Pod, version: tuple[object, bool], previous: _Seen | None
    ) -> _Seen:
        is_gone = version[1]
        if metadata_of(pod).get("deletionTimestamp") or is_gone:
            self._deleted_at.setdefault(uid, self._look)
        time_ns = scheduled_ns(pod)
        if time_ns is not None:
            self.scheduled_ns.setdefault(uid, time_ns)
        if previous is not None and previous.facts.phase in _ENDED:
            # The first end counts: a kubelet that restarts may tell another one.
            flip = previous.flip or self._flip(pod, previous.facts)
            seen = replace(previous, version=version, is_gone=is_gone, is_running=False, flip=flip)
        else:
            place = self._workload.place_of(pod)
            attempt = self._next_at(place) if previous is None else previous.facts.attempt
            facts = pod_facts(pod, main_container=self._container, attempt=attempt)
            phase = container_state(pod, self._container).phase
            seen = _Seen(
                version=version,
                facts=replace(facts, role=place.role, completion_index=place.index),
                problem=pod_problem(pod, main_container=self._container),
                is_running=phase == "running" and not is_gone,
                is_gone=is_gone,
            )
        self._seen[uid] = seen
        if uid not in self._failed_at and self._is_own_failure(uid):
            self._failed_at[uid] = self._look
        return seen

    def _flip(self, pod: Pod, facts: PodFacts) -> Problem | None:
        told = pod_problem(pod, main_container=self._container)
        if facts.phase != "Succeeded" or told is None or told.code not in _EXPLAIN_LOSS:
            return None
        return replace(told, message=f"it had succeeded, and then: {told.message}")

    def _next_at(self, place: PodPlace) -> int:
        attempt = self._pods_at.get(place, self._first_attempt)
        self._pods_at[place] = attempt + 1
        return attempt

    @property
    def facts(self) -> tuple[PodFacts, ...]:
        """Return every pod ever seen, by index, attempt and name; workers last."""
        return tuple(sorted((seen.facts for seen in self._seen.values()), key=order))

    @property
    def uids(self) -> frozenset[str]:
        """Return the UIDs of every pod ever seen."""
        return frozenset(self._seen)

    @property
    def scheduled(self) -> int:
        """Return how many of the workload's places ever had a pod on a node."""
        return sum(pod.node is not None for pod in self._first())

    @property
    def started(self) -> int:
        """Return how many of the workload's places ever had a container that ran."""
        return sum(
            pod.started_ns is not None or pod.phase in ("Running", *_ENDED) for pod in self._first()
        )

    @property
    def running(self) -> int:
        """Return how many containers run now."""
        return sum(seen.is_running for seen in self._seen.values())

    @property
    def have_ended(self) -> bool:
        """Return whether no pod runs any more that comes to an end by itself."""
        return all(
            seen.is_gone or seen.facts.phase in _ENDED or seen.facts.role == "worker"
            for seen in self._seen.values()
        )

    @property
    def have_failed(self) -> bool:
        """Return whether a pod has failed by itself."""
        return bool(self._failed_at)

    @property
    def are_gone(self) -> bool:
        """Return whether the cluster shows none of the pods any more."""
        return all(seen.is_gone for seen in self._seen.values())

    @property
    def flips(self) -> tuple[Problem, ...]:
        """Return what was told of pods that had succeeded before, in the order of their indexes."""
        seen = sorted(self._seen.values(), key=lambda each: order(each.facts))
        return tuple(each.flip for each in seen if each.flip is not None)

    @property
    def killed(self) -> frozenset[str]:
        """Return the names of pods that were deleted before they ended by themselves."""
        return frozenset(
            self._seen[uid].facts.name for uid in self._deleted_at if self._is_killed(uid)
        )

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong with pods, in the order of their indexes.

        Pods that were deleted after another had failed are left out: that is the Job's doing.
        """
        first_failure = min(self._failed_at.values(), default=self._look + 1)
        found = []
        for uid, seen in sorted(self._seen.items(), key=lambda each: order(each[1].facts)):
            problem = seen.problem
            if self._is_killed(uid) and not (problem and problem.code in _EXPLAIN_LOSS):
                is_cause = self._deleted_at[uid] < first_failure
                problem = _deleted(seen.facts) if is_cause else None
            if problem is not None:
                found.append(problem)
        return tuple(found)

    def _is_killed(self, uid: str) -> bool:
        is_deleted = uid in self._deleted_at and uid not in self._failed_at
        return is_deleted and self._seen[uid].facts.phase != "Succeeded"

    def _is_own_failure(self, uid: str) -> bool:
        facts, problem = self._seen[uid].facts, self._seen[uid].problem
        if facts.phase != "Failed" and not facts.exit_code:
            return False
        if problem is not None and problem.code in _EXPLAIN_LOSS:
            return False
        deleted_at = self._deleted_at.get(uid, self._look + 1)
        # Seen together, an exit code that no signal gives says that it failed first.
        return deleted_at > self._look or (
            deleted_at == self._look and facts.exit_code not in (None, *_SIGNALLED)
        )

    def _first(self) -> list[PodFacts]:
        pods = (seen.facts for seen in self._seen.values())
        return [pod for pod in pods if pod.attempt == self._first_attempt]


_SIGNALLED = (137, 143)  # SIGKILL, SIGTERM
_EXPLAIN_LOSS = frozenset({"pod-evicted", "node-unreachable"})


def _deleted(pod: PodFacts) -> Problem:
    where = f"pod {pod.name}" + (f" on node {pod.node}" if pod.node else "")
    message = f"{where} was deleted before it ended"
    return Problem(code="pod-deleted", message=message, node=pod.node, pod=pod.name)


def order(pod: PodFacts) -> tuple[bool, float, int, str]:
    """Return what sorts pods: by index, attempt and name; workers last."""
    index = float("inf") if pod.completion_index is None else pod.completion_index
    return (pod.role == "worker", index, pod.attempt, pod.name)


def _age(pod: Pod) -> tuple[str, str]:
    metadata = metadata_of(pod)
    return str(metadata.get("creationTimestamp") or ""), str(metadata.get("name") or "")
