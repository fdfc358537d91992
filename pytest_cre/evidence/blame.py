"""Which pod most likely caused a failure, and which ones only went down with it."""

import re
from collections.abc import Collection, Iterable

from pytest_cre.evidence.model import LogStream, PodFacts

# What a Job that ends, or a full node, does to pods that did nothing wrong.
_FROM_OUTSIDE = (None, 137, 143)
# What ranks write that lose the connection to another pod.
_LOST_PEER = re.compile(
    rb"ncclRemoteError|remote process exited|closed by (?:remote )?peer|reset by peer",
    re.IGNORECASE,
)
_TAIL_BYTES = 64 * 1024
# Pods whose ends are so near fail together: the kubelet tells whole seconds, by its own clock.
_TOGETHER_NS = 2_000_000_000


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


def failed_on_their_own(
    pods: Iterable[PodFacts], logs: Collection[LogStream]
) -> tuple[PodFacts, ...]:
    """Return the pods that failed by themselves, as far as that can be told; none where it cannot.

    Not those whose log tells that they lost a peer, those that somebody ended, and those that
    failed well after the first. Without any, the ones that were restarted. A launcher tells nothing
    of the node that it is on.
    """
    failed = [pod for pod in failed_pods(pods) if pod.role != "launcher"]
    names = {pod.name for pod in failed}
    left_alone = {
        log.pod for log in logs if log.pod in names and _LOST_PEER.search(log.data[-_TAIL_BYTES:])
    }
    failed = [pod for pod in failed if pod.name not in left_alone]
    own = [pod for pod in failed if not was_ended_from_outside(pod)]
    own = [pod for pod in own if pod.reason == "OOMKilled"] or own
    ends = [pod.finished_ns for pod in own if pod.finished_ns is not None]
    if not ends:
        return tuple(own or (pod for pod in failed if pod.restart_count > 0))
    last_ns = min(ends) + _TOGETHER_NS
    return tuple(pod for pod in own if pod.finished_ns is not None and pod.finished_ns <= last_ns)


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
