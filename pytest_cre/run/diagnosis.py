"""What the facts of a group say went wrong, apart from any waiting or clock. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pytest_cre.evidence.blame import failed_pods
from pytest_cre.evidence.model import JobFacts, PodFacts, Problem

NOT_STARTED = ("unschedulable", "image-pull", "config-error")
BAD_START = frozenset({"image-pull", "config-error"})
DISRUPTED = frozenset({"pod-evicted", "node-unreachable"})
OF_LOGS = frozenset({"log-gap", "log-incomplete", "log-unavailable"})
_ENDED_EARLY = frozenset({"job-failed", "pod-failed", "stalled", "vanished"})


def start_problems(
    found: Iterable[Problem], *, started: int, planned: int, timeout_s: float
) -> tuple[Problem, ...]:
    """Return why not every pod ran in time: the waiting pods' own reasons, or just the numbers."""
    reasons = _each_once(
        sorted(
            (each for each in found if each.code in NOT_STARTED),
            key=lambda each: (NOT_STARTED.index(each.code), each.pod or ""),
        )
    )
    if reasons:
        return reasons
    message = f"{started} of {planned} pods ran within {timeout_s:g} s"
    return (Problem(code="start-timeout", message=message),)


def may_resume(problems: Iterable[Problem]) -> bool:
    """Return whether a workload ended early by itself, so that a checkpoint may take it further.

    Lost nodes and pods, deadlines and failed hardware are no such end.
    """
    codes = {each.code for each in problems} - OF_LOGS
    return bool(codes) and codes <= _ENDED_EARLY


def explained(
    problems: Iterable[Problem], events: Sequence[Mapping[str, str]]
) -> tuple[Problem, ...]:
    """Return the problems; a start that nothing explains is told with the newest warning.

    A controller that cannot make what it should says so in events only. `events` are by time.
    """
    warnings = [each for each in events if each["type"] == "Warning"]
    if not warnings:
        return tuple(problems)
    words = "{object}: {reason}: {message}".format_map(warnings[-1])
    return tuple(
        replace(each, message=f"{each.message}; {words}") if each.code == "start-timeout" else each
        for each in problems
    )


def end_problems(
    job: JobFacts,
    pods: Sequence[PodFacts],
    found: Sequence[Problem],
    killed: Collection[str],
    flips: Sequence[Problem] = (),
) -> tuple[Problem, ...]:
    """Return the problems of a Job that came to an end.

    `found` are those seen on the way and those of the pods; `killed` names the pods that ended
    because they were deleted: they are never to blame. `flips` are what was told of pods after they
    had succeeded: they explain a Job that failed though none of its pods did.
    """
    kept = [each for each in found if each.code in DISRUPTED or each.code == "pod-deleted"]
    if job.terminal != "failed":
        return _each_once(kept)
    if job.reason == "DeadlineExceeded":  # it deleted its pods itself
        kept = [each for each in kept if each.code != "pod-deleted"]
        return _each_once([*kept, Problem(code="run-timeout", message=_job_words(job))])
    blameless = {*killed, *(each.pod for each in kept)}
    culprit = next(iter(failed_pods(pods, blameless=blameless)), None)
    if culprit is None:
        kept += flips
    return _each_once([*kept, _job_failed(job, culprit)])


def _job_failed(job: JobFacts, culprit: PodFacts | None) -> Problem:
    if culprit is None:
        return Problem(code="job-failed", message=_job_words(job))
    code = "no exit code" if culprit.exit_code is None else f"exit code {culprit.exit_code}"
    reason = f" ({culprit.reason})" if culprit.reason else ""
    where = f"pod {culprit.name}" + (f" on node {culprit.node}" if culprit.node else "")
    message = f"{where} ended with {code}{reason}; {_job_words(job)}"
    return Problem(code="job-failed", message=message, node=culprit.node, pod=culprit.name)


def _job_words(job: JobFacts) -> str:
    why = ": ".join(part for part in (job.reason, job.message.strip()) if part)
    return f"{job.kind} {job.name} failed" + (f" ({why})" if why else "")


def _each_once(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems without those that repeat code and words of another pod."""
    found: dict[tuple[str, str, str | None], Problem] = {}
    for each in problems:
        # An unschedulable pod says the same as its siblings; a lost one is a loss of its own.
        pod = None if each.code in NOT_STARTED else each.pod or each.node
        found.setdefault((each.code, each.message, pod), each)
    return tuple(found.values())
