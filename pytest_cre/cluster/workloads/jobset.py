"""JobSets: `jobset.x-k8s.io/v1alpha2`, here of one Indexed Job that owns the pods."""

from collections.abc import Iterable

from pytest_cre.catalog.entry import WorkloadKind
from pytest_cre.cluster.objects import JOB_SET, Object, ResourceKind, condition, part
from pytest_cre.cluster.pods import completion_index
from pytest_cre.cluster.workloads.conditions import facts_of
from pytest_cre.cluster.workloads.protocol import PodPlace
from pytest_cre.evidence.model import JobFacts


class JobSet:
    """A JobSet with one pod per node."""

    name: WorkloadKind = "jobSet"
    kind: ResourceKind = JOB_SET
    main_container = "main"

    def expected_pods(self, nodes: int) -> int:
        """Return one pod per node."""
        return nodes

    def read_terminal(self, job: Object, owned: Iterable[Object] = ()) -> JobFacts:
        """Return the facts of a JobSet; `status.restarts` and counts of Jobs are no end."""
        return facts_of(job, self.kind.kind, succeeded="Completed", failed="Failed", owned=owned)

    def is_deciding(self, job: Object) -> bool:
        """Return whether it has ended: before that it tells nothing of the outcome."""
        return condition(job, "Completed", "Failed") is not None

    def is_suspended(self, job: Object) -> bool:
        """Return whether `spec.suspend` holds its Jobs back."""
        return part(job, "spec").get("suspend") is True

    def is_early(self, refusal: str) -> bool:  # noqa: ARG002
        """Return False: nothing that was created before it is asked for."""
        return False

    def place_of(self, pod: Object) -> PodPlace:
        """Return the pod's completion index in its Job."""
        return PodPlace(role="rank", index=completion_index(pod))
