"""Interrupts: reports are written and objects are deleted, whatever signal it is and how often.

The first of SIGINT, SIGTERM and SIGHUP raises KeyboardInterrupt. What follows is clean-up and
reports, which a further one must not break: the second hastens them, after the third nothing is waited for.
"""

import atexit
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
QUIET_S = 60.0  # is longer than our clean-up takes: what hangs then is not ours


class Interrupts:
    """The interrupts of this process. Handlers change it in the main thread; any thread reads it."""

    def __init__(self) -> None:
        self.count = 0
        self._quiet_since_s: float | None = None

    @property
    def is_hastened(self) -> bool:
        """Return whether the clean-up is to take no longer than it must."""
        return self.count >= 2

    @property
    def is_given_up(self) -> bool:
        """Return whether nothing is waited for: deletes are asked for, and reports written."""
        return self.count >= 3

    def reset(self) -> None:
        """Begin anew: what there was has been dealt with, or somebody has swallowed it."""
        self.count = 0
        self._quiet_since_s = None

    def be_quiet(self) -> None:
        """Raise nothing from now on, unless that takes too long."""
        if self._quiet_since_s is None:
            self._quiet_since_s = time.monotonic()

    def take(self, signum: int, _frame: FrameType | None) -> None:
        """Handle a signal: raise KeyboardInterrupt for the first, count the others."""
        since_s = self._quiet_since_s
        self.count += 1
        self.be_quiet()
        if since_s is None or time.monotonic() - since_s > QUIET_S:
            raise KeyboardInterrupt(*_words(signum))


INTERRUPTS = Interrupts()


def turn_signals_into_interrupts(*, is_worker: bool = False) -> Callable[[], None]:
    """Handle SIGINT, SIGTERM and SIGHUP as above; return what restores the old handlers.

    After an interrupt they are not restored, for pytest has work to do up to the end.

    CI systems cancel with SIGTERM, which by default ends pytest without teardown and without a
    JUnit file. Only the main thread can set handlers; elsewhere nothing is changed. A worker of
    xdist cleans up once: Ctrl-C reaches it from the terminal, from its controller and from execnet,
    and only the first one counts.
    """
    INTERRUPTS.reset()
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    signals: tuple[signal.Signals, ...] = (signal.SIGINT, *SIGNALS)
    if not is_worker and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signals = SIGNALS  # a shell started us in the background, where Ctrl-C is not meant for us

    def interrupt(signum: int, _frame: FrameType | None) -> None:
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt(*_words(signum))

    handler = interrupt if is_worker else INTERRUPTS.take
    old: dict[signal.Signals, Any] = {each: signal.signal(each, handler) for each in signals}

    def restore() -> None:
        if INTERRUPTS.count and not is_worker:
            # The process is about to end, and another Ctrl-C must not cost its exit code; Python
            # takes its handlers away last of all, but leaves what is ignored.
            for each in signals:
                atexit.register(signal.signal, each, signal.SIG_IGN)
            return
        for each, former in old.items():
            signal.signal(each, former)

    return restore


def _words(signum: int) -> tuple[str, ...]:
    """Return what the exception says: nothing for Ctrl-C, as ever, else the signal's name."""
    return () if signum == signal.SIGINT else (signal.Signals(signum).name,)
