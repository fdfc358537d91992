"""One look at one Job: count the pods that ended, decide, make or remove pods, write the status."""

import copy
from collections.abc import Callable
from datetime import datetime, timedelta

from pytest_cre.embedded.controllers.jobcensus import JobPods
from pytest_cre.embedded.controllers.jobpods import index_of, new_pod
from pytest_cre.embedded.controllers.jobtally import (
    Backoff,
    JobMemory,
    JobTally,
    has_condition,
)
from pytest_cre.embedded.deletion import DeleteOptions
from pytest_cre.embedded.events import EventRecorder
from pytest_cre.embedded.kinds import JOB, POD, Json
from pytest_cre.embedded.podstate import pod_condition
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.store import Record

_LONGEST_BACKOFF_S = 600.0
# A large Job is brought up in steps, so that it does not keep everybody else waiting; the first
# pods of a step make the Job be looked at again.
_PODS_AT_ONCE = 100


class JobStep:
    """The work of one look; used once."""

    def __init__(
        self,
        registry: Registry,
        recorder: EventRecorder,
        job: Record,
        memory: JobMemory,
        pods: JobPods,
        *,
        backoff_base_s: float,
        release: Callable[[Record], None],
    ) -> None:
        self._registry = registry
        self._recorder = recorder
        self._job = job
        self._spec: Json = job.obj["spec"]
        self._status: Json = copy.deepcopy(job.obj.get("status") or {})
        self._memory = memory
        # Kept up while this step changes them.
        self._pods = pods
        self._backoff_base_s = backoff_base_s
        self._release = release
        self._tally = JobTally(self._spec, self._status, memory)

    def take(self) -> float | None:
        """Do what is due now; gives the seconds after which to look again."""
        job, spec, status, pods = self._job, self._spec, self._status, self._pods
        now = self._registry.now()
        counted = [*pods.new_succeeded.values(), *pods.new_failed.values()]
        self._tally.count(pods, now)
        again_s = self._start(now)
        if has_condition(job.obj, "FailureTarget"):
            self._end_pods()
            self._finish("FailureTarget", "Failed")
        elif has_condition(job.obj, "SuccessCriteriaMet"):
            self._end_pods()
            self._finish("SuccessCriteriaMet", "Complete")
        elif self._tally.has_failed(pods, now):
            reason, message = self._tally.failure or ("", "")
            self._add_condition("FailureTarget", reason, message)
            self._end_pods()
            again_s = 0.0
        elif success := self._tally.success(pods):
            self._add_condition("SuccessCriteriaMet", *success)
            self._end_pods()
            again_s = 0.0
        elif "deletionTimestamp" not in job.obj["metadata"]:
            if spec["suspend"]:
                self._suspend()
            else:
                again_s = _sooner(again_s, self._manage(now))
        self._set_counts()
        written = {**job.obj, "metadata": dict(job.obj["metadata"]), "status": status}
        self._registry.update(JOB, *job.key, written, subresource="status")
        for pod in counted:
            self._release(pod)
        return again_s

    def _start(self, now: datetime) -> float | None:
        """Set the start time; gives the seconds left until the Job's deadline."""
        status, spec = self._status, self._spec
        if spec["suspend"]:
            return None
        status.setdefault("startTime", self._registry.now_text())
        limit_s: int | None = spec.get("activeDeadlineSeconds")
        if limit_s is None:
            return None
        end = datetime.fromisoformat(status["startTime"]) + timedelta(seconds=limit_s)
        left_s = (end - now).total_seconds()
        return left_s if left_s > 0 else None

    def _suspend(self) -> None:
        for pod in list(self._pods.active.values()):
            self._dismiss(pod)
        self._status.pop("startTime", None)
        if not self._is_suspended():
            self._set_suspended("True", "JobSuspended", "Job suspended")
            self._recorder.record(self._job, "Normal", "Suspended", "Job suspended")

    def _manage(self, now: datetime) -> float | None:
        """Bring the number of pods to what is wanted; gives the seconds of a back-off."""
        if self._is_suspended():
            self._set_suspended("False", "JobResumed", "Job resumed")
            self._recorder.record(self._job, "Normal", "Resumed", "Job resumed")
            self._status["startTime"] = self._registry.now_text()
        for pod in self._superfluous():
            self._dismiss(pod)
        active = self._pods.active
        present = len(active)
        if self._spec["podReplacementPolicy"] == "Failed":
            present += len(self._pods.terminating)
        missing = min(self._wanted(len(active)) - present, _PODS_AT_ONCE)
        if missing < 0:
            # Those that have got least far go first.
            ordered = sorted(
                active.values(), key=lambda pod: (bool(pod.obj["spec"].get("nodeName")), pod.key)
            )
            for pod in ordered[:-missing]:
                self._dismiss(pod)
        if missing <= 0:
            return None
        per_index = "backoffLimitPerIndex" in self._spec
        wait_s = 0.0 if per_index else self._backoff_left_s(self._memory.overall, now)
        if wait_s > 0:
            return wait_s
        if self._tally.is_indexed:
            return self._fill_indexes(missing, now)
        for _ in range(missing):
            self._create_pod(None)
        return None

    def _superfluous(self) -> list[Record]:
        """Give the active pods whose index is done with, or is none."""
        if not self._tally.is_indexed:
            return []
        generation = self._job.obj["metadata"].get("generation", 0)
        if generation == self._memory.checked_generation:
            indexes = self._tally.newly_completed
            return [pod for index in indexes for pod in self._pods.active_at(index)]
        self._memory.checked_generation = generation
        return [pod for pod in self._pods.active.values() if self._is_superfluous(pod)]

    def _fill_indexes(self, missing: int, now: datetime) -> float | None:
        per_index = "backoffLimitPerIndex" in self._spec
        taken = self._pods.active_indexes() | self._tally.completed | self._tally.failed_indexes
        if self._spec["podReplacementPolicy"] == "Failed" or per_index:
            taken |= self._pods.terminating_indexes()
        again_s: float | None = None
        for index in range(self._spec["completions"]):
            if missing <= 0:
                break
            if index in taken:
                continue
            if per_index:
                left_s = self._backoff_left_s(self._memory.by_index.get(index, Backoff()), now)
                if left_s > 0:
                    again_s = _sooner(again_s, left_s)
                    continue
            self._create_pod(index)
            missing -= 1
        return again_s

    def _wanted(self, active: int) -> int:
        parallelism: int = self._spec["parallelism"]
        completions: int | None = self._spec.get("completions")
        if completions is None:
            return active if self._status.get("succeeded", 0) else parallelism
        done: int = self._status.get("succeeded", 0) + len(self._tally.failed_indexes)
        return min(parallelism, max(completions - done, 0))

    def _is_superfluous(self, pod: Record) -> bool:
        index = index_of(pod)
        return index is None or index in self._tally.completed or index >= self._spec["completions"]

    def _backoff_left_s(self, backoff: Backoff, now: datetime) -> float:
        if backoff.last is None:
            return 0.0
        delay_s = min(self._backoff_base_s * 2.0 ** min(backoff.count - 1, 16), _LONGEST_BACKOFF_S)
        return delay_s - (now - backoff.last).total_seconds()

    def _create_pod(self, index: int | None) -> None:
        failures = (
            self._memory.counted_by_index.get(index, 0)
            if index is not None and "backoffLimitPerIndex" in self._spec
            else None
        )
        pod = self._registry.create(POD, self._job.key[0], new_pod(self._job, index, failures))
        self._recorder.record(self._job, "Normal", "SuccessfulCreate", f"Created pod: {pod.key[1]}")

    def _end_pods(self) -> None:
        """Delete what still runs when the Job is decided; what becomes of it is counted."""
        for pod in list(self._pods.active.values()):
            options = DeleteOptions(propagation="Background", uid=pod.uid)
            self._registry.delete(POD, *pod.key, options)
            self._report_deleted(pod)

    def _dismiss(self, pod: Record) -> None:
        """Delete a pod that is not wanted at present; that is no failure."""
        self._release(pod)
        options = DeleteOptions(propagation="Background", uid=pod.uid)
        self._registry.delete(POD, *pod.key, options)
        self._report_deleted(pod)

    def _report_deleted(self, pod: Record) -> None:
        text = f"Deleted pod: {pod.key[1]}"
        self._recorder.record(self._job, "Normal", "SuccessfulDelete", text)

    def _finish(self, first: str, last: str) -> None:
        """Add the last condition once no pod is left that could still run."""
        pods = self._pods
        if pods.active or pods.terminating or pods.new_failed or pods.new_succeeded:
            return
        cause = pod_condition(self._job.obj, first) or {}
        reason, message = cause.get("reason", ""), cause.get("message", "")
        if last == "Complete":
            self._status["completionTime"] = self._registry.now_text()
            self._recorder.record(self._job, "Normal", "Completed", "Job completed")
        else:
            self._recorder.record(self._job, "Warning", reason, message)
        self._add_condition(last, reason, message)

    def _is_suspended(self) -> bool:
        return has_condition({"status": self._status}, "Suspended")

    def _set_suspended(self, status: str, reason: str, message: str) -> None:
        conditions: list[Json] = self._status.setdefault("conditions", [])
        conditions[:] = [c for c in conditions if c.get("type") != "Suspended"]
        self._add_condition("Suspended", reason, message, status)

    def _add_condition(
        self, condition_type: str, reason: str, message: str, status: str = "True"
    ) -> None:
        now = self._registry.now_text()
        condition = {
            "type": condition_type,
            "status": status,
            "lastProbeTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        self._status.setdefault("conditions", []).append(condition)

    def _set_counts(self) -> None:
        status, pods = self._status, self._pods
        status["active"] = len(pods.active)
        status["ready"] = pods.ready_count
        status["terminating"] = len(pods.terminating)
        status["uncountedTerminatedPods"] = {}
        for name in ("active", "succeeded", "failed", "completedIndexes"):
            if not status.get(name):
                status.pop(name, None)


def _sooner(left_s: float | None, right_s: float | None) -> float | None:
    given = [seconds for seconds in (left_s, right_s) if seconds is not None]
    return min(given, default=None)
