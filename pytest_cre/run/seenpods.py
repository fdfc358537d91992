"""Every pod that a Job ever had, as last seen: pods vanish, what they said must not."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pytest_cre.cluster.objects import metadata_of
from pytest_cre.cluster.pods import (
    completion_index,
    container_state,
    pod_facts,
    pod_problem,
)
from pytest_cre.evidence.model import PodFacts, Problem
from pytest_cre.run.clocks import scheduled_ns

Pod = Mapping[str, Any]
_ENDED = ("Succeeded", "Failed")


class SeenPods:
    """The pods of one Job by UID. A pod's attempt is its ordinal among those of its index."""

    def __init__(self, container: str) -> None:
        self._container = container
        self._raw: dict[str, Pod] = {}
        self._facts: dict[str, PodFacts] = {}
        self._gone: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._pods_of_index: dict[int | None, int] = {}
        self.scheduled_ns: dict[str, int] = {}

    def update(self, pods: Iterable[Pod], gone: Collection[str]) -> None:
        """Take in what the cluster shows now; `gone` are UIDs of pods that it does not show."""
        for pod in sorted(pods, key=_age):
            uid = str(metadata_of(pod).get("uid"))
            if uid not in self._attempts:
                index = completion_index(pod)
                self._attempts[uid] = self._pods_of_index.get(index, 0)
                self._pods_of_index[index] = self._attempts[uid] + 1
            time_ns = scheduled_ns(pod)
            if time_ns is not None:
                self.scheduled_ns.setdefault(uid, time_ns)
            previous = self._facts.get(uid)
            if previous is not None and previous.phase in _ENDED:
                continue  # the first end counts: a kubelet that restarts may tell another one
            self._raw[uid] = pod
            self._facts[uid] = pod_facts(
                pod, main_container=self._container, attempt=self._attempts[uid]
            )
        self._gone |= set(gone) & self._raw.keys()

    def __iter__(self) -> Iterator[tuple[Pod, PodFacts]]:
        """Yield each pod that is still there, with its facts."""
        for uid, pod in self._raw.items():
            if uid not in self._gone:
                yield pod, self._facts[uid]

    @property
    def facts(self) -> tuple[PodFacts, ...]:
        """Return every pod ever seen, by completion index, attempt and name."""
        return tuple(sorted(self._facts.values(), key=_order))

    @property
    def uids(self) -> frozenset[str]:
        """Return the UIDs of every pod ever seen."""
        return frozenset(self._facts)

    @property
    def scheduled(self) -> int:
        """Return how many of the Job's indexes ever had a pod on a node."""
        return sum(pod.node is not None for pod in self._first())

    @property
    def started(self) -> int:
        """Return how many of the Job's indexes ever had a container that ran."""
        return sum(
            pod.started_ns is not None or pod.phase in ("Running", *_ENDED) for pod in self._first()
        )

    @property
    def running(self) -> int:
        """Return how many containers run now."""
        states = (container_state(pod, self._container) for pod, _ in self)
        return sum(state.phase == "running" for state in states)

    @property
    def have_ended(self) -> bool:
        """Return whether no pod runs any more."""
        return all(facts.phase in _ENDED for _, facts in self)

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong with pods, in the order of their indexes.

        A pod that vanished before it ended was deleted, whatever its last state said.
        """
        found = []
        for uid, facts in sorted(self._facts.items(), key=lambda each: _order(each[1])):
            problem = pod_problem(self._raw[uid], main_container=self._container)
            if uid in self._gone and facts.phase not in _ENDED:
                problem = problem if problem and problem.code in _EXPLAIN_LOSS else _deleted(facts)
            if problem is not None:
                found.append(problem)
        return tuple(found)

    def _first(self) -> list[PodFacts]:
        return [pod for pod in self._facts.values() if pod.attempt == 0]


_EXPLAIN_LOSS = frozenset({"pod-evicted", "node-unreachable"})


def _deleted(pod: PodFacts) -> Problem:
    where = f"pod {pod.name}" + (f" on node {pod.node}" if pod.node else "")
    message = f"{where} was deleted before it ended"
    return Problem(code="pod-deleted", message=message, node=pod.node, pod=pod.name)


def _order(pod: PodFacts) -> tuple[float, int, str]:
    index = float("inf") if pod.completion_index is None else pod.completion_index
    return (index, pod.attempt, pod.name)


def _age(pod: Pod) -> tuple[str, str]:
    metadata = metadata_of(pod)
    return str(metadata.get("creationTimestamp") or ""), str(metadata.get("name") or "")
