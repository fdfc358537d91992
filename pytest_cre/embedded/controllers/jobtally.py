"""The figures of one Job: what its pods came to, and whether that decides it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pytest_cre.embedded.controllers.jobcensus import JobPods
from pytest_cre.embedded.controllers.jobpods import index_of
from pytest_cre.embedded.controllers.jobpolicy import judge_failure
from pytest_cre.embedded.indexes import format_indexes, parse_indexes
from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.podstate import pod_condition
from pytest_cre.embedded.store import Record


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
    # The generation for which all active pods have been found to be wanted.
    checked_generation: int = 0
    # Failures that count against backoffLimitPerIndex.
    counted_by_index: dict[int, int] = field(default_factory=dict)


def has_condition(job: Json, condition_type: str) -> bool:
    """Whether a condition holds."""
    condition = pod_condition(job, condition_type)
    return condition is not None and condition.get("status") == "True"


def is_job_finished(job: Json) -> bool:
    """Whether a Job has its last condition."""
    return has_condition(job, "Complete") or has_condition(job, "Failed")


class JobTally:
    """Counts into a status that is the caller's own."""

    def __init__(self, spec: Json, status: Json, memory: JobMemory) -> None:
        self._spec = spec
        self.status = status
        self._memory = memory
        self.newly_completed: list[int] = []
        self.is_indexed = spec["completionMode"] == "Indexed"
        self.completed = parse_indexes(status.get("completedIndexes", ""))
        self.failed_indexes = parse_indexes(status.get("failedIndexes", ""))
        # Once the Job is decided the pods that still run are taken down, which tells nothing.
        self._is_failing = has_condition({"status": status}, "FailureTarget")
        self._is_succeeding = has_condition({"status": status}, "SuccessCriteriaMet")
        # Reason and message, once the Job must fail.
        self.failure: tuple[str, str] | None = None

    def count(self, pods: JobPods, now: datetime) -> None:
        """Add the pods that have ended since the last look to the status."""
        status, memory = self.status, self._memory
        completions: int | None = self._spec.get("completions")
        for pod in list(pods.new_succeeded.values()):
            if not self.is_indexed:
                status["succeeded"] = status.get("succeeded", 0) + 1
                memory.overall = Backoff()
                continue
            index = index_of(pod)
            if index is not None and index < (completions or 0):
                self.completed.add(index)
                self.newly_completed.append(index)
                memory.overall = Backoff()
                memory.by_index.pop(index, None)
        for pod in list(pods.new_failed.values()):
            self._count_failure(pod, now)
        if self.is_indexed:
            status["completedIndexes"] = format_indexes(self.completed)
            status["succeeded"] = len(self.completed)
            if "backoffLimitPerIndex" in self._spec:
                status["failedIndexes"] = format_indexes(self.failed_indexes)

    def _count_failure(self, pod: Record, now: datetime) -> None:
        if self._is_succeeding:
            return
        memory = self._memory
        index = index_of(pod) if self.is_indexed else None
        memory.overall = Backoff(memory.overall.count + 1, now)
        if index is not None:
            known = memory.by_index.get(index, Backoff())
            memory.by_index[index] = Backoff(known.count + 1, now)
        judgement = judge_failure(pod, self._spec.get("podFailurePolicy"))
        if judgement.action == "Ignore":
            return
        self.status["failed"] = self.status.get("failed", 0) + 1
        if judgement.action == "FailJob" and self.failure is None:
            self.failure = ("PodFailurePolicy", judgement.message)
        if index is None or "backoffLimitPerIndex" not in self._spec:
            return
        failures = memory.counted_by_index.get(index, 0) + 1
        memory.counted_by_index[index] = failures
        is_over = failures > self._spec["backoffLimitPerIndex"]
        if self._is_failing:
            return
        if (is_over or judgement.action == "FailIndex") and index not in self.completed:
            self.failed_indexes.add(index)

    def has_failed(self, pods: JobPods, now: datetime) -> bool:
        """Whether the Job must fail; `failure` says why."""
        spec, status = self._spec, self.status
        limit_s: int | None = spec.get("activeDeadlineSeconds")
        started: str | None = status.get("startTime")
        per_index = "backoffLimitPerIndex" in spec
        if self.failure is not None:
            return True
        if status.get("failed", 0) > spec["backoffLimit"] or self._restarts_exceed(pods):
            self.failure = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        elif (
            limit_s is not None
            and started is not None
            and not spec["suspend"]
            and now >= datetime.fromisoformat(started) + timedelta(seconds=limit_s)
        ):
            self.failure = ("DeadlineExceeded", "Job was active longer than specified deadline")
        elif per_index and len(self.failed_indexes) > spec.get("maxFailedIndexes", 2**31):
            self.failure = (
                "MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes",
            )
        elif (
            per_index
            and self.failed_indexes
            and len(self.failed_indexes | self.completed) >= spec["completions"]
        ):
            self.failure = ("FailedIndexes", "Job has failed indexes")
        return self.failure is not None

    def _restarts_exceed(self, pods: JobPods) -> bool:
        """Whether containers restarted in place too often, where the pods do that."""
        if self._spec["template"]["spec"].get("restartPolicy") != "OnFailure":
            return False
        restarts: int = sum(
            container.get("restartCount", 0)
            for pod in pods.active.values()
            for container in pod.obj.get("status", {}).get("containerStatuses") or []
        )
        return bool(restarts >= max(self._spec["backoffLimit"], 1))

    def success(self, pods: JobPods) -> tuple[str, str] | None:
        """Give reason and message once enough pods have succeeded."""
        if self._spec["suspend"]:
            return None
        if self._has_all(pods):
            return "CompletionsReached", "Reached expected number of succeeded pods"
        for place, rule in enumerate(self._spec.get("successPolicy", {}).get("rules") or []):
            wanted = rule.get("succeededIndexes")
            counted = self.completed if wanted is None else self.completed & parse_indexes(wanted)
            needed = rule.get("succeededCount")
            if needed is None:
                needed = len(parse_indexes(wanted or ""))
            if len(counted) >= needed > 0:
                return "SuccessPolicy", f"Matched rules at index {place}"
        return None

    def _has_all(self, pods: JobPods) -> bool:
        completions: int | None = self._spec.get("completions")
        succeeded: int = self.status.get("succeeded", 0)
        if completions is None:
            return succeeded > 0 and not pods.active
        if self.is_indexed:
            return len(self.completed) >= completions
        return succeeded >= completions
