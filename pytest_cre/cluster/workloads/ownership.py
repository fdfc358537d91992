"""Which pods belong to a workload: those whose chain of owners ends in its UID. Pure.

A namesake's pods, and pods that only carry our labels, have another chain.
"""

from collections.abc import Iterable, Mapping

from pytest_cre.cluster.objects import Object, ResourceKind, entries, kind_named, metadata_of

MAX_LEVELS = 4  # TrainJob, JobSet, Job, pod

Owners = Mapping[str, Object]
"""Objects between a workload and its pods, by UID."""


def owner_of(item: Object) -> tuple[ResourceKind, str, str] | None:
    """Return kind, name and UID of an object's owner, its controller first; None for no kind of ours."""
    references = entries(metadata_of(item), "ownerReferences")
    for each in sorted(references, key=lambda each: each.get("controller") is not True):
        kind = kind_named(str(each.get("apiVersion")), str(each.get("kind")))
        if kind is not None and each.get("uid"):
            return kind, str(each.get("name")), str(each["uid"])
    return None


def unknown_owner(
    item: Object, top_uid: str, owners: Owners
) -> tuple[ResourceKind, str, str] | None:
    """Return the owner at which the chain from an object to the workload is not known further.

    None: the chain is complete, whether it ends at the workload or not.
    """
    for _ in range(MAX_LEVELS):
        owner = owner_of(item)
        if owner is None or owner[2] == top_uid:
            return None
        if owner[2] not in owners:
            return owner
        item = owners[owner[2]]
    return None


def descends_from(item: Object, top_uid: str, owners: Owners) -> bool:
    """Return whether the chain of owners, as far as it is known, ends at the workload."""
    for _ in range(MAX_LEVELS):
        owner = owner_of(item)
        if owner is None:
            return False
        if owner[2] == top_uid:
            return True
        if owner[2] not in owners:
            return False
        item = owners[owner[2]]
    return False


def owned_pods(top_uid: str, pods: Iterable[Object], owners: Owners) -> tuple[Object, ...]:
    """Return the pods that descend from the workload of this UID."""
    return tuple(pod for pod in pods if top_uid and descends_from(pod, top_uid, owners))
