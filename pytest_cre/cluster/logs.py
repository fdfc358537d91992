"""The log of one container, followed while it runs and proven whole once it has ended.

A stream that ends says nothing: load balancers cut it, rotation silences it, a kubelet may close it
early or never. So a follower asks again from the last second known until it is told that the
container has ended; then plain reads are joined in, until one brings nothing new.
"""

import threading
import time
from typing import TYPE_CHECKING, Self

from pytest_cre.cluster.client import ApiProblem, Client
from pytest_cre.cluster.logread import LogReader, LogSource, LogTiming
from pytest_cre.cluster.logspool import LogSpool
from pytest_cre.cluster.transport import cut, pieces, stream_errors
from pytest_cre.errors import CreError
from pytest_cre.evidence.model import LogStream, Problem

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

__all__ = ["LogFollower", "LogSource", "LogTiming"]

_FEW_BYTES = 4096
_AT_ONCE_S = 0.002  # a piece that comes sooner was there already, and so may be the next
_THREAD_PATIENCE_S = 5.0  # it may sit in a connect; it is a daemon


class LogFollower:
    """Follows one container instance in a daemon thread. Nothing it meets raises."""

    def __init__(self, client: Client, source: LogSource, timing: LogTiming | None = None) -> None:
        self.source = source
        self._client = client
        self._timing = timing or LogTiming()
        self._spool = LogSpool()
        self._reader = LogReader(client, source, self._spool, self._timing)
        self._problem: Problem | None = None
        self._is_secured = False
        self._stopped = threading.Event()
        self._ending = threading.Event()  # no stream is to be opened any more
        self._lock = threading.Lock()
        self._response: BaseHTTPResponse | None = None
        self._stream: LogStream | None = None
        self._thread = threading.Thread(target=self._run, name=f"cre-log-{source.pod}", daemon=True)

    def start(self) -> Self:
        """Start following; returns at once."""
        self._thread.start()
        return self

    @property
    def size_bytes(self) -> int:
        """Return how much of the log is known."""
        return self._spool.size_bytes

    @property
    def whole_bytes(self) -> int:
        """Return the size of the whole lines known, which are there for good."""
        return self._spool.whole_bytes

    def read(self, start: int, end: int) -> bytes:
        """Return these bytes of the log; only while it is followed."""
        return self._spool.read(start, end)

    @property
    def problem(self) -> Problem | None:
        """Return, after `finish`, why the log is not whole; None when it is."""
        return self._problem

    def snapshot(self, most_bytes: int | None = None) -> bytes:
        """Return the log so far, with timestamps, possibly ending in a part of a line.

        With `most_bytes` only the last whole lines that fit into it.
        """
        if self._stream is not None:
            return self._stream.data
        if most_bytes is None:
            return self._spool.read()
        end = self._spool.whole_bytes
        start = max(0, end - most_bytes)
        data = self._spool.read(start, end)
        return data.partition(b"\n")[2] if start else data

    def finish(self, deadline_s: float) -> LogStream:
        """Return the log, whole if that can be had in time. Call it when the container has ended.

        `is_complete` is True only if the API says that this container instance has terminated and
        a read after that brought nothing that was not known.
        """
        if self._stream is not None:
            return self._stream
        deadline = time.monotonic() + deadline_s
        self._ending.set()
        if self._thread.is_alive():
            # At most a third: a stream that never ends must leave time for the reads.
            self._thread.join(min(self._timing.drain_s, deadline_s / 3))
        self.stop()
        return self._end(self._reader.read_rest(deadline), is_cut=False)

    def secure(self, deadline_s: float) -> None:
        """Read all up to now, of a container that is being ended, for its log goes with its pod.

        What it writes after that is taken if it can be had, and not missed if not.
        """
        if self._stream is None and not self._is_secured:
            self.stop()
            deadline = time.monotonic() + deadline_s
            self._is_secured = self._reader.read_rest(deadline, may_run=True) is None

    def cut(self, deadline_s: float) -> LogStream:
        """Return the log up to now, of a container that is about to be ended; it may run or not."""
        if self._stream is not None:
            return self._stream
        self.secure(deadline_s)
        return self._end(None if self._is_secured else self._reader.missing, is_cut=True)

    def _end(self, code: str | None, *, is_cut: bool) -> LogStream:
        if code is not None and self._is_secured:
            code, is_cut = None, True
        is_read = code is None
        if is_read and self._reader.has_gap:
            code = "log-gap"
        self._problem = self._told(code) if code else None
        self._stream = LogStream(
            pod=self.source.pod,
            data=self._spool.read(),
            container=self.source.container,
            node=self.source.node,
            completion_index=self.source.completion_index,
            attempt=self.source.attempt,
            restart_count=self.source.restart_count,
            role=self.source.role,
            is_complete=is_read and not is_cut,
            is_cut=is_read and is_cut,
            has_gap=self._reader.has_gap,
        )
        self.close()
        return self._stream

    def stop(self) -> None:
        """Stop following; what was read stays readable."""
        self._stopped.set()
        self._ending.set()
        with self._lock:
            response = self._response
        if response is not None:
            cut(response)
        if self._thread.is_alive():
            self._thread.join(_THREAD_PATIENCE_S)

    def close(self) -> None:
        """Stop, and free what the log takes; `finish` does it too."""
        self.stop()
        if not self._thread.is_alive():
            self._spool.close()

    # Following

    def _run(self) -> None:
        pause_s = self._timing.first_pause_s
        while not self._ending.is_set():
            known = self._spool.size_bytes
            try:
                self._follow()
                self._reader.trouble = ""
            except CreError as problem:
                self._reader.trouble = str(problem)
                if isinstance(problem, ApiProblem) and problem.is_missing:
                    return  # the pod is gone, and its log with it
            except stream_errors() as problem:
                self._reader.trouble = f"the stream broke: {problem}"
            if self._spool.size_bytes > known:
                pause_s = self._timing.first_pause_s
            self._ending.wait(pause_s * (1.0 + self._timing.jitter() / 4))
            pause_s = min(pause_s * 2, self._timing.longest_pause_s)

    def _follow(self) -> None:
        """Follow from the last second known until the stream ends; raises whatever ends it."""
        since, _, expected, _ = self._reader.resume()
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
                is_known = self._stopped.is_set() or self._take(response, expected)
            finally:
                with self._lock:
                    self._response = None
        if (
            not is_known
        ):  # other lines than expected: they have to be matched, a whole answer at once
            self._reader.read_once(time.monotonic() + self._timing.read_silence_s)

    def _take(self, response: "BaseHTTPResponse", expected: bytes) -> bool:
        """Add what comes after the expected bytes; False when others come in their place."""
        seen, is_first = 0, True
        asked = time.monotonic()
        for piece in pieces(response):
            waited_s = time.monotonic() - asked
            wanted = expected[seen : seen + len(piece)]
            if not piece.startswith(wanted):
                return False
            seen += len(wanted)
            news = piece[len(wanted) :]
            if news and is_first:
                self._spool.replace_fragment(news)  # the line is told anew, as a whole
                is_first = False
            elif news:
                self._spool.append(news)
            if waited_s > _AT_ONCE_S and len(piece) < _FEW_BYTES:
                self._ending.wait(self._timing.breath_s)
            asked = time.monotonic()
        return True

    def _told(self, code: str) -> Problem:
        where = f"pod {self.source.pod}" + (
            f" on node {self.source.node}" if self.source.node else ""
        )
        words = {
            "log-gap": "lines may be missing: the kubelet rotated it, and nothing proves that all were "
            "read (print less, or raise containerLogMaxSize)",
            "log-incomplete": f"only a part could be read: {self._reader.trouble or 'the time was over'}",
            "log-unavailable": f"nothing could be read: {self._reader.trouble or 'the time was over'}",
        }
        return Problem(
            code=code,
            message=f"log of {where}: {words[code]}",
            node=self.source.node,
            pod=self.source.pod,
        )
