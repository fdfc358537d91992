"""Names and labels of the objects that a run creates: deterministic, and never too long."""

import hashlib
import re
from collections.abc import Mapping

from pytest_cre.errors import UsageProblem
from pytest_cre.plan.model import ATTEMPT_LABEL, ENTRY_LABEL, GROUP_LABEL, MANAGED_BY, RUN_LABEL

MAX_NAME = 63  # a DNS label: what a pod's host name may be
MAX_RUN_ID = 20

_RUN_ID = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_DIGEST_CHARACTERS = 6
_DIAGNOSIS_GROUP = re.compile(r"[a-z-]+-r([0-9]+)-([0-9]+)")


def check_run_id(run_id: str) -> str:
    """Return the run id if it can be part of a name and a label; raises `UsageProblem`."""
    if len(run_id) > MAX_RUN_ID or not _RUN_ID.fullmatch(run_id):
        raise UsageProblem(
            f"run id {run_id[:40]!r} must be 1 to {MAX_RUN_ID} characters of a-z, 0-9 and inner '-'"
        )
    return run_id


def owner_name(run_id: str) -> str:
    """Return the name of the ConfigMap that owns everything a run creates."""
    return f"cre-{check_run_id(run_id)}"


def job_name(
    *, run_id: str, entry: str, scale: str, group: str, attempt: int, pod_suffix: str
) -> str:
    """Return the name of a group's workload; its pods' names fit too, whatever their index.

    `pod_suffix` is the longest that the cluster appends for a pod of its kind. Only the run id
    depends on the run: another one put in its place gives that run's name. What is cut off or left
    out is told apart by the digest of the whole identity.
    """
    identity = "\0".join((entry, scale, group, str(attempt)))
    digest = hashlib.sha256(identity.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    short_group = _short(group)
    room = MAX_NAME - len(pod_suffix) - len(f"cre--{short_group}--{digest}") - MAX_RUN_ID
    whole = re.sub(r"[^a-z0-9]+", "-", entry.partition("/")[2].lower())
    variant = whole[: max(room, 1)].strip("-")
    return "-".join((owner_name(run_id), variant, short_group, digest))


def _short(group: str) -> str:
    """Return a few characters for a group: `g0`, `g1o`, and `c5-2` for `confirmation-r5-2`."""
    of_diagnosis = _DIAGNOSIS_GROUP.fullmatch(group)
    if of_diagnosis is not None:
        return f"{group[0]}{of_diagnosis[1]}-{of_diagnosis[2]}"
    return group.replace("group-", "g").replace("-overflow", "o")


def run_labels(run_id: str) -> dict[str, str]:
    """Return the labels of an object that belongs to a run as a whole."""
    return {MANAGED_BY[0]: MANAGED_BY[1], RUN_LABEL: check_run_id(run_id)}


def group_labels(*, run_id: str, entry_label: str, group: str, attempt: int) -> Mapping[str, str]:
    """Return the labels of every object of one group's attempt, pods included."""
    return run_labels(run_id) | {
        ENTRY_LABEL: entry_label,
        GROUP_LABEL: group,
        ATTEMPT_LABEL: str(attempt),
    }
