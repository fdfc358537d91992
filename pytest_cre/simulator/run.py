"""The simulator's door: nodes of a scenario, played to any API server."""

import asyncio
from typing import TYPE_CHECKING

from pytest_cre.simulator.scenario import load_scenario

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["load_scenario", "run_simulator"]


async def run_simulator(
    *,
    server: str,
    token: str | None,
    ca_file: str | None,
    scenario: str,
    seed: int | None,
    ready: asyncio.Event,
    has_api_faults: bool = False,
) -> None:
    """Play a scenario's nodes until cancelled; `ready` is set once all of them are Ready.

    `scenario` is a shipped name or the path of a YAML file, `seed` stands above the scenario's own.
    `has_api_faults`: the API server plays the scenario's `apiFaults`, which none but the embedded
    one can. Raises `ValueError` in one line for a scenario that is unknown or wrong, before anything
    starts.
    """
    loaded = load_scenario(scenario)
    if loaded.api_faults and not has_api_faults:
        raise ValueError(
            f"scenario {scenario!r} has apiFaults, which only the embedded cluster can play"
        )
    from pytest_cre.simulator.api import ApiClient
    from pytest_cre.simulator.kubelet import Kubelet
    from pytest_cre.simulator.world import World

    world = World(loaded, loaded.seed if seed is None else seed)
    try:
        async with ApiClient(server, token=token, ca_file=ca_file) as api:
            await Kubelet(api, world).run(ready)
    except BaseExceptionGroup as group:
        raise _first(group.exceptions) from None


def _first(problems: "Iterable[BaseException]") -> BaseException:
    """Return the first of the problems that happened at once."""
    first = next(iter(problems))
    return _first(first.exceptions) if isinstance(first, BaseExceptionGroup) else first
