"""A container's log as a container runtime keeps it: records with times, split and rotated."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

Stream = Literal["stdout", "stderr"]

RECORD_BYTES = 16 * 1024  # longer lines become several records
ROTATION_BYTES = 10 * 1024 * 1024  # what a kubelet keeps in one file by default
_BATCH_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Record:
    """A line, or a piece of one; the last piece ends with a newline."""

    time_ns: int
    stream: Stream
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """What a reader asks for."""

    is_following: bool = False
    has_timestamps: bool = False
    since_ns: int | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None


class LogBuffer:
    """Records of one container run. New readers see the current file, followers all that comes."""

    def __init__(
        self, clock_ns: Callable[[], int], *, rotation_bytes: int = ROTATION_BYTES
    ) -> None:
        self.is_stuck = False  # followers get nothing more, new reads work
        self.is_endless = False  # followers are not told of the end
        self.requests = 0  # how often the log was asked for
        self.rotation_bytes = rotation_bytes
        self._clock_ns = clock_ns
        self._records: list[Record] = []
        self._first = 0  # number of the oldest record kept
        self._current = 0  # number of the first record of the current file
        self._current_bytes = 0
        self._pending: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}
        self._is_closed = False
        self._waiters: list[asyncio.Future[None]] = []

    def write(self, data: bytes, stream: Stream = "stdout") -> None:
        """Take output as a program writes it; an unfinished line waits for its rest."""
        now_ns = self._clock_ns()
        lines = (self._pending[stream] + data).split(b"\n")
        self._pending[stream] = lines.pop()
        for line in lines:
            self._add_line(now_ns, stream, line + b"\n")
        while len(self._pending[stream]) > RECORD_BYTES:
            piece, rest = _cut(self._pending[stream])
            self._pending[stream] = rest
            self._add(Record(now_ns, stream, piece))
        self._wake()

    def rotate(self) -> None:
        """Begin a new file; the one before stays for followers that are behind."""
        del self._records[: self._current - self._first]
        self._first = self._current
        self._current = self._end
        self._current_bytes = 0

    def lose(self) -> None:
        """Begin a new file and lose all before it, for followers too."""
        self._first = self._current = self._end
        self._records.clear()
        self._current_bytes = 0

    @property
    def kept_bytes(self) -> int:
        """Return the size of the current file."""
        return self._current_bytes

    def close(self) -> None:
        """End the log; a last line without newline stays without."""
        now_ns = self._clock_ns()
        for stream, rest in self._pending.items():
            if rest:
                self._add_line(now_ns, stream, rest)
        self._pending = {"stdout": b"", "stderr": b""}
        self._is_closed = True
        self._wake()

    def tail(self, *, lines: int, limit_bytes: int) -> str:
        """Return the last lines as text, for a termination message."""
        data = b"".join(record.data for record in self._records[-lines:])
        return data[-limit_bytes:].decode("utf-8", "replace")

    async def read(self, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield the log in pieces; ends at its end, with `is_following` when the container ended."""
        left = options.limit_bytes
        async for data in self._rendered(options):
            if left is not None:
                data = data[:left]  # noqa: PLW2901
                left -= len(data)
            if data:
                yield data
            if left == 0:
                return

    async def _rendered(self, options: LogOptions) -> AsyncIterator[bytes]:
        number = self._start(options)
        while True:
            if options.is_following and self.is_stuck:
                await asyncio.Event().wait()
            batch, size = [], 0
            number = max(number, self._first)
            while number < self._end and size < _BATCH_BYTES:
                record = self._records[number - self._first]
                number += 1
                if options.since_ns is not None and record.time_ns < options.since_ns:
                    continue
                data = rendered(record) if options.has_timestamps else record.data
                batch.append(data)
                size += len(data)
            if batch:
                yield b"".join(batch)
            if number >= self._end:
                if not options.is_following or (self._is_closed and not self.is_endless):
                    return
                await self._wait()

    @property
    def _end(self) -> int:
        return self._first + len(self._records)

    def _start(self, options: LogOptions) -> int:
        if options.tail_lines is None:
            return self._current
        return max(self._current, self._end - options.tail_lines)

    def _add_line(self, time_ns: int, stream: Stream, line: bytes) -> None:
        while len(line.rstrip(b"\n")) > RECORD_BYTES:
            piece, line = _cut(line)
            self._add(Record(time_ns, stream, piece))
        self._add(Record(time_ns, stream, line))

    def _add(self, record: Record) -> None:
        if self._current_bytes + len(record.data) > self.rotation_bytes:
            self.rotate()
        self._records.append(record)
        self._current_bytes += len(record.data)

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def _cut(line: bytes) -> tuple[bytes, bytes]:
    return line[:RECORD_BYTES], line[RECORD_BYTES:]


def rendered(record: Record) -> bytes:
    """Return a record with its time in front, as kubelets print it."""
    seconds, rest_ns = divmod(record.time_ns, 1_000_000_000)
    return b"%s.%09dZ %s" % (_moment(seconds), rest_ns, record.data)


@lru_cache(maxsize=1024)
def _moment(seconds: int) -> bytes:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()
