"""What must hold whatever went wrong: each breach of a rule, in words."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isclose

from pytest_cre.evidence.model import GroupEvidence, LogStream, PodFacts, WorkflowEvidence
from pytest_cre.judge.group import OF_LEDGER
from pytest_cre.judge.nodes import node_failures
from pytest_cre.judge.verdict import GroupVerdict, ItemVerdict
from pytest_cre.simulator.faults import Subject
from tests.campaign.clusters import Cluster
from tests.campaign.kinds import KINDS

FROM_OUTSIDE = ("delete-pod", "evict", "evict-unmarked", "preempt")
TABLE_ENDS = b"# Avg bus bandwidth"
TRAINING_STARTS = b"[before the start of training step]"
OF_API = frozenset({"LogUnavailable", "NodeUnreachable", "Stalled", "TimedOut"})
Judge = Callable[[WorkflowEvidence], ItemVerdict]


def false_logs(cluster: Cluster, evidence: WorkflowEvidence) -> Iterator[str]:
    """A log that is called whole is the source, byte for byte.

    What was lost before anything was read leaves no trace in the log itself: `false_passes` looks
    at that.
    """
    for log in _logs(evidence):
        if log.is_complete and not log.has_gap and _source(cluster, log) is None:
            sizes = " or ".join(str(len(each)) for each in _sources(cluster, log))
            yield f"log of {log.pod} is called whole: {len(log.data)} of {sizes} bytes"


def false_passes(
    cluster: Cluster, evidence: WorkflowEvidence, verdict: ItemVerdict, judge: Judge
) -> Iterator[str]:
    """No group passes that a fault has spoilt, nor with a log that lacks anything that counts.

    Only the beginning may be lacking, and with it the group passes as well, with the same figures;
    of a training not all of it.
    A worker whose place another one took before the launcher began is told as a warning.
    """
    spoilt = _spoilt(cluster)
    judged = _by_group(verdict)
    whole = _by_group(judge(_made_whole(cluster, evidence)))
    for group in evidence.groups:
        passed = judged[group.key]
        if passed.code != "pass":
            continue
        for pod in group.pods:
            if pod.uid in spoilt and not (passed.warnings and _was_replaced(pod, group)):
                yield f"passed in spite of {spoilt[pod.uid]} on {pod.name}"
        for log in group.logs:
            if _source(cluster, log) is None:
                yield f"passed with a part of the log of {log.pod}"
        if OF_LEDGER.intersection(check.metric for check in passed.checks) and not any(
            TRAINING_STARTS in log.data for log in group.logs
        ):
            yield "passed by its ledger without the beginning of the training"
        if not _are_alike(passed, whole[group.key]):
            words = f"{_words(passed)} for {_words(whole[group.key])}"
            yield f"{group.group} passed otherwise than with the whole logs: {words}"


def false_blame(
    cluster: Cluster, evidence: WorkflowEvidence, verdict: ItemVerdict
) -> Iterator[str]:
    """No node is under suspicion that no fault has hit.

    Where nobody can tell which node of a group it was, one of them must have been hit. What the API
    server did may cost time and logs, never more.
    """
    hit = {subject.node for _, subject in cluster.world.faults.hits}
    excused = OF_API if any(each.hits for each in cluster.api_faults.planted) else frozenset()
    judged = _by_group(verdict)
    for group in evidence.groups:
        failures = node_failures(judged[group.key], group)
        are_alike = {each.node for each in failures} == {*group.nodes}
        for failure in failures:
            suspects = group.nodes if are_alike else (failure.node,)
            if hit.isdisjoint(suspects) and failure.reason not in excused:
                words = f"{failure.reason}: {failure.message}"
                yield f"node {failure.node} is blamed and nothing has hit it: {words}"


def _spoilt(cluster: Cluster) -> dict[str, str]:
    """Return the pods, by UID, that a fault has hit after which they cannot be part of a pass.

    What somebody does to a pod from outside may come when it has just succeeded, and a program may
    quit when it has just written all.
    """
    spoilers = {kind.action for kind in KINDS.values() if kind.spoils}

    def came_late(action: str, subject: Subject) -> bool:
        if cluster.ends.get(subject.pod_uid) != "Succeeded":
            return False
        logs = cluster.sources.of(subject.pod, 0)
        return action in FROM_OUTSIDE or any(TABLE_ENDS in log for log in logs)

    return {
        subject.pod_uid: action
        for action, subject in cluster.world.faults.hits
        if action in spoilers and not came_late(action, subject)
    }


def _was_replaced(pod: PodFacts, group: GroupEvidence) -> bool:
    """Return whether the MPI operator put another worker in a pod's place."""
    return pod.role == "worker" and any(
        (each.role, each.completion_index) == (pod.role, pod.completion_index)
        and each.attempt > pod.attempt
        for each in group.pods
    )


def _made_whole(cluster: Cluster, evidence: WorkflowEvidence) -> WorkflowEvidence:
    """Return the evidence with the beginnings that its logs lack."""

    def made_whole(group: GroupEvidence) -> GroupEvidence:
        logs = (
            replace(log, data=source) if (source := _source(cluster, log)) is not None else log
            for log in group.logs
        )
        return replace(group, logs=tuple(logs))

    return replace(evidence, groups=tuple(map(made_whole, evidence.groups)))


def _source(cluster: Cluster, log: LogStream) -> bytes | None:
    """Return what was written, None where the log is not the end of it."""
    found = (each for each in _sources(cluster, log) if each.endswith(log.data))
    return next(found, None)


def _sources(cluster: Cluster, log: LogStream) -> list[bytes]:
    """Return what pods of the name wrote; one that waited for its restart has the log before."""
    counts = range(log.restart_count, -1, -1)
    found = (cluster.sources.of(log.pod, count) for count in counts)
    return next((each for each in found if each), [b""])


def _logs(evidence: WorkflowEvidence) -> Iterator[LogStream]:
    for group in evidence.groups:
        yield from group.logs


def _by_group(verdict: ItemVerdict) -> dict[tuple[str, int], GroupVerdict]:
    return {(each.group, each.attempt): each for each in verdict.groups}


def _are_alike(one: GroupVerdict, other: GroupVerdict) -> bool:
    """Return whether two verdicts agree in their figures, to a hundredth, and what these come to."""
    return (
        one.code == other.code
        and len(one.checks) == len(other.checks)
        and all(
            (a.metric, a.code) == (b.metric, b.code)
            and (
                a.measured == b.measured or isclose(a.measured or 0, b.measured or 0, rel_tol=0.01)
            )
            for a, b in zip(one.checks, other.checks, strict=True)
        )
    )


def _words(group: GroupVerdict) -> str:
    figures = (f"{each.metric} {each.measured} {each.code}" for each in group.checks)
    return ", ".join((group.code, *figures))
