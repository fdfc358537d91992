"""A Pod as facts, and what its state means for a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pytest_cre.cluster.objects import (
    Object,
    condition,
    entries,
    metadata_of,
    parse_time_ns,
    part,
    status_of,
)
from pytest_cre.evidence.model import PodFacts, Problem

ContainerPhase = Literal["waiting", "running", "terminated", "gone", "none"]

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
# The kubelet goes on trying for each of these; without a change from outside it never succeeds.
_IMAGE_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_CONFIG_REASONS = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "CreatePodSandboxError",
        "RunContainerError",
        "StartError",
        "ContainerCannotRun",
    }
)
_LOST_NODE_REASONS = frozenset({"NodeLost", "NodeShutdown", "Terminated", "Shutdown"})
_EVICTED_REASONS = frozenset({"Evicted", "Preempting", "Preempted"})
# Refused by the kubelet: the node could not give what the scheduler had counted on.
ADMISSION_REASONS = frozenset(
    {"UnexpectedAdmissionError", "OutOfcpu", "OutOfmemory", "OutOfpods", "NodeAffinity"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """One container. `reason` and `message` are those of its waiting or terminated state."""

    phase: ContainerPhase
    restart_count: int = 0
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    started_ns: int | None = None
    finished_ns: int | None = None


def container_state(pod: Object, name: str) -> ContainerState:
    """Return the state of a container, phase `none` where the kubelet has told nothing of it."""
    status = status_of(pod)
    for each in (*entries(status, "containerStatuses"), *entries(status, "initContainerStatuses")):
        if each.get("name") == name:
            return _state_of(each)
    return ContainerState(phase="none")


def _state_of(status: Object) -> ContainerState:
    restarts = _whole(status.get("restartCount")) or 0
    state = part(status, "state")
    ended, running = part(state, "terminated"), part(state, "running")
    if ended:
        return ContainerState(
            phase="terminated",
            restart_count=restarts,
            reason=_text(ended, "reason"),
            message=_text(ended, "message"),
            exit_code=_whole(ended.get("exitCode")),
            started_ns=parse_time_ns(ended.get("startedAt")),
            finished_ns=parse_time_ns(ended.get("finishedAt")),
        )
    if running:
        return ContainerState(
            phase="running",
            restart_count=restarts,
            started_ns=parse_time_ns(running.get("startedAt")),
        )
    waiting = part(state, "waiting")
    return ContainerState(
        phase="waiting",
        restart_count=restarts,
        reason=_text(waiting, "reason"),
        message=_text(waiting, "message"),
    )


def pod_facts(pod: Object, *, main_container: str, attempt: int = 0) -> PodFacts:
    """Return the pod as evidence keeps it.

    `reason` and `message` are the most telling ones there are: of a disruption, of the pod, of the
    main container, of the scheduler.
    """
    metadata, status = metadata_of(pod), status_of(pod)
    main = container_state(pod, main_container)
    reason, message = _reason(pod, main)
    return PodFacts(
        name=_text(metadata, "name"),
        uid=_text(metadata, "uid"),
        node=_text(part(pod, "spec"), "nodeName") or None,
        completion_index=completion_index(pod),
        attempt=attempt,
        phase=_text(status, "phase"),
        reason=reason,
        message=message,
        exit_code=main.exit_code,
        restart_count=main.restart_count,
        created_ns=parse_time_ns(metadata.get("creationTimestamp")),
        started_ns=main.started_ns,
        finished_ns=main.finished_ns,
    )


def completion_index(pod: Object) -> int | None:
    """Return which of an Indexed Job's pods this is, or None for any other pod."""
    metadata = metadata_of(pod)
    for name in ("annotations", "labels"):
        text = _text(part(metadata, name), INDEX_ANNOTATION)
        if text.isascii() and text.isdigit():
            return int(text[:9])
    return None


def settle(previous: PodFacts | None, now: PodFacts) -> PodFacts:
    """Return what counts of two looks at a pod: the first end that was seen stands.

    A kubelet that restarts may turn a pod that succeeded into one that it did not admit.
    """
    if previous is not None and previous.phase in ("Succeeded", "Failed"):
        return previous
    return now


def pod_problem(pod: Object, *, main_container: str) -> Problem | None:
    """Return what is wrong with a pod, or None: for one that is fine, or only not there yet.

    A pod that cannot be scheduled or started gets a problem while it still waits; whether to wait
    on is for the caller's deadlines. The message leaves out pod and node, so that alike problems of
    many pods read the same.
    """
    metadata, status = metadata_of(pod), status_of(pod)
    main = container_state(pod, main_container)
    reason, message = _reason(pod, main)
    code = _code(pod, main)
    if code is None:
        return None
    name, node = _text(metadata, "name"), _text(part(pod, "spec"), "nodeName") or None
    words = ": ".join(filter(None, (reason, message)))
    if code == "pod-failed" and main.exit_code is not None:
        words = f"exit code {main.exit_code}" + (f" ({words})" if words else "")
    return Problem(code=code, message=words or _text(status, "phase") or code, node=node, pod=name)


def _code(pod: Object, main: ContainerState) -> str | None:
    status = status_of(pod)
    phase, reason = _text(status, "phase"), _text(status, "reason")
    if phase == "Succeeded":
        return None
    disruption = condition(pod, "DisruptionTarget")
    if reason in _LOST_NODE_REASONS or phase == "Unknown" or _is_lost(disruption):
        return "node-unreachable"
    if disruption is not None or reason in _EVICTED_REASONS:
        return "pod-evicted"
    if phase == "Failed":
        if reason in ADMISSION_REASONS:
            return "pod-evicted"
        return "pod-failed"
    for waiting in _waiting(pod):
        if waiting.reason in _IMAGE_REASONS:
            return "image-pull"
        if waiting.reason in _CONFIG_REASONS:
            return "config-error"
    if metadata_of(pod).get("deletionTimestamp") and main.phase != "terminated":
        return "pod-deleted"
    if phase == "Pending" and _unscheduled(pod):
        return "unschedulable"
    return None


def _is_lost(disruption: Object | None) -> bool:
    """Return whether the pod had to go because its node does not answer any more."""
    return disruption is not None and disruption.get("reason") in (
        "DeletionByTaintManager",
        "DeletionByPodGC",
    )


def _reason(pod: Object, main: ContainerState) -> tuple[str, str]:
    status = status_of(pod)
    disruption = condition(pod, "DisruptionTarget")
    if disruption is not None and _text(status, "phase") != "Succeeded":
        return _text(disruption, "reason"), _text(disruption, "message")
    if _text(status, "reason"):
        return _text(status, "reason"), _text(status, "message")
    if main.phase == "terminated":
        return main.reason, main.message
    for waiting in _waiting(pod):
        if waiting.reason in _IMAGE_REASONS | _CONFIG_REASONS or waiting == main:
            return waiting.reason, waiting.message
    unscheduled = _unscheduled(pod)
    if unscheduled:
        return _text(unscheduled, "reason"), _text(unscheduled, "message")
    return "", _text(status, "message")


def _waiting(pod: Object) -> list[ContainerState]:
    """Return the containers that wait, init containers first: nothing starts before them."""
    status = status_of(pod)
    states = map(
        _state_of,
        (*entries(status, "initContainerStatuses"), *entries(status, "containerStatuses")),
    )
    return [each for each in states if each.phase == "waiting" and each.reason]


def _unscheduled(pod: Object) -> Mapping[str, object]:
    """Return the scheduler's own words about why the pod has no node yet, empty if it has none."""
    for each in entries(status_of(pod), "conditions"):
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return each
    return {}


def _text(item: Mapping[str, object], name: str) -> str:
    return str(item.get(name) or "")


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
