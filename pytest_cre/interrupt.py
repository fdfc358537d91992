"""SIGTERM and SIGHUP as an interrupt, so that reports are written and objects are deleted."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def turn_signals_into_interrupts(*, is_worker: bool = False) -> Callable[[], None]:
    """Make SIGTERM and SIGHUP raise KeyboardInterrupt; return what restores the old handlers.

    CI systems cancel with SIGTERM, which by default ends pytest without teardown and without a
    JUnit file. Only the main thread can set handlers; elsewhere nothing is changed. A worker of
    xdist cleans up once: Ctrl-C reaches it from the terminal, from its controller and from execnet,
    and only the first one counts.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    signals = (signal.SIGINT, *SIGNALS) if is_worker else SIGNALS

    def interrupt(signum: int, _frame: FrameType | None) -> None:
        if is_worker:
            for each in signals:
                signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt(signal.Signals(signum).name)

    old: dict[signal.Signals, Any] = {each: signal.signal(each, interrupt) for each in signals}

    def restore() -> None:
        for each, handler in old.items():
            signal.signal(each, handler)

    return restore


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C and SIGTERM for a short, bounded piece of work in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ignored = (signal.SIGINT, *SIGNALS)
    old: dict[signal.Signals, Any] = {each: signal.signal(each, signal.SIG_IGN) for each in ignored}
    try:
        yield
    finally:
        for each, handler in old.items():
            signal.signal(each, handler)
