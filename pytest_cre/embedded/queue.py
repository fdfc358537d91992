"""The loop that every controller runs in: keys that may be out of order, set right one by one."""

import asyncio
import logging
from typing import Protocol

from pytest_cre.embedded.events import EventRecorder
from pytest_cre.embedded.kinds import Kind
from pytest_cre.embedded.store import Key, Store

_LOG = logging.getLogger("pytest_cre.embedded")
_FIRST_RETRY_S = 0.05
_LONGEST_RETRY_S = 10.0


class Mark(Protocol):
    """Has a key looked at, at once or a little later together with what else happens to it."""

    def __call__(self, key: Key, *, after_s: float = 0.0) -> None:
        """Note that an object may be out of order."""
        ...


class Controller(Protocol):
    """Brings objects of one kind to where they should be, from what the store says now."""

    @property
    def name(self) -> str:
        """What log lines call it."""
        ...

    @property
    def kind(self) -> Kind:
        """The kind whose objects the keys name."""
        ...

    def start(self, mark: Mark) -> None:
        """Subscribe to all changes that matter and `mark` the keys they concern."""
        ...

    def reconcile(self, key: Key) -> float | None:
        """Set one object right; gives the seconds after which to look again, None for never."""
        ...


class ControlLoop:
    """Runs one controller. A failure concerns its key only, is reported, and is tried again."""

    def __init__(self, controller: Controller, store: Store, recorder: EventRecorder) -> None:
        self.controller = controller
        self._store = store
        self._recorder = recorder
        self._dirty: dict[Key, None] = {}
        self._wake = asyncio.Event()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}

    def mark(self, key: Key, *, after_s: float = 0.0) -> None:
        """Have a key looked at; a later mark does not put off an earlier one."""
        if after_s:
            self._ring_after(key, after_s)
            return
        self._dirty[key] = None
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled."""
        self.controller.start(self.mark)
        try:
            while True:
                await self._wake.wait()
                while self._dirty:
                    key = next(iter(self._dirty))
                    del self._dirty[key]
                    self._work(key)
                    # Requests and other controllers get their turn between two keys.
                    await asyncio.sleep(0)
                self._wake.clear()
        finally:
            for timer in self._timers.values():
                timer.cancel()

    def _work(self, key: Key) -> None:
        try:
            again_s = self.controller.reconcile(key)
        except Exception as error:  # noqa: BLE001 - one bad object must not stop the others
            again_s = self._report(key, error)
        else:
            self._failures.pop(key, None)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if again_s is not None:
            self._ring_after(key, max(again_s, 0.0))

    def _ring_after(self, key: Key, delay_s: float) -> None:
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + delay_s:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(delay_s, self._ring, key)

    def _ring(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.mark(key)

    def _report(self, key: Key, error: Exception) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        _LOG.error("%s controller: %s/%s: %s", self.controller.name, *key, error, exc_info=error)
        record = self._store.get(self.controller.kind, key)
        if record is not None:
            text = f"{self.controller.name} controller: {type(error).__name__}: {error}"
            self._recorder.record(record, "Warning", "ReconcileError", text)
        return min(_FIRST_RETRY_S * 2.0 ** min(failures, 16), _LONGEST_RETRY_S)
