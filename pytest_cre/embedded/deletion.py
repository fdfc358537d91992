"""Deletion: at once, after a grace period, or when all who must do something first have done it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from pytest_cre.embedded.kinds import JOB, NAMESPACE, POD, Json, Kind
from pytest_cre.embedded.podstate import is_pod_finished
from pytest_cre.embedded.status import failed_precondition, forbidden
from pytest_cre.embedded.store import Record

Propagation = Literal["Background", "Foreground", "Orphan"]
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
# The server makes these itself, and the first three may never go.
OWN_NAMESPACES = ("default", "kube-public", "kube-system", "kube-node-lease")
_PERMANENT_NAMESPACES = OWN_NAMESPACES[:3]


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
    marked: Json = dict(metadata)
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
    return {**record.obj, "metadata": marked}


def ended(record: Record, now: datetime) -> Json:
    """Give the last state of an object that goes now; of pods it tells of their deletion."""
    metadata = dict(record.obj["metadata"])
    if record.kind is POD and "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = rfc3339(now)
        metadata["generation"] += 1
        metadata["deletionGracePeriodSeconds"] = 0
    if "deletionGracePeriodSeconds" in metadata:
        metadata["deletionGracePeriodSeconds"] = 0
    return {**record.obj, "metadata": metadata}


def ending_namespace(record: Record, now: datetime) -> Json:
    """Give a namespace marked for deletion; raises 403 for those that stay."""
    name = record.key[1]
    if name in _PERMANENT_NAMESPACES:
        raise forbidden(NAMESPACE, name, "this namespace may not be deleted")
    if record.obj["metadata"].get("deletionTimestamp"):
        return record.obj
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
    wanted_s = 1 if wanted_s < 0 else wanted_s
    return wanted_s if current_s is None else min(wanted_s, current_s)
