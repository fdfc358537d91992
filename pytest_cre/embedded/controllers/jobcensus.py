"""The pods of all Jobs, kept sorted as they change: a large Job is never gone through as a whole."""

from collections.abc import Callable

from pytest_cre.embedded.controllers.jobpods import index_of
from pytest_cre.embedded.jobrules import TRACKING_FINALIZER
from pytest_cre.embedded.kinds import JOB, POD, Json
from pytest_cre.embedded.owners import OwnerIndex, controller_uid
from pytest_cre.embedded.podstate import is_pod_finished, pod_condition
from pytest_cre.embedded.store import Change, Key, Record, Store


class JobPods:
    """The pods of one Job, by what they mean to it; each is in the newest state."""

    def __init__(self, *, replaces_failed_only: bool) -> None:
        # Where only failed pods are replaced, one that is being deleted has not failed yet.
        self._replaces_failed_only = replaces_failed_only
        self.active: dict[Key, Record] = {}
        self.terminating: dict[Key, Record] = {}
        # Ended or lost for good, and not yet counted in the Job's status.
        self.new_succeeded: dict[Key, Record] = {}
        self.new_failed: dict[Key, Record] = {}
        self._ready: set[Key] = set()
        self._active_by_index: dict[int | None, set[Key]] = {}

    @property
    def ready_count(self) -> int:
        """How many active pods are ready."""
        return len(self._ready)

    def active_at(self, index: int | None) -> list[Record]:
        """Give the active pods of one completion index."""
        keys = sorted(self._active_by_index.get(index, ()))
        return [self.active[key] for key in keys]

    def active_indexes(self) -> set[int | None]:
        """Give the completion indexes that have an active pod."""
        return set(self._active_by_index)

    def terminating_indexes(self) -> set[int | None]:
        """Give the completion indexes that have a pod which is being deleted."""
        return {index_of(pod) for pod in self.terminating.values()}

    def enter(self, pod: Record) -> None:
        """Sort in a pod that is not there."""
        key = pod.key
        metadata: Json = pod.obj["metadata"]
        is_deleting = bool(metadata.get("deletionTimestamp"))
        if not is_pod_finished(pod.obj):
            if is_deleting:
                self.terminating[key] = pod
            else:
                self.active[key] = pod
                self._active_by_index.setdefault(index_of(pod), set()).add(key)
                if (pod_condition(pod.obj, "Ready") or {}).get("status") == "True":
                    self._ready.add(key)
        if TRACKING_FINALIZER not in (metadata.get("finalizers") or []):
            return
        phase = pod.obj.get("status", {}).get("phase")
        is_lost = is_deleting and metadata.get("deletionGracePeriodSeconds") == 0
        if phase == "Succeeded":
            self.new_succeeded[key] = pod
        elif phase == "Failed" or (is_deleting and (is_lost or not self._replaces_failed_only)):
            self.new_failed[key] = pod

    def leave(self, key: Key) -> None:
        """Take out a pod."""
        pod = self.active.pop(key, None)
        if pod is not None:
            index = index_of(pod)
            self._active_by_index[index].discard(key)
            if not self._active_by_index[index]:
                del self._active_by_index[index]
        for pods in (self.terminating, self.new_succeeded, self.new_failed):
            pods.pop(key, None)
        self._ready.discard(key)


class JobCensus:
    """Follows all pods that Jobs control."""

    def __init__(self, store: Store, owners: OwnerIndex) -> None:
        self._owners = owners
        self._pods: dict[str, JobPods] = {}
        store.subscribe(JOB, self._job_changed)
        store.subscribe(POD, self._pod_changed)

    def of(self, job: Record) -> JobPods:
        """Give the pods of a Job."""
        pods = self._pods.get(job.uid)
        if pods is None:
            policy = job.obj["spec"]["podReplacementPolicy"]
            pods = self._pods[job.uid] = JobPods(replaces_failed_only=policy == "Failed")
            for pod in self._owners.controlled(job.uid, POD):
                pods.enter(pod)
        return pods

    def _job_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            self._pods.pop(change.record.uid, None)

    def _pod_changed(self, change: Change) -> None:
        if change.previous is not None:
            self._with(change.previous, lambda pods: pods.leave(change.record.key))
        if change.type != "DELETED":
            self._with(change.record, lambda pods: pods.enter(change.record))

    def _with(self, pod: Record, act: Callable[[JobPods], None]) -> None:
        pods = self._pods.get(controller_uid(pod.obj) or "")
        if pods is not None:
            act(pods)
