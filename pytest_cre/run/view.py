"""What the watches show of a workflow's objects, shared by its groups. Never a verdict by itself."""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from pytest_cre.cluster.client import ApiProblem
from pytest_cre.cluster.objects import EVENT, NODE, POD, ResourceKind, metadata_of
from pytest_cre.cluster.watch import Watcher
from pytest_cre.errors import ClusterProblem

if TYPE_CHECKING:
    from types import TracebackType

    from pytest_cre.cluster.client import Client

Object = Mapping[str, Any]


class ClusterView:
    """Pods and Jobs of a run, nodes and events, kept current by watches."""

    def __init__(self, client: "Client", workload: ResourceKind, label_selector: str) -> None:
        self._patience_s = client.retry.refusal_budget_s
        self._changed = threading.Condition()
        self._generation = 0
        self._pods = Watcher(client, POD, label_selector=label_selector, on_change=self._notice)
        self._jobs = Watcher(
            client, workload, label_selector=label_selector, on_change=self._notice
        )
        self._nodes = Watcher(client, NODE, on_change=self._notice)
        # Events expire after an hour and are merged, so they are collected as they come.
        self._events = Watcher(client, EVENT)
        self._watchers = (self._pods, self._jobs, self._nodes, self._events)

    def __enter__(self) -> Self:
        for watcher in self._watchers:
            watcher.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        for watcher in self._watchers:
            watcher.stop()

    def pods(self, label: str, value: str) -> tuple[Object, ...]:
        """Return the pods with this label, those already gone too, as last seen."""
        return tuple(
            pod
            for pod in (*self._pods.snapshot(), *self._pods.deleted())
            if (metadata_of(pod).get("labels") or {}).get(label) == value
        )

    def gone(self) -> frozenset[str]:
        """Return the UIDs of pods that were there and are not any more."""
        return frozenset(str(metadata_of(pod).get("uid")) for pod in self._pods.deleted())

    def job_version(self, name: str) -> str:
        """Return something that changes whenever the Job does."""
        for job in self._jobs.snapshot():
            if metadata_of(job).get("name") == name:
                return str(metadata_of(job).get("resourceVersion"))
        return ""

    def nodes(self) -> Mapping[str, Object]:
        """Return the cluster's nodes by name; empty until they have been listed."""
        if not self._nodes.is_synced:
            return {}
        return {str(metadata_of(node).get("name")): node for node in self._nodes.snapshot()}

    def events(self) -> tuple[Object, ...]:
        """Return the namespace's events since the watch began, expired ones too."""
        return (*self._events.snapshot(), *self._events.deleted())

    @property
    def problem(self) -> ClusterProblem | None:
        """Return why pods, Jobs or nodes cannot be watched, where that will not pass by itself.

        A token that is rotated and an extension that is restarted are given the time they take.
        """
        for watcher in (self._pods, self._jobs, self._nodes):
            problem = watcher.problem
            if not isinstance(problem, ApiProblem) or problem.status >= 429:
                continue
            if problem.status not in (401, 404) or watcher.refused_for_s >= self._patience_s:
                return problem
        return None

    @property
    def generation(self) -> int:
        """Return a number that grows with every change."""
        return self._generation

    def wait(self, timeout_s: float, seen: int) -> None:
        """Wait until something changed after generation `seen`, at most this long."""
        with self._changed:
            self._changed.wait_for(lambda: self._generation != seen, timeout_s)

    def _notice(self) -> None:
        with self._changed:
            self._generation += 1
            self._changed.notify_all()
