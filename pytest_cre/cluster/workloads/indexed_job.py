"""Indexed Jobs: `batch/v1`, on every cluster, without any operator."""

from collections.abc import Iterable

from pytest_cre.catalog.entry import WorkloadKind
from pytest_cre.cluster.objects import (
    JOB,
    Object,
    ResourceKind,
    condition,
    entries,
    metadata_of,
    parse_time_ns,
    part,
    status_of,
)
from pytest_cre.cluster.pods import completion_index
from pytest_cre.evidence.model import JobFacts, Terminal


class IndexedJob:
    """A Job with `completionMode: Indexed`, one pod per node."""

    name: WorkloadKind = "indexedJob"
    kind: ResourceKind = JOB
    main_container = "main"

    def read_terminal(self, job: Object) -> JobFacts:
        """Return the facts of a Job.

        Counts of pods say nothing: a Job with failed pods may still succeed. Since 1.31 a Job is
        first `SuccessCriteriaMet` or `FailureTarget`, and `Complete` or `Failed` once every pod has
        ended; only that is the end.
        """
        metadata, status = metadata_of(job), status_of(job)
        complete, failed = condition(job, "Complete"), condition(job, "Failed")
        terminal: Terminal = "succeeded" if complete else "failed" if failed else "none"
        deciding = condition(job, "Complete", "Failed", "SuccessCriteriaMet", "FailureTarget") or {}
        last = complete or failed or {}
        return JobFacts(
            kind=self.kind.kind,
            name=str(metadata.get("name") or ""),
            uid=str(metadata.get("uid") or ""),
            terminal=terminal,
            reason=str(deciding.get("reason") or ""),
            message=str(deciding.get("message") or ""),
            created_ns=parse_time_ns(metadata.get("creationTimestamp")),
            started_ns=parse_time_ns(status.get("startTime")),
            terminal_ns=parse_time_ns(last.get("lastTransitionTime")),
        )

    def is_deciding(self, job: Object) -> bool:
        """Return whether success or failure is settled; the pods may take a while to end."""
        return (
            condition(job, "SuccessCriteriaMet", "FailureTarget", "Complete", "Failed") is not None
        )

    def is_suspended(self, job: Object) -> bool:
        """Return whether `spec.suspend` holds the Job back, as queues set it."""
        return part(job, "spec").get("suspend") is True

    def pods_of(self, job: Object, pods: Iterable[Object]) -> tuple[Object, ...]:
        """Return the pods that this very Job owns; a namesake's have another owner UID."""
        uid = metadata_of(job).get("uid")
        own = [
            pod
            for pod in pods
            if uid
            and any(
                owner.get("uid") == uid for owner in entries(metadata_of(pod), "ownerReferences")
            )
        ]
        return tuple(sorted(own, key=_order))


def _order(pod: Object) -> tuple[int, str, str]:
    index = completion_index(pod)
    metadata = metadata_of(pod)
    return (
        -1 if index is None else index,
        str(metadata.get("creationTimestamp") or ""),
        str(metadata.get("name") or ""),
    )
