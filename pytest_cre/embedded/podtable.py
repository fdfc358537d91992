"""One pod as a row of `kubectl get pods`."""

from collections.abc import Callable
from typing import Any

from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.podstate import pod_condition


def pod_cells(pod: Json, age: str, age_since: Callable[[object], str]) -> list[Any]:
    """Give the cells: name, ready, status, restarts, age, IP, node, nominated node, gates."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    containers: list[Json] = status.get("containerStatuses") or []
    restarts = sum(c.get("restartCount", 0) for c in containers)
    last_restart = max(
        (
            finished
            for c in containers
            if (finished := _terminated(c.get("lastState")).get("finishedAt"))
        ),
        default=None,
    )
    restarts_text = f"{restarts} ({age_since(last_restart)} ago)" if last_restart else str(restarts)
    running = [c for c in containers if (c.get("state") or {}).get("running") is not None]
    ready = sum(1 for c in running if c.get("ready"))
    return [
        pod["metadata"]["name"],
        f"{ready}/{len(spec.get('containers', []))}",
        _words(pod, containers),
        restarts_text,
        age,
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        "<none>",
    ]


def _words(pod: Json, containers: list[Json]) -> str:
    """Say the pod's state in the word that explains most."""
    status = pod.get("status", {})
    words: str = status.get("reason") or status.get("phase") or "Unknown"
    scheduled = pod_condition(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
        words = "SchedulingGated"
    initializing = _init_words(pod)
    if initializing:
        words = initializing
    else:
        has_running, error = False, ""
        for container in reversed(containers):
            state = container.get("state") or {}
            waiting, terminated = state.get("waiting") or {}, _terminated(state)
            if waiting.get("reason"):
                words = waiting["reason"]
            elif terminated:
                words = _end_words(terminated)
                error = words if terminated.get("exitCode") else error
            elif container.get("ready") and state.get("running") is not None:
                has_running = True
        if words == "Completed":
            is_ready = (pod_condition(pod, "Ready") or {}).get("status") == "True"
            if has_running and is_ready:
                words = "Running"
            else:
                words = error or ("NotReady" if has_running else words)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return words


def _init_words(pod: Json) -> str:
    total = len(pod.get("spec", {}).get("initContainers", []))
    for index, container in enumerate(pod.get("status", {}).get("initContainerStatuses") or []):
        state = container.get("state") or {}
        terminated = _terminated(state)
        if terminated and terminated.get("exitCode") == 0:
            continue
        if terminated:
            return f"Init:{_end_words(terminated)}"
        reason = (state.get("waiting") or {}).get("reason", "")
        if reason and reason != "PodInitializing":
            return f"Init:{reason}"
        return f"Init:{index}/{total}"
    return ""


def _end_words(terminated: Json) -> str:
    if terminated.get("reason"):
        reason: str = terminated["reason"]
        return reason
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _terminated(state: object) -> Json:
    terminated = state.get("terminated") if isinstance(state, dict) else None
    return terminated if isinstance(terminated, dict) else {}
