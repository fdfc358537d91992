"""The whole small cluster in one event loop: store, HTTP front, scheduler, controllers."""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aiohttp import web

from pytest_cre.embedded.answers import bounded, guarded
from pytest_cre.embedded.controllers.evictions import PodCollector, TaintEviction
from pytest_cre.embedded.controllers.expiry import EventExpiry, JobExpiry
from pytest_cre.embedded.controllers.garbage import GarbageCollector
from pytest_cre.embedded.controllers.job import JobController
from pytest_cre.embedded.controllers.namespaces import NamespaceController
from pytest_cre.embedded.controllers.nodes import NodeController
from pytest_cre.embedded.deletion import OWN_NAMESPACES
from pytest_cre.embedded.door import Door
from pytest_cre.embedded.events import EventRecorder, ScheduleRecorder
from pytest_cre.embedded.faults import FaultBook, faulty
from pytest_cre.embedded.http import ApiFront
from pytest_cre.embedded.kinds import KINDS, NAMESPACE
from pytest_cre.embedded.listing import Lister
from pytest_cre.embedded.owners import OwnerIndex
from pytest_cre.embedded.queue import Controller, ControlLoop
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.residents import Residents
from pytest_cre.embedded.scheduler import Scheduler
from pytest_cre.embedded.store import Store

if TYPE_CHECKING:
    from aiohttp import ClientSession

    from pytest_cre.embedded.certificate import ServingIdentity

_USER = "pytest-cre-embedded"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """What can be set about an embedded cluster."""

    token: str
    port: int = 0
    seed: int | None = None
    history_events: int = 2048
    page_lifetime_s: float = 300.0
    bookmark_interval_s: float = 30.0
    node_grace_s: float = 40.0
    job_backoff_s: float = 10.0
    event_lifetime_s: float = 3600.0


@contextlib.asynccontextmanager
async def running_cluster(
    settings: ClusterSettings, identity: "ServingIdentity", faults: FaultBook | None = None
) -> AsyncIterator[str]:
    """Serve on 127.0.0.1 while the context lasts; gives the server's URL.

    `faults` are let befall the requests, and note what they hit.
    """
    store = Store(history_events=settings.history_events)
    registry = Registry(
        store,
        clock=lambda: datetime.now(UTC),
        rng=random.Random(settings.seed),  # noqa: S311
    )
    kubelets = _Kubelets()
    front = ApiFront(
        registry,
        Lister(store, snapshot_lifetime_s=settings.page_lifetime_s),
        kubelet_session=kubelets.session,
        bookmark_interval_s=settings.bookmark_interval_s,
        user=_USER,
    )
    door = Door(identity)
    handler = faulty(bounded(front.handle), faults or FaultBook(), registry, door.shut)
    server = web.Server(
        guarded(handler, token=settings.token),
        handler_cancellation=True,
        access_log=None,
    )
    # Open watches and logs are cut after this time; 0 would mean to wait for them.
    runner = web.ServerRunner(server, shutdown_timeout=0.05)
    loops = control_loops(registry, settings)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(kubelets.close)
        for loop in loops:
            await stack.enter_async_context(_running(loop))
        # The loops subscribe when they first run; only then may there be something to see.
        await asyncio.sleep(0)
        for name in OWN_NAMESPACES:
            registry.create(NAMESPACE, "", {"metadata": {"name": name}})
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await door.open(runner, settings.port)
        stack.push_async_callback(door.close)
        yield f"https://127.0.0.1:{door.port}"


def control_loops(registry: Registry, settings: ClusterSettings) -> list[ControlLoop]:
    """Make all controllers, not yet started."""
    owners, residents = OwnerIndex(registry.store), Residents(registry.store)
    manager = EventRecorder(registry, "controllermanager")
    scheduler_events = ScheduleRecorder(registry, "default-scheduler")
    job_events = EventRecorder(registry, "job-controller")
    node_events = EventRecorder(registry, "node-controller")
    taint_events = EventRecorder(registry, "taint-eviction-controller", names_only=True)
    controllers: list[tuple[Controller, EventRecorder]] = [
        (Scheduler(registry, scheduler_events), scheduler_events),
        (
            JobController(registry, owners, job_events, backoff_base_s=settings.job_backoff_s),
            job_events,
        ),
        (JobExpiry(registry), manager),
        (EventExpiry(registry, lifetime_s=settings.event_lifetime_s), manager),
        (NamespaceController(registry), manager),
        (
            NodeController(
                registry,
                node_events,
                residents,
                grace_s=settings.node_grace_s,
                monotonic=time.monotonic,
            ),
            node_events,
        ),
        (TaintEviction(registry, taint_events, residents), taint_events),
        (
            PodCollector(
                registry,
                residents,
                quarantine_s=settings.node_grace_s,
                monotonic=time.monotonic,
            ),
            manager,
        ),
        *((GarbageCollector(registry, owners, kind), manager) for kind in KINDS),
    ]
    return [
        ControlLoop(controller, registry.store, recorder) for controller, recorder in controllers
    ]


@contextlib.asynccontextmanager
async def _running(loop: ControlLoop) -> AsyncIterator[None]:
    task = asyncio.create_task(loop.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class _Kubelets:
    """Connections to the nodes, opened when the first log is asked for."""

    def __init__(self) -> None:
        self._session: ClientSession | None = None

    def session(self) -> "ClientSession":
        """Give the one session for all nodes."""
        from aiohttp import ClientSession, TCPConnector

        if self._session is None:
            # A follower holds its connection for as long as its pod runs.
            self._session = ClientSession(connector=TCPConnector(limit=0), auto_decompress=False)
        return self._session

    async def close(self) -> None:
        """End all streams."""
        if self._session is not None:
            await self._session.close()
