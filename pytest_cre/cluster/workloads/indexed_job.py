"""Indexed Jobs: `batch/v1`, on every cluster, without any operator."""

from collections.abc import Iterable

from pytest_cre.catalog.entry import WorkloadKind
from pytest_cre.cluster.objects import JOB, Object, ResourceKind, condition, part
from pytest_cre.cluster.pods import completion_index
from pytest_cre.cluster.workloads.conditions import facts_of
from pytest_cre.cluster.workloads.protocol import PodPlace
from pytest_cre.evidence.model import JobFacts

_DECIDING = ("SuccessCriteriaMet", "FailureTarget")


class IndexedJob:
    """A Job with `completionMode: Indexed`, one pod per node."""

    name: WorkloadKind = "indexedJob"
    kind: ResourceKind = JOB
    main_container = "main"

    def expected_pods(self, nodes: int) -> int:
        """Return one pod per node."""
        return nodes

    def read_terminal(self, job: Object, owned: Iterable[Object] = ()) -> JobFacts:
        """Return the facts of a Job.

        Counts of pods say nothing: a Job with failed pods may still succeed. Since 1.31 a Job is
        first `SuccessCriteriaMet` or `FailureTarget`, and `Complete` or `Failed` once every pod has
        ended; only that is the end.
        """
        return facts_of(
            job,
            self.kind.kind,
            succeeded="Complete",
            failed="Failed",
            deciding=_DECIDING,
            owned=owned,
        )

    def is_deciding(self, job: Object) -> bool:
        """Return whether success or failure is settled; the pods may take a while to end."""
        return condition(job, *_DECIDING, "Complete", "Failed") is not None

    def is_suspended(self, job: Object) -> bool:
        """Return whether `spec.suspend` holds the Job back, as queues set it."""
        return part(job, "spec").get("suspend") is True

    def is_early(self, refusal: str) -> bool:  # noqa: ARG002
        """Return False: nothing that was created before it is asked for."""
        return False

    def place_of(self, pod: Object) -> PodPlace:
        """Return the pod's completion index."""
        return PodPlace(role="rank", index=completion_index(pod))
