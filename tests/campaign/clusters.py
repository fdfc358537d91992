"""Simulated nodes with faults, all in one event loop of this process, and the logs as written."""

import asyncio
import contextlib
import gc
import logging
import threading
import warnings
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pytest_cre.embedded.certificate import new_identity
from pytest_cre.embedded.faults import FaultBook
from pytest_cre.embedded.kubeconfig import write_kubeconfig
from pytest_cre.embedded.server import ClusterSettings, running_cluster
from pytest_cre.simulator.api import ApiClient
from pytest_cre.simulator.faults import Subject
from pytest_cre.simulator.kubelet import Kubelet
from pytest_cre.simulator.logbuffer import LogBuffer, Record, rendered
from pytest_cre.simulator.scenario import Scenario, load_scenario
from pytest_cre.simulator.world import World

TOKEN = "campaign"


class KeptLog(LogBuffer):
    """A log that keeps every record, whatever rotation and faults do to it."""

    def __init__(self, *arguments: object, **more: object) -> None:
        super().__init__(*arguments, **more)
        self.all: list[Record] = []

    def _add(self, record: Record) -> None:
        self.all.append(record)
        super()._add(record)

    @property
    def source(self) -> bytes:
        """Return what was written, each record with its time."""
        return b"".join(rendered(record) for record in self.all)


@dataclass(frozen=True)
class Sources:
    """What the containers wrote, by pod and restart; pods of one name have logs of their own."""

    kept: dict[tuple[str, int], list[KeptLog]] = field(default_factory=lambda: defaultdict(list))

    def new_log(self, subject: Subject, restarts: int, clock_ns: Callable[[], int]) -> KeptLog:
        """Return the log of a container that starts."""
        log = KeptLog(clock_ns)
        self.kept[subject.pod, restarts].append(log)
        return log

    def of(self, pod: str, restarts: int) -> list[bytes]:
        """Return what pods of this name wrote in this life."""
        return [log.source for log in self.kept.get((pod, restarts), ())]


class ListenedClient(ApiClient):
    """What kubelets speak through. `ends`: the phase first told of each pod's end, by UID."""

    def __init__(self, *arguments: object, **more: object) -> None:
        super().__init__(*arguments, **more)
        self.ends: dict[str, str] = {}

    async def call(self, verb: str, path: str, body: object = None, **more: object) -> object:
        """Call, and note the end of a pod that is told so."""
        if path.endswith("/status") and "/pods/" in path and isinstance(body, dict):
            phase = body.get("status", {}).get("phase")
            if phase in ("Succeeded", "Failed"):
                self.ends.setdefault(body["metadata"]["uid"], phase)
        return await super().call(verb, path, body, **more)


NOISY = ("aiohttp.server", "asyncio", "pytest_cre")  # loggers that tell of every fault


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A running cluster, seen from within. `world` has the nodes that are ours."""

    kubeconfig: Path  # of the harness
    world: World
    sources: Sources
    ends: Mapping[str, str]  # the phase that was first told of each pod's end, by UID
    api_faults: FaultBook = field(default_factory=FaultBook)


class Clusters:
    """The event loop that serves them all; here embedded clusters, one for each scenario."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # connections that faults have cut
        self._levels = {name: logging.getLogger(name).level for name in NOISY}
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._identity = new_identity()

    def __enter__(self) -> Self:
        for name in NOISY:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(_end_all(), self._loop).result(timeout=30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        with warnings.catch_warnings(action="ignore"):
            gc.collect()  # connections that faults have left half open
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(level)

    @contextmanager
    def running(self, scenario: Path, seed: int, folder: Path) -> Iterator[Cluster]:
        """Serve a scenario while the context lasts."""
        ready: Future[Cluster] = Future()
        stop = asyncio.Event()
        serving = asyncio.run_coroutine_threadsafe(
            self._serve(load_scenario(str(scenario)), seed, folder, ready, stop), self._loop
        )
        serving.add_done_callback(lambda done: _pass_on(done, ready))
        try:
            yield ready.result(timeout=60)
        finally:
            self._loop.call_soon_threadsafe(stop.set)
            serving.result(timeout=60)

    async def _serve(
        self,
        scenario: Scenario,
        seed: int,
        folder: Path,
        ready: "Future[Cluster]",
        stop: asyncio.Event,
    ) -> None:
        async with self._cluster(scenario, seed, folder) as cluster:
            ready.set_result(cluster)
            await stop.wait()

    @asynccontextmanager
    async def _cluster(self, scenario: Scenario, seed: int, folder: Path) -> AsyncIterator[Cluster]:
        """Serve a scenario; its logs are kept."""
        book = FaultBook.of(scenario.api_faults)
        settings = ClusterSettings(
            token=TOKEN, seed=seed, node_grace_s=9.0, job_backoff_s=0.2, bookmark_interval_s=1.0
        )
        authority = folder / "authority.pem"
        authority.write_bytes(self._identity.authority_pem)
        async with (
            running_cluster(settings, self._identity, book) as url,
            ListenedClient(url, token=TOKEN, ca_file=str(authority)) as api,
            playing_nodes(api, scenario, seed, lease_period_s=0.5) as (world, sources),
        ):
            kubeconfig = folder / "kubeconfig"
            write_kubeconfig(
                kubeconfig, server=url, token=TOKEN, authority_pem=self._identity.authority_pem
            )
            yield Cluster(
                kubeconfig=kubeconfig,
                world=world,
                sources=sources,
                ends=api.ends,
                api_faults=book,
            )


@asynccontextmanager
async def playing_nodes(
    api: ApiClient, scenario: Scenario, seed: int, *, lease_period_s: float
) -> AsyncIterator[tuple[World, Sources]]:
    """Play a scenario's nodes to an API server, from when they are ready."""
    world, sources = World(scenario, seed), Sources()
    world.new_log = sources.new_log
    is_up = asyncio.Event()
    playing = asyncio.create_task(Kubelet(api, world, lease_period_s=lease_period_s).run(is_up))
    try:
        await is_up.wait()
        yield world, sources
    finally:
        playing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await playing


async def _end_all() -> None:
    """End what faults have left hanging."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=5)
    await asyncio.sleep(0.1)  # connections close in the next rounds of the loop


def _pass_on(done: "Future[None]", ready: "Future[Cluster]") -> None:
    problem = done.exception()
    if problem is not None and not ready.done():
        ready.set_exception(problem)
