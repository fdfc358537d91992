"""Parts of a pod's status, as a kubelet writes them."""

from dataclasses import dataclass, field
from typing import Any

from pytest_cre.simulator.nodeobjects import NODE_ADDRESS, now_text

Json = Any

SIGTERM_EXIT = 143
SIGKILL_EXIT = 137


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerExit:
    """How a container ended."""

    code: int
    reason: str = ""
    message: str = ""

    @property
    def shown_reason(self) -> str:
        """Return the reason as status shows it."""
        return self.reason or ("Completed" if self.code == 0 else "Error")


@dataclass(slots=True, kw_only=True)
class ContainerState:
    """What status says about one container."""

    name: str
    image: str
    identity: str  # of the running or last ended container
    waiting: tuple[str, str] = ("ContainerCreating", "")
    started_at: str | None = None
    finished_at: str | None = None
    ended: ContainerExit | None = None
    last: Json = field(default_factory=dict)  # the state before the last restart
    restarts: int = 0

    @property
    def is_running(self) -> bool:
        """Return whether the container runs now."""
        return self.started_at is not None and self.ended is None

    def state(self) -> Json:
        """Return the state as an object."""
        if self.ended is not None:
            terminated = {
                "exitCode": self.ended.code,
                "reason": self.ended.shown_reason,
                "startedAt": self.started_at,
                "finishedAt": self.finished_at,
                "containerID": self.identity,
            }
            if self.ended.message:
                terminated["message"] = self.ended.message
            return {"terminated": terminated}
        if self.started_at is not None:
            return {"running": {"startedAt": self.started_at}}
        reason, message = self.waiting
        return {"waiting": {"reason": reason, **({"message": message} if message else {})}}

    def status(self) -> Json:
        """Return the container status."""
        has_started = self.started_at is not None
        return {
            "name": self.name,
            "image": self.image,
            "imageID": f"simulated://{self.image}" if has_started else "",
            "containerID": self.identity if has_started else "",
            "state": self.state(),
            "lastState": self.last,
            "ready": self.is_running,
            "started": self.is_running,
            "restartCount": self.restarts,
        }

    def end(self, ended: ContainerExit) -> None:
        """Note that the container ended now."""
        self.ended = ended
        self.finished_at = now_text()
        self.started_at = self.started_at or self.finished_at

    def restart(self, identity: str) -> None:
        """Forget the ended container, but for its last state."""
        self.last = self.state()
        self.restarts += 1
        self.identity = identity
        self.started_at = self.finished_at = self.ended = None
        self.waiting = ("CrashLoopBackOff", "back-off restarting failed container")


def condition(kind: str, is_true: bool, reason: str = "", message: str = "") -> Json:
    """Return a pod condition that changed now."""
    return {
        "type": kind,
        "status": "True" if is_true else "False",
        "lastProbeTime": None,
        "lastTransitionTime": now_text(),
        **({"reason": reason} if reason else {}),
        **({"message": message} if message else {}),
    }


def pod_status(
    phase: str,
    *,
    states: list[ContainerState],
    init_states: list[ContainerState],
    started_at: str | None,
    pod_ip: str | None,
    is_initialized: bool,
    conditions: tuple[Json, ...] = (),
    reason: str = "",
    message: str = "",
) -> Json:
    """Return the status of a pod; conditions of others, such as PodScheduled, are left alone."""
    is_ready = phase == "Running" and all(state.is_running for state in states)
    why = "PodCompleted" if phase == "Succeeded" else "PodFailed" if phase == "Failed" else ""
    unready = why or "ContainersNotReady"
    status: Json = {
        "phase": phase,
        "hostIP": NODE_ADDRESS,
        "hostIPs": [{"ip": NODE_ADDRESS}],
        "conditions": [
            condition("PodReadyToStartContainers", phase == "Running"),
            condition(
                "Initialized", is_initialized, "" if is_initialized else "ContainersNotInitialized"
            ),
            condition("Ready", is_ready, "" if is_ready else unready),
            condition("ContainersReady", is_ready, "" if is_ready else unready),
            *conditions,
        ],
        "containerStatuses": [state.status() for state in states],
    }
    if init_states:
        status["initContainerStatuses"] = [state.status() for state in init_states]
    if started_at is not None:
        status["startTime"] = started_at
    if pod_ip is not None and phase != "Pending":
        status |= {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}
    if reason:
        status |= {"reason": reason, "message": message}
    return status
