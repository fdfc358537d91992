"""What stands between a pod's binding and its start: images, and the objects it refers to."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from pytest_cre.simulator.api import ApiClient, ApiRefusal
from pytest_cre.simulator.container import Container
from pytest_cre.simulator.containercall import ConfigProblem
from pytest_cre.simulator.faults import Subject
from pytest_cre.simulator.world import World

Json = Any
Tell = Callable[[Json, str, str, str], Awaitable[None]]
"""Writes an Event about a pod: type, reason, message."""

_CONFIG_RETRY_S = (0.2, 5.0)
_PULL_RETRY_S = (0.5, 10.0)


class StartingPod(Protocol):
    """What is needed of the pod that starts."""

    pod: Json
    api: ApiClient
    world: World
    tell: Tell
    containers: list[Container]
    init_containers: list[Container]

    def subject(self, container: str, command: str = "") -> Subject:
        """Return a container of the pod as faults see it."""

    async def report(self) -> None:
        """Write the pod's status as it is now."""


async def pull_images(pod: StartingPod) -> None:
    """Return when no image is missing; until then the pod waits as a real one does."""
    delay_s = _PULL_RETRY_S[0]
    while missing := await _missing_images(pod):
        await pod.report()
        await asyncio.sleep(delay_s)
        delay_s = min(delay_s * 2, _PULL_RETRY_S[1])
        for container in missing:
            words = f'Back-off pulling image "{container.image}"'
            container.state.waiting = ("ImagePullBackOff", words)
            await pod.tell(pod.pod, "Warning", "BackOff", words)
        await pod.report()
        await asyncio.sleep(delay_s)


async def _missing_images(pod: StartingPod) -> Sequence[Container]:
    missing = []
    for container in pod.containers:
        subject = pod.subject(container.name)
        fault = next(pod.world.faults.holding("image-pull-back-off", subject), None)
        if fault is not None:
            words = fault.message or f'failed to pull image "{container.image}": not found'
            container.state.waiting = ("ErrImagePull", words)
            await pod.tell(pod.pod, "Warning", "Failed", words)
            missing.append(container)
    return missing


def _check_config(pod: StartingPod, container: Container) -> None:
    fault = next(pod.world.faults.holding("config-error", pod.subject(container.name)), None)
    if fault is not None:
        words = fault.message or 'configmap "settings" not found'
        raise ConfigProblem("CreateContainerConfigError", words)


async def resolve_containers(pod: StartingPod) -> None:
    """Read what the containers refer to; what is missing may still come."""

    async def fetch(plural: str, namespace: str, name: str) -> Json | None:
        try:
            return await pod.api.call("GET", f"/api/v1/namespaces/{namespace}/{plural}/{name}")
        except ApiRefusal as refusal:
            if refusal.status in (403, 404):
                return None
            raise

    for container in (*pod.init_containers, *pod.containers):
        delay_s = _CONFIG_RETRY_S[0]
        while True:
            try:
                _check_config(pod, container)
                await container.resolve(pod.pod, fetch)
                break
            except ConfigProblem as problem:
                container.state.waiting = (problem.reason, str(problem))
                is_mount = problem.reason == "ContainerCreating"
                event = "FailedMount" if is_mount else "Failed"
                await pod.tell(pod.pod, "Warning", event, str(problem))
                await pod.report()
                await asyncio.sleep(delay_s)
                delay_s = min(delay_s * 2, _CONFIG_RETRY_S[1])
        container.state.waiting = ("ContainerCreating", "")
