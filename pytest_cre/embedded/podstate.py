"""What a pod's status says, and how conditions are set in it (or in any object that has them)."""

from pytest_cre.embedded.kinds import Json


def is_pod_finished(pod: Json) -> bool:
    """Whether the pod has ended for good."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def pod_condition(pod: Json, condition_type: str) -> Json | None:
    """Give one condition of a pod (or of any object that has conditions)."""
    conditions: list[Json] = pod.get("status", {}).get("conditions") or []
    return next((c for c in conditions if c.get("type") == condition_type), None)


def set_condition(obj: Json, condition: Json, now: str) -> None:
    """Add or replace one condition in place; the transition time moves with the status only."""
    conditions: list[Json] = obj.setdefault("status", {}).setdefault("conditions", [])
    for index, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            since = old.get("lastTransitionTime") or now
            moved = old.get("status") != condition["status"]
            conditions[index] = {**condition, "lastTransitionTime": now if moved else since}
            return
    conditions.append({**condition, "lastTransitionTime": now})


def with_condition(pod: Json, condition: Json, now: str) -> Json:
    """Give a pod with one condition added or replaced; the pod itself is not changed.

    Its other parts are shared with the old one: a pod's spec can be large, and stays as it is.
    """
    status = {**pod.get("status", {})}
    status["conditions"] = list(status.get("conditions") or [])
    changed = {**pod, "metadata": {**pod["metadata"]}, "status": status}
    set_condition(changed, {"lastProbeTime": None, **condition}, now)
    return changed
