"""A log so far, and how a second look at it is joined without losing or doubling a line.

A log is asked for again from the second of the last line known. A good answer begins with exactly
the lines known from that second on, so those bytes are compared and skipped, however many lines
are alike. Only when they differ are lines matched.
"""

import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pytest_cre.cluster.objects import parse_time_ns

_MEMORY_BYTES = 1 << 18  # of one log; more goes to a temporary file
_BLOCK_BYTES = 1 << 16
_HEAD_BYTES = 64
_SECOND_NS = 10**9


class LogSpool:
    """One log, each line with the kubelet's timestamp in front. Safe for threads.

    Whole lines are kept for good. What follows the last newline is a fragment: a line whose rest
    has not come yet, or the last line of a log that ends without a newline.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115
        self._size = 0
        self._whole = 0

    @property
    def whole_bytes(self) -> int:
        """Return the size of the whole lines."""
        return self._whole

    @property
    def size_bytes(self) -> int:
        """Return the size with the fragment."""
        return self._size

    def append(self, data: bytes) -> None:
        """Add what comes next."""
        with self._lock:
            self._append(data)

    def replace_fragment(self, data: bytes) -> bool:
        """Put this after the whole lines, in the fragment's place; False when it is the same."""
        with self._lock:
            self._file.seek(self._whole)
            if self._file.read(self._size - self._whole) == data:
                return False
            self._size = self._whole
            self._append(data)
            return True

    def _append(self, data: bytes) -> None:
        self._file.seek(self._size)
        self._file.write(data)
        found = data.rfind(b"\n")
        if found >= 0:
            self._whole = self._size + found + 1
        self._size += len(data)

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes from `start` to `end`, by default all, the fragment too."""
        with self._lock:
            self._file.seek(start)
            return self._file.read((self._size if end is None else end) - start)

    def close(self) -> None:
        """Free the memory or the file."""
        with self._lock:
            self._file.close()

    def __del__(self) -> None:
        self._file.close()  # an abandoned log must not become a warning in somebody's test run

    def resume_point(self) -> tuple[str | None, int]:
        """Return from which time to ask again, and where in the log that answer should begin.

        The time is None, which means from the start, as long as no line with a time is known.
        """
        since_ns, first = None, self._whole
        for start, head in self._starts_backwards():
            line_ns = line_time_ns(head)
            if line_ns is not None:
                if since_ns is None:
                    since_ns = line_ns // _SECOND_NS * _SECOND_NS
                if line_ns < since_ns:
                    break
            first = start
        if since_ns is None:
            return None, 0
        moment = datetime.fromtimestamp(since_ns // _SECOND_NS, UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ"), first

    def line_before(self, end: int) -> bytes:
        """Return the line that ends at this place, empty at the start of the log."""
        if end == 0:
            return b""
        start = next(each for each, _ in self._starts_backwards() if each < end)
        return self.read(start, end)

    def _starts_backwards(self) -> Iterator[tuple[int, bytes]]:
        """Yield where each whole line starts, the last one first, with the bytes found there."""
        end = begin = self._whole
        block = b""
        while end > 0:
            found = block.rfind(b"\n", 0, max(0, end - 1 - begin))
            while found < 0 and begin > 0:
                # Of a line longer than a block only the first bytes matter.
                limit = end - 1
                more_begin = max(0, begin - _BLOCK_BYTES)
                more = self.read(more_begin, begin)
                found = more.rfind(b"\n", 0, limit - more_begin)
                block, begin = more + block[:_HEAD_BYTES], more_begin
            start = begin + found + 1
            head = block[start - begin : start - begin + _HEAD_BYTES]
            yield start, head
            end = start


def line_time_ns(line: bytes) -> int | None:
    """Return the time in front of a line, or None where there is none."""
    return parse_time_ns(line[:_HEAD_BYTES].partition(b" ")[0].decode("ascii", "replace"))


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines with their newlines; only newlines end a line, whatever else is in it."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What a second look at a log adds. `is_short`: it did not reach the last line known."""

    lines: tuple[bytes, ...] = ()
    is_short: bool = False
    has_gap: bool = False


def join_lines(known: Sequence[bytes], answer: Sequence[bytes], before: bytes = b"") -> Joined:
    """Return what an answer adds to the known lines; nothing is ever doubled.

    `known` are the lines known of the second asked for and after, `before` the one in front of
    them. The answer may have lost its end to a broken stream, or its start to rotation: then the
    last line known tells where the new ones begin, and where it does not, there is a gap.
    """
    size = len(known)
    if list(answer[:size]) == list(known):
        return Joined(lines=tuple(answer[size:]))
    if _is_start_of(known, answer):
        return Joined(is_short=True)
    if before.endswith(answer[0]):
        # The later records of a long line that began in the second before.
        return join_lines(known, answer[1:])
    places = [index for index, line in enumerate(answer) if line == known[-1]]
    if places:
        place = places[-1]
        is_sure = (
            len(places) == 1
            and known.count(known[-1]) == 1
            and list(answer[:place]) == list(known[size - 1 - place : size - 1])
        )
        return Joined(lines=tuple(answer[place + 1 :]), has_gap=not is_sure)
    seen = set(known)
    unseen = tuple(line for line in answer if line not in seen)
    return Joined(lines=unseen, has_gap=bool(unseen), is_short=not unseen)


def _is_start_of(known: Sequence[bytes], answer: Sequence[bytes]) -> bool:
    """Return whether the known lines begin with the answer, which may end within a line."""
    last = len(answer) - 1
    return last < 0 or (
        last < len(known)
        and list(known[:last]) == list(answer[:last])
        and known[last].startswith(answer[last])
    )
