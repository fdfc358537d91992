"""Reading one container's log to its end, and knowing whether that was the end."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from pytest_cre.cluster.client import ApiProblem, Client
from pytest_cre.cluster.logspool import LogSpool, join_lines, split_lines
from pytest_cre.cluster.objects import POD, metadata_of, status_of
from pytest_cre.cluster.pods import ContainerPhase, container_state
from pytest_cre.cluster.transport import pieces, stream_errors
from pytest_cre.errors import ClusterProblem, CreError
from pytest_cre.evidence.model import PodRole

_HEAD_BYTES = 4096
_PATIENCE_READS = 3  # refusals, or answers that do not reach what is known

Outcome = Literal["more", "same", "short"]


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
    role: PodRole = "rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTiming:
    """When a stream counts as dead, and how fast the server is asked again."""

    silence_s: float = 60.0  # a stream without a byte is opened anew: rotation silences some
    drain_s: float = 10.0  # for a stream to end by itself once its container has
    read_silence_s: float = 30.0  # in a final read
    first_pause_s: float = 0.1
    longest_pause_s: float = 5.0
    breath_s: float = 0.6  # after a few bytes: hundreds of followers must not wake all the time
    jitter: Callable[[], float] = field(default=random.random)


class LogReader:
    """Plain reads of one log, joined to what is known of it."""

    def __init__(
        self, client: Client, source: LogSource, spool: LogSpool, timing: LogTiming
    ) -> None:
        self.has_gap = False
        self.trouble = ""  # why the latest request brought nothing
        self._client = client.with_retry(replace(client.retry, budget_s=0.0))  # deadlines rule here
        self._source = source
        self._spool = spool
        self._timing = timing

    def resume(self) -> tuple[str | None, int, bytes, list[bytes]]:
        """Return from which time to ask, where that is in the log, and what must come first."""
        since, start = self._spool.resume_point()
        expected = self._spool.read(start, self._spool.whole_bytes)
        return since, start, expected, split_lines(expected)

    def read_rest(self, deadline: float, *, may_run: bool = False) -> str | None:
        """Read until a read brings nothing new; the problem's code, None when the log is whole.

        With `may_run` one whole read of a container that still runs is enough.
        """
        pause_s = self._timing.first_pause_s
        failures = 0
        while True:
            self.trouble = ""
            try:
                state, is_previous = self._state()
                if state == "terminated" or (may_run and state == "running"):
                    outcome = self.read_once(deadline, is_previous=is_previous)
                    if outcome == "same" or (outcome == "more" and state == "running"):
                        self.has_gap |= self._is_rotated(deadline, is_previous)
                        return None
                    if outcome == "more":
                        continue  # until two reads agree: a stream may end early without a sign
                    self.trouble = "it ends before the last line known"
                    failures += 1
                    if failures == _PATIENCE_READS:
                        self.has_gap = True
                        return None
                else:
                    self.trouble = f"container {self._source.container} is {state}"
                    if state in ("gone", "waiting"):
                        return self.missing
            except ApiProblem as problem:
                self.trouble = str(problem)
                failures += problem.status < 500
                if problem.status == 403 or problem.is_missing or failures == _PATIENCE_READS:
                    return self.missing
            except CreError as problem:
                self.trouble = str(problem)
            except stream_errors() as problem:
                self.trouble = f"the stream broke: {problem}"
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return self.missing
            time.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 2, self._timing.longest_pause_s)

    @property
    def missing(self) -> str:
        """Return the code of a log that was not read to its end."""
        return "log-incomplete" if self._spool.size_bytes else "log-unavailable"

    def _state(self) -> tuple[ContainerPhase, bool]:
        """Return the state of our container instance, and whether it is the one before the last."""
        pod = self._client.get(POD, self._source.pod)
        if pod is None or metadata_of(pod).get("uid") != self._source.pod_uid:
            return "gone", False
        found = container_state(pod, self._source.container)
        restarts = found.restart_count - self._source.restart_count
        if restarts > 0:
            return ("terminated" if restarts == 1 else "gone"), restarts == 1
        has_ended = status_of(pod).get("phase") in ("Succeeded", "Failed")
        if has_ended and found.phase in ("none", "waiting", "running"):
            # Evicted, or never admitted: the kubelet keeps no container, so no log either.
            return "gone", False
        return found.phase, False

    def read_once(self, deadline: float, *, is_previous: bool = False) -> Outcome:
        """Read from the last second known to the end and join what came, also when it broke off."""
        since, start, _, known = self.resume()
        before = self._spool.line_before(start)
        parts: list[bytes] = []
        broken: Exception | None = None
        breaks: tuple[type[Exception], ...] = (CreError, *stream_errors())
        try:
            with self._client.open_log(
                self._source.pod,
                self._source.container,
                follow=False,
                since_time=since,
                previous=is_previous,
                read_timeout_s=self._read_timeout_s(deadline),
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
    ) -> Outcome:
        joined = join_lines(known, answer, before)
        if joined.is_short:
            return "short"
        self.has_gap |= joined.has_gap
        if not joined.lines and not is_whole:
            return "same"  # the fragment that is known may be more than what came
        return "more" if self._spool.replace_fragment(b"".join(joined.lines)) else "same"

    def _is_rotated(self, deadline: float, is_previous: bool) -> bool:
        """Return whether the log no longer begins with what is known of its beginning.

        What was rotated away can be compared with nothing any more, and a kubelet whose reader lags
        over a rotation leaves lines out without a sign.
        """
        known = self._spool.read(0, min(self._spool.size_bytes, _HEAD_BYTES))
        if not known:
            return False  # nothing was ever written, and no server takes a limit of nothing
        head = b""
        with self._client.open_log(
            self._source.pod,
            self._source.container,
            follow=False,
            previous=is_previous,
            limit_bytes=len(known),
            read_timeout_s=self._read_timeout_s(deadline),
        ) as response:
            for piece in pieces(response):
                head += piece
                if len(head) >= len(known):
                    break
        return not head or not known.startswith(head[: len(known)])

    def _read_timeout_s(self, deadline: float) -> float:
        return min(self._timing.read_silence_s, max(0.5, deadline - time.monotonic()))
