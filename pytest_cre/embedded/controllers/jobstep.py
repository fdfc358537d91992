"""One look at one Job: count the pods that ended, decide, make or remove pods, write the status."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pytest_cre.embedded.controllers.jobpods import (
    PodGroup,
    format_indexes,
    index_of,
    new_pod,
    parse_indexes,
    sort_pods,
)
from pytest_cre.embedded.controllers.jobpolicy import judge_failure
from pytest_cre.embedded.deletion import DeleteOptions
from pytest_cre.embedded.events import EventRecorder
from pytest_cre.embedded.kinds import JOB, POD, Json
from pytest_cre.embedded.owners import OwnerIndex
from pytest_cre.embedded.podrules import pod_condition
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.store import Record

_LONGEST_BACKOFF_S = 600.0
# A large Job is brought up in steps, so that it does not keep everybody else waiting; the first
# pods of a step make the Job be looked at again.
_PODS_AT_ONCE = 100


@dataclass(slots=True)
class Backoff:
    """Failures without a success in between, and when the last one was seen."""

    count: int = 0
    last: datetime | None = None


@dataclass(slots=True)
class JobMemory:
    """What is remembered of a Job between two looks, beside its status."""

    overall: Backoff = field(default_factory=Backoff)
    by_index: dict[int, Backoff] = field(default_factory=dict)
    # Failures that count against backoffLimitPerIndex.
    counted_by_index: dict[int, int] = field(default_factory=dict)


def has_condition(job: Json, condition_type: str) -> bool:
    """Whether a condition holds."""
    condition = pod_condition(job, condition_type)
    return condition is not None and condition.get("status") == "True"


def is_job_finished(job: Json) -> bool:
    """Whether a Job has its last condition."""
    return has_condition(job, "Complete") or has_condition(job, "Failed")


class JobStep:
    """The work of one look; used once."""

    def __init__(
        self,
        registry: Registry,
        owners: OwnerIndex,
        recorder: EventRecorder,
        job: Record,
        memory: JobMemory,
        *,
        backoff_base_s: float,
        release: Callable[[Record], None],
    ) -> None:
        self._registry = registry
        self._owners = owners
        self._recorder = recorder
        self._job = job
        self._spec: Json = job.obj["spec"]
        self._status: Json = copy.deepcopy(job.obj.get("status") or {})
        self._memory = memory
        self._backoff_base_s = backoff_base_s
        self._release = release
        self._is_indexed = self._spec["completionMode"] == "Indexed"
        self._completed = parse_indexes(self._status.get("completedIndexes", ""))
        self._failed_indexes = parse_indexes(self._status.get("failedIndexes", ""))
        self._failure: tuple[str, str] | None = None

    def take(self) -> float | None:
        """Do what is due now; gives the seconds after which to look again."""
        job, spec, status = self._job, self._spec, self._status
        now = self._registry.now()
        group = self._pods()
        self._count(group, now)
        again_s = self._start(now)
        if has_condition(job.obj, "FailureTarget"):
            self._end_pods(group)
            self._finish("FailureTarget", "Failed")
        elif has_condition(job.obj, "SuccessCriteriaMet"):
            self._end_pods(group)
            self._finish("SuccessCriteriaMet", "Complete")
        elif self._has_failed(group, now):
            reason, message = self._failure or ("", "")
            self._add_condition("FailureTarget", reason, message)
            self._end_pods(group)
            again_s = 0.0
        elif self._has_succeeded(group):
            self._add_condition(
                "SuccessCriteriaMet",
                "CompletionsReached",
                "Reached expected number of succeeded pods",
            )
            self._end_pods(group)
            again_s = 0.0
        elif "deletionTimestamp" not in job.obj["metadata"]:
            if spec["suspend"]:
                self._suspend(group)
            else:
                again_s = _sooner(again_s, self._manage(group, now))
        self._set_counts(self._pods())
        written = {**job.obj, "metadata": dict(job.obj["metadata"]), "status": status}
        self._registry.update(JOB, *job.key, written, subresource="status")
        for pod in (*group.new_succeeded, *group.new_failed):
            self._release(pod)
        return again_s

    def _pods(self) -> PodGroup:
        return sort_pods(
            self._owners.controlled(self._job.uid, POD),
            replaces_failed_only=self._spec["podReplacementPolicy"] == "Failed",
        )

    def _count(self, group: PodGroup, now: datetime) -> None:
        status, memory = self._status, self._memory
        completions: int | None = self._spec.get("completions")
        for pod in group.new_succeeded:
            if not self._is_indexed:
                status["succeeded"] = status.get("succeeded", 0) + 1
                memory.overall = Backoff()
                continue
            index = index_of(pod)
            if index is not None and index < (completions or 0):
                self._completed.add(index)
                memory.overall = Backoff()
                memory.by_index.pop(index, None)
        for pod in group.new_failed:
            self._count_failure(pod, now)
        if self._is_indexed:
            status["completedIndexes"] = format_indexes(self._completed)
            status["succeeded"] = len(self._completed)
            if "backoffLimitPerIndex" in self._spec:
                status["failedIndexes"] = format_indexes(self._failed_indexes)

    def _count_failure(self, pod: Record, now: datetime) -> None:
        memory = self._memory
        index = index_of(pod) if self._is_indexed else None
        memory.overall = Backoff(memory.overall.count + 1, now)
        if index is not None:
            known = memory.by_index.get(index, Backoff())
            memory.by_index[index] = Backoff(known.count + 1, now)
        judgement = judge_failure(pod, self._spec.get("podFailurePolicy"))
        if judgement.action == "Ignore":
            return
        self._status["failed"] = self._status.get("failed", 0) + 1
        if judgement.action == "FailJob" and self._failure is None:
            self._failure = ("PodFailurePolicy", judgement.message)
        if index is None or "backoffLimitPerIndex" not in self._spec:
            return
        failures = memory.counted_by_index.get(index, 0) + 1
        memory.counted_by_index[index] = failures
        is_over = failures > self._spec["backoffLimitPerIndex"]
        if (is_over or judgement.action == "FailIndex") and index not in self._completed:
            self._failed_indexes.add(index)

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

    def _has_failed(self, group: PodGroup, now: datetime) -> bool:
        spec, status = self._spec, self._status
        limit_s: int | None = spec.get("activeDeadlineSeconds")
        started: str | None = status.get("startTime")
        per_index = "backoffLimitPerIndex" in spec
        if self._failure is not None:
            return True
        if status.get("failed", 0) > spec["backoffLimit"] or self._restarts_exceed(group):
            self._failure = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        elif (
            limit_s is not None
            and started is not None
            and not spec["suspend"]
            and now >= datetime.fromisoformat(started) + timedelta(seconds=limit_s)
        ):
            self._failure = ("DeadlineExceeded", "Job was active longer than specified deadline")
        elif per_index and len(self._failed_indexes) > spec.get("maxFailedIndexes", 2**31):
            self._failure = (
                "MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes",
            )
        elif (
            per_index
            and self._failed_indexes
            and len(self._failed_indexes | self._completed) >= spec["completions"]
        ):
            self._failure = ("FailedIndexes", "Job has failed indexes")
        return self._failure is not None

    def _restarts_exceed(self, group: PodGroup) -> bool:
        """Whether containers restarted in place too often, where the pods do that."""
        if self._spec["template"]["spec"].get("restartPolicy") != "OnFailure":
            return False
        restarts: int = sum(
            container.get("restartCount", 0)
            for pod in group.active
            for container in pod.obj.get("status", {}).get("containerStatuses") or []
        )
        return bool(restarts >= max(self._spec["backoffLimit"], 1))

    def _has_succeeded(self, group: PodGroup) -> bool:
        if self._spec["suspend"]:
            return False
        completions: int | None = self._spec.get("completions")
        succeeded: int = self._status.get("succeeded", 0)
        if completions is None:
            return succeeded > 0 and not group.active
        if self._is_indexed:
            return len(self._completed) >= completions
        return succeeded >= completions

    def _suspend(self, group: PodGroup) -> None:
        for pod in group.active:
            self._dismiss(pod)
        self._status.pop("startTime", None)
        if not self._is_suspended():
            self._set_suspended("True", "JobSuspended", "Job suspended")
            self._recorder.record(self._job, "Normal", "Suspended", "Job suspended")

    def _manage(self, group: PodGroup, now: datetime) -> float | None:
        """Bring the number of pods to what is wanted; gives the seconds of a back-off."""
        if self._is_suspended():
            self._set_suspended("False", "JobResumed", "Job resumed")
            self._recorder.record(self._job, "Normal", "Resumed", "Job resumed")
            self._status["startTime"] = self._registry.now_text()
        active: list[Record] = []
        for pod in group.active:
            if self._is_superfluous(pod):
                self._dismiss(pod)
            else:
                active.append(pod)
        present = len(active)
        if self._spec["podReplacementPolicy"] == "Failed":
            present += len(group.terminating)
        missing = min(self._wanted(len(active)) - present, _PODS_AT_ONCE)
        if missing < 0:
            # Those that have got least far go first.
            active.sort(key=lambda pod: (bool(pod.obj["spec"].get("nodeName")), pod.key))
            for pod in active[: min(-missing, len(active))]:
                self._dismiss(pod)
            return None
        if not self._is_indexed:
            wait_s = self._backoff_left_s(self._memory.overall, now)
            if wait_s > 0 and missing:
                return wait_s
            for _ in range(missing):
                self._create_pod(None)
            return None
        return self._fill_indexes(active, group.terminating, missing, now)

    def _fill_indexes(
        self, active: list[Record], terminating: list[Record], missing: int, now: datetime
    ) -> float | None:
        per_index = "backoffLimitPerIndex" in self._spec
        wait_s = 0.0 if per_index else self._backoff_left_s(self._memory.overall, now)
        if wait_s > 0 and missing:
            return wait_s
        busy = {index_of(pod) for pod in active}
        if self._spec["podReplacementPolicy"] == "Failed" or per_index:
            busy |= {index_of(pod) for pod in terminating}
        again_s: float | None = None
        for index in range(self._spec["completions"]):
            if missing <= 0:
                break
            if index in busy or index in self._completed or index in self._failed_indexes:
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
        done: int = self._status.get("succeeded", 0) + len(self._failed_indexes)
        return min(parallelism, max(completions - done, 0))

    def _is_superfluous(self, pod: Record) -> bool:
        if not self._is_indexed:
            return False
        index = index_of(pod)
        return index is None or index in self._completed or index >= self._spec["completions"]

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

    def _end_pods(self, group: PodGroup) -> None:
        """Delete what still runs when the Job is decided; what becomes of it is counted."""
        for pod in group.active:
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
        group = self._pods()
        if group.active or group.terminating or group.new_failed or group.new_succeeded:
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

    def _set_counts(self, group: PodGroup) -> None:
        status = self._status
        status["active"] = len(group.active)
        status["ready"] = group.ready_count
        status["terminating"] = len(group.terminating)
        status["uncountedTerminatedPods"] = {}
        for name in ("active", "succeeded", "failed", "completedIndexes"):
            if not status.get(name):
                status.pop(name, None)


def _sooner(left_s: float | None, right_s: float | None) -> float | None:
    given = [seconds for seconds in (left_s, right_s) if seconds is not None]
    return min(given, default=None)
