"""The log of one container, followed while it runs and proven whole once it has ended.

A stream that ends says nothing: load balancers cut it, rotation silences it, a kubelet may close it
early or never. So a follower asks again from the last second known until it is told that the
container has ended; then plain reads are joined in, until one brings nothing new.
"""

import itertools
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

from pytest_cre.cluster.client import ApiProblem, Client
from pytest_cre.cluster.logspool import LogSpool, join_lines, split_lines
from pytest_cre.cluster.objects import POD, metadata_of, status_of
from pytest_cre.cluster.pods import ContainerPhase, container_state
from pytest_cre.cluster.transport import cut, pieces, stream_errors
from pytest_cre.errors import ClusterProblem, CreError
from pytest_cre.evidence.model import LogStream, Problem

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_HEAD_BYTES = 4096
_PATIENCE_READS = 3  # refusals, or answers that do not reach what is known
_THREAD_PATIENCE_S = 5.0  # it may sit in a connect; it is a daemon


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

    def __init__(self, client: Client, source: LogSource, timing: LogTiming | None = None) -> None:
        self.source = source
        self._client = client
        self._timing = timing or LogTiming()
        self._spool = LogSpool()
        self._has_gap = False
        self._is_doubtful = False  # lines were skipped that have twins, so rotation could hide some
        self._problem: Problem | None = None
        self._trouble = ""  # why the latest request brought nothing
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
    def problem(self) -> Problem | None:
        """Return, after `finish`, why the log is not whole; None when it is."""
        return self._problem

    def snapshot(self) -> bytes:
        """Return the log so far, with timestamps, possibly ending in a part of a line."""
        return self._stream.data if self._stream else self._spool.read()

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
        code = self._read_rest(deadline)
        is_complete = code is None
        if is_complete and self._has_gap:
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
            is_complete=is_complete,
            has_gap=self._has_gap,
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
                self._trouble = ""
            except CreError as problem:
                self._trouble = str(problem)
                if isinstance(problem, ApiProblem) and problem.status == 404:
                    return  # the pod is gone, and its log with it
            except stream_errors() as problem:
                self._trouble = f"the stream broke: {problem}"
            if self._spool.size_bytes > known:
                pause_s = self._timing.first_pause_s
            self._ending.wait(pause_s * (1.0 + self._timing.jitter() / 4))
            pause_s = min(pause_s * 2, self._timing.longest_pause_s)

    def _follow(self) -> None:
        """Follow from the last second known until the stream ends; raises whatever ends it."""
        since, start = self._spool.resume_point()
        expected = self._spool.read(start, self._spool.whole_bytes)
        self._is_doubtful |= _has_twins(split_lines(expected))
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
            self._read_once(time.monotonic() + self._timing.read_silence_s)

    def _take(self, response: "BaseHTTPResponse", expected: bytes) -> bool:
        """Add what comes after the expected bytes; False when others come in their place."""
        seen, is_first = 0, True
        for piece in pieces(response):
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
        return True

    # Finishing

    def _read_rest(self, deadline: float) -> str | None:
        """Read until a read brings nothing new; the problem's code, None when the log is whole."""
        pause_s = self._timing.first_pause_s
        failures = 0
        while True:
            self._trouble = ""
            try:
                state, is_previous = self._state()
                if state == "terminated":
                    outcome = self._read_once(deadline, is_previous=is_previous)
                    if outcome == "same":
                        self._has_gap |= self._is_doubtful and self._is_rotated(is_previous)
                        return None
                    if outcome == "more":
                        continue  # until two reads agree: a stream may end early without a sign
                    self._trouble = "it ends before the last line known"
                    failures += 1
                    if failures == _PATIENCE_READS:
                        self._has_gap = True
                        return None
                else:
                    self._trouble = f"container {self.source.container} is {state}"
                    if state in ("gone", "waiting"):
                        return self._missing()
            except ApiProblem as problem:
                self._trouble = str(problem)
                failures += problem.status < 500
                if problem.status in (403, 404) or failures == _PATIENCE_READS:
                    return self._missing()
            except CreError as problem:
                self._trouble = str(problem)
            except stream_errors() as problem:
                self._trouble = f"the stream broke: {problem}"
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return self._missing()
            time.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 2, self._timing.longest_pause_s)

    def _missing(self) -> str:
        return "log-incomplete" if self._spool.size_bytes else "log-unavailable"

    def _state(self) -> tuple[ContainerPhase, bool]:
        """Return the state of our container instance, and whether it is the one before the last."""
        pod = self._client.get(POD, self.source.pod)
        if pod is None or metadata_of(pod).get("uid") != self.source.pod_uid:
            return "gone", False
        found = container_state(pod, self.source.container)
        restarts = found.restart_count - self.source.restart_count
        if restarts > 0:
            return ("terminated" if restarts == 1 else "gone"), restarts == 1
        has_ended = status_of(pod).get("phase") in ("Succeeded", "Failed")
        if has_ended and found.phase in ("none", "waiting", "running"):
            # Evicted, or never admitted: the kubelet keeps no container, so no log either.
            return "gone", False
        return found.phase, False

    def _read_once(
        self, deadline: float, *, is_previous: bool = False
    ) -> Literal["more", "same", "short"]:
        """Read from the last second known to the end and join what came, also when it broke off."""
        since, start = self._spool.resume_point()
        known = split_lines(self._spool.read(start, self._spool.whole_bytes))
        before = self._spool.line_before(start)
        self._is_doubtful |= _has_twins(known)
        parts: list[bytes] = []
        broken: Exception | None = None
        breaks: tuple[type[Exception], ...] = (CreError, *stream_errors())
        try:
            with self._client.open_log(
                self.source.pod,
                self.source.container,
                follow=False,
                since_time=since,
                previous=is_previous,
                read_timeout_s=self._timing.read_silence_s,
            ) as response:
                for piece in pieces(response):
                    parts.append(piece)
                    if time.monotonic() > deadline:
                        raise ClusterProblem(f"{self._client.server}: the log does not end")
        except breaks as problem:
            broken = problem
        answer = split_lines(b"".join(parts))
        if broken is not None and answer and not answer[-1].endswith(b"\n"):
            answer.pop()
        outcome = self._join(known, answer, before, is_whole=broken is None)
        if broken is not None:
            raise broken
        return outcome

    def _join(
        self, known: list[bytes], answer: list[bytes], before: bytes, *, is_whole: bool
    ) -> Literal["more", "same", "short"]:
        joined = join_lines(known, answer, before)
        if joined.is_short:
            return "short"
        self._has_gap |= joined.has_gap
        if not joined.lines and not is_whole:
            return "same"  # the fragment that is known may be more than what came
        return "more" if self._spool.replace_fragment(b"".join(joined.lines)) else "same"

    def _is_rotated(self, is_previous: bool) -> bool:
        """Return whether the log no longer begins with the first line known."""
        size = min(self._spool.size_bytes, _HEAD_BYTES)
        with self._client.open_log(
            self.source.pod,
            self.source.container,
            follow=False,
            previous=is_previous,
            limit_bytes=size,
            read_timeout_s=self._timing.read_silence_s,
        ) as response:
            head = b"".join(itertools.islice(pieces(response), size))
        return not head.startswith(self._spool.read(0, size))

    def _told(self, code: str) -> Problem:
        where = f"pod {self.source.pod}" + (
            f" on node {self.source.node}" if self.source.node else ""
        )
        words = {
            "log-gap": "lines may be missing: it was rotated before they could be read",
            "log-incomplete": f"only a part could be read: {self._trouble or 'the time was over'}",
            "log-unavailable": f"nothing could be read: {self._trouble or 'the time was over'}",
        }
        return Problem(
            code=code,
            message=f"log of {where}: {words[code]}",
            node=self.source.node,
            pod=self.source.pod,
        )


def _has_twins(lines: list[bytes]) -> bool:
    return len(set(lines)) < len(lines)
