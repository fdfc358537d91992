"""Answers that are right, but in shapes that careless clients do not expect."""

import json
from collections.abc import Callable, Mapping

from aiohttp import web

from pytest_cre.embedded.kinds import Json

# Lists that servers may send as null; only those that are absent or empty are touched.
_LISTS = {
    "metadata": ("finalizers", "managedFields", "ownerReferences"),
    "spec": ("taints", "tolerations", "imagePullSecrets", "podCIDRs"),
    "status": ("conditions", "addresses", "containerStatuses", "initContainerStatuses", "images"),
}


def distorted(response: web.Response, action: str) -> web.Response:
    """Give a JSON answer with every object in it distorted; others as they are."""
    body = response.body
    if response.content_type != "application/json" or not isinstance(body, bytes):
        return response
    answer = json.loads(body)
    if isinstance(answer, dict) and response.status < 400:
        response.body = json.dumps(distort(answer, action)).encode()
    return response


def distort(answer: Json, action: str) -> Json:
    """Give an object, or a list of them, as the action distorts it."""
    change = DISTORTIONS[action]
    if "items" in answer:
        items = answer["items"]
        for item in items:
            change(item)
        if not items and action == "null-lists":
            answer["items"] = None
        return answer
    change(answer)
    return answer


def _null_lists(item: Json) -> None:
    for part, names in _LISTS.items():
        holder = item.get(part)
        if isinstance(holder, dict):
            for name in names:
                holder[name] = holder.get(name) or None


def _unknown_values(item: Json) -> None:
    status = item.get("status")
    if isinstance(status, dict):
        # Such as node-problem-detectors and newer kubelets report.
        strange = {"type": "CorruptDockerOverlay2", "status": "Perhaps", "reason": "Novelty"}
        status["conditions"] = [*(status.get("conditions") or ()), strange]
        status["qosClass"] = "Novelty"
    item.setdefault("metadata", {}).setdefault("labels", {})
    spec = item.get("spec")
    if isinstance(spec, dict):
        spec["priorityPolicy"] = "Novelty"


def _unknown_fields(item: Json) -> None:
    strange = {"list": [1, None, {"deep": []}], "flag": True}
    item["novelty"] = strange
    for part in ("metadata", "spec", "status"):
        if isinstance(item.get(part), dict):
            item[part]["novelty"] = strange


DISTORTIONS: Mapping[str, Callable[[Json], None]] = {
    "null-lists": _null_lists,
    "unknown-fields": _unknown_fields,
    "unknown-values": _unknown_values,
}
