"""Chunks of a log to blocks of whole lines."""

import re
from collections.abc import Iterator

MAX_LINE_BYTES = 65_536
# Container runtimes cut long lines into records: containerd and Docker at 16 KiB, CRI-O at 8 KiB.
RECORD_BYTES = (16_384, 8_192)
ESCAPE = b"\x1b"

_ANSI = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[()][\x20-\x7e]|[@-Z\\^_=>78])"
)


class BlockCutter:
    """Chunks to blocks of whole lines; counts what it drops.

    A line longer than `MAX_LINE_BYTES` is dropped and counted, whatever its length.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.lines_of_block = 0
        self.has_long_lines = False  # in the newest block: longer than a record
        self.lines_too_long = 0
        self.undecodable_bytes = 0
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._is_skipping = False

    def feed(self, data: bytes, start: int = 0, end: int | None = None) -> bytes:
        """Take a part of some bytes; return the block of lines that ended in it, perhaps empty."""
        end = len(data) if end is None else min(end, len(data))
        cut = data.rfind(b"\n", start, end) + 1
        if not cut:
            self._hold(data[start:end])
            return b""
        if self._is_skipping:
            start = data.index(b"\n", start) + 1
            self._is_skipping = False
            self.lines_too_long += 1
        block = b"".join((*self._pending, memoryview(data)[start:cut]))
        self._pending, self._pending_bytes = [], 0
        self._hold(data[cut:end])
        return self._checked(block)

    def close(self) -> bytes:
        """Return the last line, if it had no end, as a block."""
        if self._is_skipping:
            self.lines_too_long += 1
            return b""
        block = b"".join(self._pending)
        self._pending = []
        return self._checked(block + b"\n") if block else b""

    def _hold(self, rest: bytes) -> None:
        if self._is_skipping or not rest:
            return
        self._pending.append(rest)
        self._pending_bytes += len(rest)
        if self._pending_bytes > MAX_LINE_BYTES:
            self._pending, self._pending_bytes, self._is_skipping = [], 0, True

    def _checked(self, block: bytes) -> bytes:
        long = list(long_lines(block, min(RECORD_BYTES)))
        too_long = [place for place in long if place[1] - place[0] > MAX_LINE_BYTES]
        self.has_long_lines = len(long) > len(too_long)
        if too_long:
            self.lines_too_long += len(too_long)
            starts = [0, *(end + 1 for _, end in too_long)]
            ends = [*(start for start, _ in too_long), len(block)]
            block = b"".join(block[a:b] for a, b in zip(starts, ends, strict=True))
        # Much faster than bytes.count on lines of usual length.
        self.lines_of_block = len(block) - len(block.replace(b"\n", b""))
        self.lines += self.lines_of_block
        if not block.isascii():
            undecodable = _undecodable(block)
            if undecodable:
                self.undecodable_bytes += undecodable
                block = block.decode(errors="replace").encode()
        return block


def without_escapes(text: bytes) -> bytes:
    """Return the text without what only changes how a terminal shows it."""
    return _ANSI.sub(b"", text) if ESCAPE in text else text


def long_lines(block: bytes, limit: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line of the block that is longer than the limit.

    Looks at one place per `limit` bytes, not at every line.
    """
    at, last, find = 0, len(block) - limit, block.rfind
    while at < last:
        newline = find(b"\n", at, at + limit + 1)
        if newline < 0:
            newline = block.index(b"\n", at)
            yield at, newline
        at = newline + 1


def _undecodable(block: bytes) -> int:
    try:
        block.decode()
    except UnicodeDecodeError:
        text = block.decode(errors="surrogateescape")
        return len(block) - len(text.encode(errors="ignore"))
    return 0
