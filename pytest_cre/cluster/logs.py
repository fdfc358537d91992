"""The log of one container, followed while it runs and proven whole once it has ended.

A stream that ends says nothing: load balancers cut it, rotation silences it, a kubelet may close it
early or never. So a follower asks again from the last second known until it is told that the
container has ended; then plain reads are joined in, until one brings nothing new.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from pytest_cre.cluster.client import ApiProblem, Client
from pytest_cre.cluster.logspool import LogSpool, new_lines, split_lines
from pytest_cre.cluster.objects import POD, entries, metadata_of, part, status_of
from pytest_cre.cluster.transport import cut, pieces
from pytest_cre.errors import ClusterProblem, CreError
from pytest_cre.evidence.model import LogStream, Problem

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_FINAL_READS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSource:
    """One instance of a container, `restart_count` telling which, and what its log is filed under."""

    pod: str
    pod_uid: str
    container: str
    node: str | None = None
    completion_index: int | None = None
    attempt: int = 0
    restart_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTiming:
    """When a stream counts as dead, and how fast the server is asked again."""

    silence_s: float = 60.0  # a stream without a byte is opened anew: rotation silences some
    drain_s: float = 10.0  # for a stream to end by itself once its container has
    read_silence_s: float = 30.0  # in a final read
    first_pause_s: float = 0.1
    longest_pause_s: float = 5.0
    jitter: Callable[[], float] = field(default=random.random)


class LogFollower:
    """Follows one container instance in a daemon thread. Nothing it meets raises."""

    def __init__(
        self, client: Client, source: LogSource, timing: LogTiming | None = None
    ) -> None:
        self.source = source
        self._client = client
        self._timing = timing or LogTiming()
        self._spool = LogSpool()
        self._has_gap = False
        self._problem: Problem | None = None
        self._trouble = ""  # why the latest request brought nothing
        self._stopped = threading.Event()
        self._ending = threading.Event()  # no stream is to be opened any more
        self._lock = threading.Lock()
        self._response: BaseHTTPResponse | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"cre-log-{source.pod}", daemon=True
        )

    def start(self) -> Self:
        """Start following; returns at once."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop following; what was read stays readable."""
        self._stopped.set()
        self._ending.set()
        self._cut()
        if self._thread.is_alive():
            self._thread.join(5.0)  # it may sit in a connect; it is a daemon

    @property
    def size_bytes(self) -> int:
        """Return how much of the log is known."""
        return self._spool.size_bytes

    @property
    def problem(self) -> Problem | None:
        """Return, after `finish`, why the log is not whole; None when it is."""
        return self._problem

    def snapshot(self) -> bytes:
        """Return the log so far, with timestamps, possibly ending in a part of a line."""
        return self._spool.read()

    def finish(self, deadline_s: float) -> LogStream:
        """Return the log, whole if that can be had within the time. Call it when the container ended.

        `is_complete` is True only if the API says that this container instance has terminated and
        a read after that brought nothing that was not known.
        """
        deadline = time.monotonic() + deadline_s
        self._ending.set()
        if self._thread.is_alive():
            # A third for the stream, so that a server that never ends it leaves time for reads.
            self._thread.join(min(self._timing.drain_s, deadline_s / 3))
        self.stop()
        code = self._read_rest(deadline)
        if code is None and self._has_gap:
            code = "log-gap"
        if code is not None:
            self._problem = self._told(code)
        return LogStream(
            pod=self.source.pod,
            data=self._spool.read(),
            container=self.source.container,
            node=self.source.node,
            completion_index=self.source.completion_index,
            attempt=self.source.attempt,
            restart_count=self.source.restart_count,
            is_complete=code in (None, "log-gap"),
            has_gap=self._has_gap,
        )

    def close(self) -> None:
        """Stop, and forget the log."""
        self.stop()
        if not self._thread.is_alive():
            self._spool.close()

    # Following

    def _run(self) -> None:
        pause_s = self._timing.first_pause_s
        while not self._ending.is_set():
            known = self._spool.size_bytes
            try:
                self._trouble = ""
                self._follow()
            except CreError as problem:
                self._trouble = str(problem)
                if isinstance(problem, ApiProblem) and problem.status == 404:
                    return  # the pod is gone, and its log with it
            except _stream_errors() as problem:
                self._trouble = f"the stream broke: {problem}"
            if self._spool.size_bytes > known:
                pause_s = self._timing.first_pause_s
            self._ending.wait(pause_s * (1.0 + self._timing.jitter() / 4))
            pause_s = min(pause_s * 2, self._timing.longest_pause_s)

    def _follow(self) -> None:
        """Follow from the last second known until the stream ends; raises whatever ends it."""
        since, start = self._spool.resume_point()
        expected = self._spool.read(start, self._spool.size_bytes)
        with self._client.open_log(
            self.source.pod,
            self.source.container,
            follow=True,
            since_time=since,
            read_timeout_s=self._timing.silence_s,
        ) as response:
            with self._lock:
                self._response = response
            try:
                if not self._stopped.is_set() and not self._take(response, expected):
                    # Not what is known: the lines have to be compared, with the whole answer.
                    self._read_once(time.monotonic() + self._timing.read_silence_s)
            finally:
                with self._lock:
                    self._response = None

    def _take(self, response: "BaseHTTPResponse", expected: bytes) -> bool:
        """Add what comes after the expected bytes; False when others come in their place."""
        seen, held = 0, b""
        for piece in pieces(response):
            if seen < len(expected):
                wanted = expected[seen : seen + len(piece)]
                if not piece.startswith(wanted):
                    return False
                seen += len(wanted)
                piece = piece[len(wanted) :]
            if not piece:
                continue
            held += piece
            end = held.rfind(b"\n") + 1
            if end:
                self._spool.append(held[:end])
                held = held[end:]
            self._spool.keep_fragment(held)
        return True

    def _cut(self) -> None:
        with self._lock:
            response = self._response
        if response is not None:
            cut(response)

    # Finishing

    def _read_rest(self, deadline: float) -> str | None:
        """Read until a read brings nothing new; the problem's code, None when the log is whole."""
        pause_s = self._timing.first_pause_s
        quiet_reads = 0
        reads = 0
        while time.monotonic() < deadline and reads < _FINAL_READS:
            try:
                state = self._state()
                if state != "terminated":
                    self._trouble = f"container {self.source.container} is {state}"
                    if state in ("gone", "never started"):
                        return "log-unavailable"
                else:
                    is_new = self._read_once(deadline)
                    reads += 1
                    if not is_new:
                        return None
                    continue
            except ApiProblem as problem:
                self._trouble = str(problem)
                if problem.status in (403, 404):
                    return "log-unavailable"
            except CreError as problem:
                self._trouble = str(problem)
            except _stream_errors() as problem:
                self._trouble = f"the stream broke: {problem}"
            quiet_reads += 1
            time.sleep(min(pause_s, max(0.0, deadline - time.monotonic())))
            pause_s = min(pause_s * 2, self._timing.longest_pause_s)
        return "log-incomplete" if self._spool.size_bytes else "log-unavailable"
