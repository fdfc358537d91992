"""Which pod most likely caused a failure."""

from collections.abc import Collection, Iterable

from pytest_cre.evidence.model import PodFacts

# What a Job that ends, or a full node, does to pods that did nothing wrong.
_FROM_OUTSIDE = (None, 137, 143)


def failed_pods(
    pods: Iterable[PodFacts],
    *,
    blamed: Collection[str | None] = (),
    blameless: Collection[str | None] = (),
) -> list[PodFacts]:
    """Return the pods that failed, the likely cause first, without those in `blameless`.

    Those in `blamed` come first. Then: killed for memory, before an exit code of its own, before a
    signal; of these the earliest, for those that fail later were mostly left alone by the first.
    """
    found = [
        pod
        for pod in pods
        if (pod.phase == "Failed" or pod.exit_code) and pod.name not in blameless
    ]
    return sorted(found, key=lambda pod: (pod.name not in blamed, *_order(pod)))


def was_ended_from_outside(pod: PodFacts) -> bool:
    """Return whether the pod's exit code says only that somebody ended it."""
    return pod.reason != "OOMKilled" and pod.exit_code in _FROM_OUTSIDE


def _order(pod: PodFacts) -> tuple[bool, bool, float, float, str]:
    late = float("inf")
    return (
        pod.reason != "OOMKilled",
        pod.exit_code in _FROM_OUTSIDE,
        late if pod.finished_ns is None else pod.finished_ns,
        late if pod.completion_index is None else pod.completion_index,
        pod.name,
    )
