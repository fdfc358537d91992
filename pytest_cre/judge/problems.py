"""What the evidence of a group says before any number is looked at."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from signal import Signals

from pytest_cre.evidence.blame import failed_on_their_own, failed_pods
from pytest_cre.evidence.model import GroupEvidence, PodFacts, Problem
from pytest_cre.judge.verdict import Code

LOST = frozenset(
    {
        *("interrupted", "pod-evicted", "pod-deleted", "node-unreachable", "vanished"),
        *("node-changed", "health-unknown"),
    }
)
NEVER_RAN = ("unschedulable", "image-pull", "config-error", "start-timeout")
FAILED = ("run-timeout", "stalled", "job-failed", "pod-failed")
NOT_RESTARTED = "not-restarted"
LOG = frozenset({"log-gap", "log-incomplete", "log-unavailable"})
LAST_LINE_SHOWN = 160
NOT_REPLAYED = "NotReplayed"  # reason of an Event that simulated nodes write
_KNOWN = {"api-error", "hardware-failed", NOT_RESTARTED, *LOST, *NEVER_RAN, *FAILED, *LOG}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A verdict that stands whatever the numbers say; `code` None leaves it to them."""

    code: Code | None = None
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def evidence_finding(evidence: GroupEvidence) -> Finding:
    """Return what the group's evidence says by itself.

    In this order: API trouble is an error; hardware that failed under the workload is a fail,
    whatever else went wrong; a lost pod, node or Job, an interrupt and any problem
    of an unknown kind are inconclusive, for they explain whatever failed after them; a workload
    that never started is unmet, or inconclusive when a part of it ran; a failed or timed-out
    workload is a fail, however much of its log is missing; a Job without an end and a log that is
    not whole are inconclusive. Problems of an earlier try of a Job that succeeded are warnings, and
    so is each restart from a checkpoint, however it went on.
    """
    finding = _last_life_finding(evidence)
    warnings = (*_restart_words(evidence), *finding.warnings)
    reasons = finding.reasons
    if finding.code is not None:
        not_restarted = _words(each for each in evidence.problems if each.code == NOT_RESTARTED)
        reasons = (*reasons, *(word for word in not_restarted if word not in reasons))
    return replace(finding, reasons=reasons, warnings=warnings)


def _last_life_finding(evidence: GroupEvidence) -> Finding:
    problems = evidence.problems
    has_succeeded = evidence.job is not None and evidence.job.terminal == "succeeded"
    of = {code: [each for each in problems if each.code == code] for code in _KNOWN}
    if of["api-error"]:
        return Finding(code="error", reasons=_words(of["api-error"]))
    if of["hardware-failed"]:
        rest = [each for each in problems if each.code != "hardware-failed"]
        return Finding(code="fail", reasons=_words([*of["hardware-failed"], *rest]))
    lost = [each for each in problems if each.code in LOST or each.code not in _KNOWN]
    if lost:
        return Finding(code="inconclusive", reasons=_words(lost))
    early = [each for code in NEVER_RAN for each in of[code]]
    if early and not has_succeeded:
        return Finding(
            code="inconclusive" if _has_run(evidence) else "unmet", reasons=_words(early)
        )
    log_words = _log_words(evidence)
    failed = [each for code in FAILED for each in of[code]]
    has_failed = evidence.job is not None and evidence.job.terminal == "failed"
    if has_failed or (failed and not has_succeeded):
        return Finding(code="fail", reasons=(*_failure_words(evidence, failed), *log_words))
    if not has_succeeded:
        return Finding(code="inconclusive", reasons=("the Job has not come to an end",))
    warnings = (*_retry_words(evidence), *_words([*early, *failed]))
    if log_words:
        return Finding(code="inconclusive", reasons=log_words, warnings=warnings)
    return Finding(warnings=warnings)


def pod_words(pod: PodFacts) -> str:
    """Return how a pod ended: name, node, exit code, signal, the kubelet's words."""
    where = f"pod {pod.name} on node {pod.node}" if pod.node else f"pod {pod.name}"
    # The message may be the last 2 KiB of the log: its last line tells the end.
    last = pod.message.strip().rpartition("\n")[2][:LAST_LINE_SHOWN]
    why = ": ".join(part for part in (pod.reason, last) if part)
    if pod.exit_code is None:
        return f"{where} failed" + (f" ({why})" if why else "")
    return f"{where} ended with exit code {pod.exit_code}{_signal(pod.exit_code)}" + (
        f" ({why})" if why else ""
    )


def replay_words(evidence: GroupEvidence) -> tuple[str, ...]:
    """Return that figures are generated where a scenario has recordings, but none for the group."""
    told = (each for each in evidence.events if each.get("reason") == NOT_REPLAYED)
    return tuple(dict.fromkeys(each.get("message", "") for each in told))


def suspects(evidence: GroupEvidence) -> list[PodFacts]:
    """Return the pods that failed, the likely cause first.

    Those that failed by themselves, as far as their logs tell, and of these the one that was blamed
    while it ran, if any.
    """
    blamed = {each.pod for each in evidence.problems if each.code in FAILED}
    own = {pod.uid for pod in failed_on_their_own(evidence.last_pods, evidence.logs)}
    failed = failed_pods(evidence.last_pods, blamed=blamed)
    return sorted(failed, key=lambda pod: pod.uid not in own)


def _signal(exit_code: int) -> str:
    try:
        return f" ({Signals(exit_code - 128).name})" if exit_code > 128 else ""
    except ValueError:
        return ""


def _has_run(evidence: GroupEvidence) -> bool:
    """Return whether a container of the workload ever ran."""
    return any(log.data for log in evidence.logs) or any(
        pod.started_ns is not None or pod.exit_code is not None or pod.phase == "Running"
        for pod in evidence.pods
    )


def _words(problems: Iterable[Problem]) -> tuple[str, ...]:
    """Return the problems' own words, each once, with pod and node where they leave them out."""
    found = []
    for problem in problems:
        message = problem.message.strip() or problem.code.replace("-", " ")
        for kind, name in (("node", problem.node), ("pod", problem.pod)):
            if name and name not in message:
                message = f"{kind} {name}: {message}"
        found.append(message)
    return tuple(dict.fromkeys(found))


def _failure_words(evidence: GroupEvidence, problems: Sequence[Problem]) -> tuple[str, ...]:
    """Return why the workload failed: deadline, then the pod to blame, then the Job's words."""
    pods = suspects(evidence)
    told = {pod.name for pod in pods}
    words = list(_words(each for each in problems if each.code in ("run-timeout", "stalled")))
    if pods:
        more = f"; {len(pods)} of {len(evidence.last_pods)} pods failed" if len(pods) > 1 else ""
        words.append(pod_words(pods[0]) + more)
    words += _words(each for each in problems if each.code == "pod-failed" and each.pod not in told)
    job = evidence.job
    if job is not None and job.terminal == "failed":
        why = ": ".join(part for part in (job.reason, job.message.strip()) if part)
        words.append(f"{job.kind} {job.name} failed" + (f" ({why})" if why else ""))
    elif not words:
        words += _words(problems)
    return tuple(dict.fromkeys(words))


def _log_words(evidence: GroupEvidence) -> tuple[str, ...]:
    """Return what is missing of the logs, also where nobody reported it."""
    reported = [each for each in evidence.problems if each.code in LOG]
    words = list(_words(reported))
    told = {each.pod for each in reported}
    logs = [log for log in evidence.logs if not log.is_context]
    for log in logs:
        if log.pod in told or log.is_whole:
            continue
        words.append(
            f"the log of pod {log.pod} " + ("has a gap" if log.has_gap else "is not whole")
        )
    if not logs and not words:
        words.append("no log was captured")
    return tuple(dict.fromkeys(words))


def _restart_words(evidence: GroupEvidence) -> tuple[str, ...]:
    """Return each restart from a checkpoint, with why the life of the workload before it ended."""
    total = len(evidence.restarts)
    return tuple(
        f"restarted from the checkpoint of step {each.step} (restart {index} of {total}) after: "
        + "; ".join(_words(each.problems))
        for index, each in enumerate(evidence.restarts, start=1)
    )


def _retry_words(evidence: GroupEvidence) -> tuple[str, ...]:
    words = []
    first = evidence.restarts[-1].last_attempt + 1 if evidence.restarts else 0
    retried = [pod for pod in evidence.last_pods if pod.attempt > first or pod.restart_count > 0]
    failed = suspects(evidence)
    if failed:
        words.append(f"the Job succeeded after a failure: {pod_words(failed[0])}")
    elif retried:
        words.append(f"the Job succeeded after a restart of pod {retried[0].name}")
    return tuple(words)
