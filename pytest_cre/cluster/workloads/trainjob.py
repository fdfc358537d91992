"""TrainJobs: `trainer.kubeflow.org/v1alpha1`; each makes a JobSet of its own name."""

from collections.abc import Iterable

from pytest_cre.catalog.entry import WorkloadKind
from pytest_cre.cluster.objects import TRAIN_JOB, Object, ResourceKind, condition, part
from pytest_cre.cluster.pods import completion_index
from pytest_cre.cluster.workloads.conditions import facts_of
from pytest_cre.cluster.workloads.protocol import PodPlace
from pytest_cre.evidence.model import JobFacts

_NO_RUNTIME = "specified trainingRuntime must be created before"


class TrainJob:
    """A TrainJob with one pod per node."""

    name: WorkloadKind = "trainJob"
    kind: ResourceKind = TRAIN_JOB
    main_container = "node"

    def expected_pods(self, nodes: int) -> int:
        """Return one pod per node."""
        return nodes

    def read_terminal(self, job: Object, owned: Iterable[Object] = ()) -> JobFacts:
        """Return the facts of a TrainJob.

        One that was ever suspended keeps a condition `Suspended` for good, False and with the
        reason `Resumed`: that there are conditions says nothing.
        """
        return facts_of(job, self.kind.kind, succeeded="Complete", failed="Failed", owned=owned)

    def is_deciding(self, job: Object) -> bool:
        """Return whether it has ended: before that it tells nothing of the outcome."""
        return condition(job, "Complete", "Failed") is not None

    def is_suspended(self, job: Object) -> bool:
        """Return whether `spec.suspend` holds it back."""
        return part(job, "spec").get("suspend") is True

    def is_early(self, refusal: str) -> bool:
        """Return whether its webhook, which asks a cache, has not heard of the runtime yet."""
        return _NO_RUNTIME in refusal

    def place_of(self, pod: Object) -> PodPlace:
        """Return the pod's completion index in its Job."""
        return PodPlace(role="rank", index=completion_index(pod))
