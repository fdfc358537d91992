"""MPIJobs: `kubeflow.org/v2beta1`, a launcher in a Job of its own and workers without one."""

from collections.abc import Iterable
from dataclasses import replace

from pytest_cre.catalog.entry import WorkloadKind
from pytest_cre.cluster.objects import (
    MPI_JOB,
    Object,
    ResourceKind,
    condition,
    metadata_of,
    part,
)
from pytest_cre.cluster.workloads.conditions import facts_of
from pytest_cre.cluster.workloads.protocol import PodPlace
from pytest_cre.evidence.model import JobFacts

ROLE_LABEL = "training.kubeflow.org/job-role"
INDEX_LABEL = "training.kubeflow.org/replica-index"


class MpiJob:
    """An MPIJob with one worker per node. What the ranks write is in the launcher's log.

    Workers run an SSH server until they are deleted.
    """

    name: WorkloadKind = "mpiJob"
    kind: ResourceKind = MPI_JOB
    main_container = "main"

    def expected_pods(self, nodes: int) -> int:
        """Return one worker per node and the launcher."""
        return nodes + 1

    def read_terminal(self, job: Object, owned: Iterable[Object] = ()) -> JobFacts:
        """Return the facts of an MPIJob, which follows its launcher's Job and takes its words over.

        An evicted worker makes it `Failed` as well, while the launcher may still run.
        """
        _ = owned
        facts = facts_of(job, self.kind.kind, succeeded="Succeeded", failed="Failed")
        # It appends reason and message of the failed pod, also where that has none.
        return replace(facts, reason=facts.reason.rstrip("/"), message=facts.message.rstrip(": "))

    def is_deciding(self, job: Object) -> bool:
        """Return whether it has ended: before that it tells nothing of the outcome."""
        return condition(job, "Succeeded", "Failed") is not None

    def is_suspended(self, job: Object) -> bool:
        """Return whether `spec.runPolicy.suspend` holds it back."""
        return part(part(job, "spec"), "runPolicy").get("suspend") is True

    def is_early(self, refusal: str) -> bool:  # noqa: ARG002
        """Return False: nothing that was created before it is asked for."""
        return False

    def place_of(self, pod: Object) -> PodPlace:
        """Return the pod's role, and a worker's index."""
        labels = part(metadata_of(pod), "labels")
        if labels.get(ROLE_LABEL) != "worker":
            return PodPlace(role="launcher", index=None)
        index = str(labels.get(INDEX_LABEL) or "")
        is_number = index.isascii() and index.isdigit()
        return PodPlace(role="worker", index=int(index[:9]) if is_number else None)
