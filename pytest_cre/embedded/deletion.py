"""Deletion: at once, after a grace period, or when all who must do something first have done it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from pytest_cre.embedded.kinds import JOB, NAMESPACE, POD, Json, Kind
from pytest_cre.embedded.podrules import is_pod_finished
from pytest_cre.embedded.status import conflict, failed_precondition, forbidden
from pytest_cre.embedded.store import Record

Propagation = Literal["Background", "Foreground", "Orphan"]
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
PERMANENT_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """How an object is to be deleted; None means: the kind's own rule."""

    grace_s: int | None = None
    propagation: Propagation | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a delete came to: the last state, and whether the object is gone already."""

    record: Record
    is_gone: bool


def rfc3339(moment: datetime) -> str:
    """Give a time as objects carry it: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def check_preconditions(record: Record, options: DeleteOptions) -> None:
    """Raise 409 when the object is not the one that was meant."""
    metadata: Json = record.obj["metadata"]
    if options.uid is not None and options.uid != metadata["uid"]:
        raise failed_precondition(
            record.kind,
            record.key[1],
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({metadata['uid']}). The object might have been deleted and then recreated",
        )
    if options.resource_version not in (None, metadata["resourceVersion"]):
        raise failed_precondition(
            record.kind,
            record.key[1],
            f"the ResourceVersion in the precondition ({options.resource_version}) does not "
            f"match the ResourceVersion in record ({metadata['resourceVersion']}). The object "
            "might have been modified",
        )


def ending(record: Record, options: DeleteOptions, now: datetime) -> Json | None:
    """Give the object marked for deletion; None when nothing holds it back."""
    metadata: Json = record.obj["metadata"]
    finalizers = _deletion_finalizers(record.kind, metadata.get("finalizers") or [], options)
    grace_s = _grace_s(record, options)
    if not finalizers and not grace_s:
        return None
    obj = record.copy()
    marked: Json = obj["metadata"]
    if finalizers:
        marked["finalizers"] = finalizers
    else:
        marked.pop("finalizers", None)
    current_s = marked.get("deletionGracePeriodSeconds")
    if "deletionTimestamp" not in marked or (current_s is not None and grace_s < current_s):
        if "deletionTimestamp" not in marked and record.kind.has_generation:
            marked["generation"] += 1
        marked["deletionTimestamp"] = rfc3339(now + timedelta(seconds=grace_s))
        marked["deletionGracePeriodSeconds"] = grace_s
    return obj


def ended(record: Record) -> Json:
    """Give the last state of an object that goes now."""
    obj = record.copy()
    if "deletionGracePeriodSeconds" in obj["metadata"]:
        obj["metadata"]["deletionGracePeriodSeconds"] = 0
    return obj


def ending_namespace(record: Record, now: datetime) -> Json:
    """Give a namespace marked for deletion; raises 403 for those that stay, 409 the second time."""
    name = record.key[1]
    if name in PERMANENT_NAMESPACES:
        raise forbidden(NAMESPACE, name, "this namespace may not be deleted")
    if record.obj["metadata"].get("deletionTimestamp"):
        raise conflict(
            NAMESPACE,
            name,
            "The system is ensuring all content is removed from this namespace.  Upon "
            "completion, this namespace will automatically be purged by the system.",
        )
    obj = record.copy()
    obj["metadata"]["deletionTimestamp"] = rfc3339(now)
    obj.setdefault("status", {})["phase"] = "Terminating"
    return obj


def _deletion_finalizers(kind: Kind, finalizers: list[str], options: DeleteOptions) -> list[str]:
    propagation: str | None = options.propagation
    if propagation is None:
        if ORPHAN in finalizers or FOREGROUND in finalizers:
            return finalizers
        # Jobs of batch/v1 leave their pods behind unless told otherwise.
        propagation = "Orphan" if kind is JOB else "Background"
    kept = [f for f in finalizers if f not in (ORPHAN, FOREGROUND)]
    if propagation == "Foreground":
        kept.append(FOREGROUND)
    elif propagation == "Orphan":
        kept.append(ORPHAN)
    return kept


def _grace_s(record: Record, options: DeleteOptions) -> int:
    """Give the seconds that the node has to end a pod; 0 where nothing is running."""
    if record.kind is not POD:
        return 0
    spec: Json = record.obj["spec"]
    if not spec.get("nodeName") or is_pod_finished(record.obj):
        return 0
    current_s: int | None = record.obj["metadata"].get("deletionGracePeriodSeconds")
    wanted_s: int = (
        options.grace_s
        if options.grace_s is not None
        else spec.get("terminationGracePeriodSeconds", 30)
    )
    if current_s is not None and options.grace_s is None:
        return current_s
    wanted_s = max(wanted_s, 0)
    return wanted_s if current_s is None else min(wanted_s, current_s)
