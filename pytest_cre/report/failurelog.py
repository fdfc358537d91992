"""The failure log: the end of the log of the pod that caused a group's failure."""

from dataclasses import dataclass

from pytest_cre.evidence.blame import was_ended_from_outside
from pytest_cre.evidence.model import GroupEvidence, LogStream, PodFacts
from pytest_cre.judge.problems import suspects
from pytest_cre.measure.causes import causes_only
from pytest_cre.report.text import brief, log_end

_FOUND_WANTING = frozenset({"run-timeout", "stalled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureLog:
    """Whose log, how its container ended, and the last 32 KiB of it at most, by lines.

    `text` is clean, without credentials, and empty where nothing of the log was captured. JSON
    documents in it are cut down to what tells a failure.
    """

    pod: str
    node: str | None = None
    exit_code: int | None = None
    reason: str = ""
    text: str = ""

    @property
    def title(self) -> str:
        """Return whose log it is and how that pod ended."""
        where = f" on node {self.node}" if self.node else ""
        how = f", exit code {self.exit_code}" if self.exit_code else ""
        why = f" ({self.reason})" if how and self.reason else ""
        return brief(f"log of pod {self.pod}{where}{how}{why}")


def failure_log(evidence: GroupEvidence) -> FailureLog | None:
    """Return the log of the pod that caused the failure; None where no pod ran.

    Without a pod to blame, or where all were ended for taking too long: that of the launcher, else
    of the first rank.
    """
    pod, log = _cause(evidence)
    if pod is None and log is None:
        return None
    return FailureLog(
        pod=pod.name if pod else log.pod if log else "",
        node=pod.node if pod else log.node if log else None,
        exit_code=pod.exit_code if pod else None,
        reason=pod.reason if pod else "",
        text=log_end(causes_only(log.data)) if log else "",
    )


def _cause(evidence: GroupEvidence) -> tuple[PodFacts | None, LogStream | None]:
    failed = suspects(evidence)
    took_too_long = any(each.code in _FOUND_WANTING for each in evidence.problems)
    if failed and not (took_too_long and was_ended_from_outside(failed[0])):
        logs = [log for log in evidence.logs if log.pod == failed[0].name and log.data]
        return failed[0], max(logs, key=lambda log: log.restart_count, default=None)
    log = min(
        (log for log in evidence.logs if log.data),
        key=lambda log: (
            log.is_context,
            log.role != "launcher",
            log.completion_index is None,
            log.completion_index or 0,
            -log.attempt,
            -log.restart_count,
            log.pod,
        ),
        default=None,
    )
    of_log = [pod for pod in evidence.pods if log is not None and pod.name == log.pod]
    return max(of_log, key=lambda pod: pod.restart_count, default=None), log
