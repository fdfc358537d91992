"""The Job controller: makes pods, counts how they end, decides when the Job has."""

from pytest_cre.embedded.controllers.jobcensus import JobCensus
from pytest_cre.embedded.controllers.jobstep import JobStep
from pytest_cre.embedded.controllers.jobtally import JobMemory, is_job_finished
from pytest_cre.embedded.events import EventRecorder
from pytest_cre.embedded.jobrules import OWN_CONTROLLER, TRACKING_FINALIZER
from pytest_cre.embedded.kinds import JOB, POD, Kind
from pytest_cre.embedded.owners import OwnerIndex, controller_uid
from pytest_cre.embedded.queue import Mark
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.store import Change, Key, Record

_SETTLE_S = 0.1


class JobController:
    """Runs Jobs of both completion modes by the rules of genuine Kubernetes."""

    name = "job"
    kind: Kind = JOB

    def __init__(
        self,
        registry: Registry,
        owners: OwnerIndex,
        recorder: EventRecorder,
        *,
        backoff_base_s: float,
    ) -> None:
        self._registry = registry
        self._owners = owners
        self._recorder = recorder
        self._census = JobCensus(registry.store, owners)
        self._backoff_base_s = backoff_base_s
        self._memories: dict[str, JobMemory] = {}

    def start(self, mark: Mark) -> None:
        """Follow Jobs and the pods they control."""

        def pod_changed(change: Change) -> None:
            uid = controller_uid(change.record.obj)
            owner = self._owners.owner(uid) if uid else None
            if owner is not None and owner.kind is JOB and not is_job_finished(owner.obj):
                # Pods that end together are counted together, as on genuine clusters: else the
                # first failure would have the others deleted before they can say their part.
                mark(owner.key, after_s=0.0 if change.type == "ADDED" else _SETTLE_S)
            elif TRACKING_FINALIZER in (change.record.obj["metadata"].get("finalizers") or []):
                self._release(change.record)

        def job_changed(change: Change) -> None:
            mark(change.record.key)
            if change.type == "DELETED":
                self._memories.pop(change.record.uid, None)
                for pod in self._owners.dependents(change.record.uid):
                    self._release(pod)

        self._registry.store.subscribe(POD, pod_changed)
        self._registry.store.subscribe(JOB, job_changed)

    def reconcile(self, key: Key) -> float | None:
        """Look at one Job and take the next step."""
        job = self._registry.store.get(JOB, key)
        if job is None or job.obj["spec"].get("managedBy", OWN_CONTROLLER) != OWN_CONTROLLER:
            return None
        if is_job_finished(job.obj):
            for pod in self._owners.controlled(job.uid, POD):
                self._release(pod)
            return None
        memory = self._memories.setdefault(job.uid, JobMemory())
        step = JobStep(
            self._registry,
            self._recorder,
            job,
            memory,
            self._census.of(job),
            backoff_base_s=self._backoff_base_s,
            release=self._release,
        )
        return step.take()

    def _release(self, pod: Record) -> None:
        """Let a pod go that need not be counted any more."""
        current = self._registry.store.get(POD, pod.key)
        if current is None or current.uid != pod.uid:
            return
        if TRACKING_FINALIZER not in (current.obj["metadata"].get("finalizers") or []):
            return
        metadata = dict(current.obj["metadata"])
        metadata["finalizers"] = [f for f in metadata["finalizers"] if f != TRACKING_FINALIZER]
        if not metadata["finalizers"]:
            del metadata["finalizers"]
        self._registry.update(POD, *pod.key, {**current.obj, "metadata": metadata})
