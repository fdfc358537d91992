"""Top objects as facts: what all kinds have in common."""

from collections.abc import Iterable, Sequence

from pytest_cre.cluster.objects import (
    JOB,
    Object,
    condition,
    kind_named,
    metadata_of,
    parse_time_ns,
    status_of,
)
from pytest_cre.evidence.model import JobFacts, Terminal


def facts_of(
    item: Object,
    kind: str,
    *,
    succeeded: str,
    failed: str,
    deciding: Sequence[str] = (),
    owned: Iterable[Object] = (),
) -> JobFacts:
    """Return the facts of a top object whose end is one of two conditions.

    `deciding` are conditions that tell the outcome before its end. Of a failure the Job in `owned`
    that failed knows more than what stands above it, which only counts Jobs.
    """
    metadata, status = metadata_of(item), status_of(item)
    # Where both are told, the failure counts.
    is_failed = condition(item, failed)
    is_succeeded = None if is_failed else condition(item, succeeded)
    terminal: Terminal = "failed" if is_failed else "succeeded" if is_succeeded else "none"
    last = is_failed or is_succeeded or {}
    why = last or condition(item, *deciding) or {}
    reason, message = str(why.get("reason") or ""), str(why.get("message") or "")
    if terminal == "failed":
        cause = _failed_job(owned)
        if cause:
            reason = str(cause.get("reason") or reason)
            words = (message, str(cause.get("message") or ""))
            message = ": ".join(part for part in words if part)
    return JobFacts(
        kind=kind,
        name=str(metadata.get("name") or ""),
        uid=str(metadata.get("uid") or ""),
        terminal=terminal,
        reason=reason,
        message=message,
        created_ns=parse_time_ns(metadata.get("creationTimestamp")),
        started_ns=parse_time_ns(status.get("startTime")),
        terminal_ns=parse_time_ns(last.get("lastTransitionTime")),
    )


def _failed_job(owned: Iterable[Object]) -> Object:
    for each in owned:
        if kind_named(str(each.get("apiVersion")), str(each.get("kind"))) is JOB:
            failed = condition(each, "Failed")
            if failed is not None:
                return failed
    return {}
