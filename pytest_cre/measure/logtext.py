"""The bytes of one log to clean lines, in blocks.

A block is some whole lines. Only lines that can matter are cut out of it: those that one of the readers'
needles occurs in, and all lines while a reader asks for them. That changes nothing but the speed: a line
without a needle means nothing to any reader. How the bytes are cut into chunks changes nothing at all.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from pytest_cre.evidence.masking import mask_text
from pytest_cre.measure.blocks import (
    ESCAPE,
    MAX_LINE_BYTES,
    RECORD_BYTES,
    BlockCutter,
    without_escapes,
)
from pytest_cre.measure.instants import PLAIN_TIME, RFC3339, instant_ns, yearless_ns

# Blocks grow, for the first ones tell how dense the log is. For larger ones malloc would map new pages each
# time, which costs more than the search.
FIRST_BLOCK_BYTES, BLOCK_BYTES = 16_384, 122_880

_PREFIX = re.compile(
    rb"[ \t]*+(?:"
    rb"\[?(?P<zoned>" + RFC3339 + rb")\]?(?:[ \t]std(?:out|err)[ ][FP](?::\S+)?)?(?:[ \t]|$)"
    rb"|\[?(?P<plain>" + PLAIN_TIME + rb")\]?(?:[ \t]|$)"
    rb"|\[NeMo[ ][A-Z][ ](?P<nemo>" + PLAIN_TIME + rb"(?:Z|[+-]\d\d:\d\d)?)[^\]]{0,99}\][: ]?"
    rb"|\[pod/[^\]\s]{1,512}\](?:[ ]|$)"
    rb"|\[(?P<tag>(?:[\w.-]{1,253}@)?\d{1,9},[ ]?\d{1,9})\]<std\w{1,6}>:"
    rb"|\[(?:rank|default|trainer|worker|node)[ _]?\d{1,7}\]:?[ ]?"
    rb"|(?P<task>\d{1,7}):(?:[ ]|$)"
    rb"|\(\w{1,80}[ ]pid=\d+(?:,[ ]ip=[\d.]+)?\)(?:[ ]|$)"
    rb"|(?=[a-z.-]{0,253}\d)[a-z0-9][a-z0-9.]{0,253}-[a-z0-9.-]{0,253}:[ ]"  # pod, from a launcher
    rb"|[A-Za-z_][\w.-]{0,40}/\d{1,7}[ ]"  # role and rank, from NeMo-Run
    rb"|(?P<own>[IWEF]\d{4}[ ]\d\d:\d\d:\d\d\.\d{6}[ ]+\d+[ ][\w.-]{1,80}:\d+\][ ])"  # absl
    rb")"
)
_MAX_PREFIXES = 8
_QUOTED_FROM = (
    4096  # a credential is masked before it is cut, for what is left of it looks like none
)
_RECORD_TIME = re.compile(RFC3339 + rb"[ ]")
_CRI_RECORD = re.compile(RFC3339 + rb"[ ](std(?:out|err))[ ]([FP])(?::\S+)?[ ]")
NEEDLES = (b"stdout P", b"stderr P", ESCAPE)  # unfinished records, and what may hide a needle


@dataclass(slots=True, kw_only=True)
class Line:
    """One clean line: the text after all prefixes, and what the prefixes said.

    `kubelet_ns` is the first time with a zone, `app_ns` a further time, or one without a zone
    (`is_app_zoned` tells which). `tag` is the rank that a launcher put before the line, or empty.
    `printed` is what the program wrote: with its own time and what else it puts before each line.
    """

    text: bytes
    printed: bytes
    kubelet_ns: int | None = None
    app_ns: int | None = None
    is_app_zoned: bool = False
    tag: bytes = b""


def quoted(text: bytes | str, most: int) -> str:
    """Return words of a log as a reason may quote them: cut to `most` characters, no credentials."""
    part = text[:_QUOTED_FROM]
    words = part.decode(errors="replace") if isinstance(part, bytes) else part
    return mask_text(words).strip()[:most]


def clean_line(raw: bytes) -> Line:
    """Strip prefixes, several deep.

    The blanks after a prefix stay, except for the one that belongs to it: columns matter.
    """
    line, at, printed_at = Line(text=raw, printed=raw), 0, -1
    for _ in range(_MAX_PREFIXES):
        found = _PREFIX.match(raw, at)
        if found is None:
            break
        kind = found.lastgroup
        if kind in ("zoned", "plain", "nemo"):
            written = found[kind]
            at_ns = instant_ns(written)
            if at_ns is None:
                break
            if kind == "zoned" and line.kubelet_ns is None:
                line.kubelet_ns = at_ns
            elif line.app_ns is None:
                printed_at = at if printed_at < 0 else printed_at
                line.app_ns = at_ns
                line.is_app_zoned = kind == "zoned" or len(written.lstrip(b"0123456789-T :.,")) > 0
        elif kind == "tag":
            line.tag = found["tag"].rpartition(b",")[2].strip()
        elif kind == "task":
            line.tag = found["task"]
        elif kind == "own":
            printed_at = at if printed_at < 0 else printed_at
            if line.app_ns is None:
                line.app_ns = yearless_ns(found["own"][1:21], line.kubelet_ns)
        at = found.end()
    line.text = raw[at:] if at else raw
    line.printed = raw[printed_at:] if printed_at >= 0 else line.text
    return line


def join_records(raw: bytes) -> bytes:
    """Drop the timestamps that the log API puts inside a line longer than the runtime's records."""
    first = _RECORD_TIME.match(raw)
    if first is None:
        return raw
    for size in RECORD_BYTES:
        pieces, start, at = [raw[: first.end()]], first.end(), first.end() + size
        while found := _RECORD_TIME.match(raw, at):
            pieces.append(raw[start:at])
            start, at = found.end(), found.end() + size
        if len(pieces) > 1:
            return b"".join([*pieces, raw[start:]])
    return raw


class LineReader(Protocol):
    """What lines are cut out for."""

    wants_all: bool  # every following line is wanted, for now

    def places(self, block: bytes) -> Iterable[tuple[int, int]]:
        """Yield start and end, in order, of what occurs in every line that can matter."""

    def line(self, line: Line) -> bool:
        """Take a line; return whether something was taken from it."""

    def row(self, block: bytes, at: int) -> int:
        """Take a single line in one go, where that means the same; return where it ends, else the place."""

    def fast(self, block: bytes, at: int) -> tuple[int, int]:
        """Take lines from a place on in one go; return where they end and how many they are."""


class LogText:
    """One log, fed in chunks, handed line by line to a reader."""

    def __init__(self, reader: LineReader) -> None:
        self.reader = reader
        self.matched_lines = 0
        self._cutter = BlockCutter()
        self._records: dict[bytes, bytes] = {}  # unfinished lines, by stdout and stderr
        self._block_bytes = FIRST_BLOCK_BYTES
        self._is_dense = False
        self._first = b""
        self._last = b""

    @property
    def first_line(self) -> Line:
        """Return the first line of all, with its times."""
        return clean_line(without_escapes(self._first))

    @property
    def last_line(self) -> Line:
        """Return the last line of all, with its times."""
        return clean_line(without_escapes(self._last))

    @property
    def lines_too_long(self) -> int:
        """Return how many lines were dropped for their length."""
        return self._cutter.lines_too_long

    @property
    def undecodable_bytes(self) -> int:
        """Return how many bytes of the lines read are no UTF-8."""
        return self._cutter.undecodable_bytes

    @property
    def unmatched_lines(self) -> int:
        """Return how many lines, blank ones included and dropped ones not, gave nothing."""
        return self._cutter.lines - self.matched_lines

    def feed(self, data: bytes) -> None:
        """Take some bytes of the log."""
        start = 0
        while start < len(data):
            end = start + min(self._block_bytes, BLOCK_BYTES)
            self._block(self._cutter.feed(data, start, end))
            start, self._block_bytes = end, min(self._block_bytes * 2, BLOCK_BYTES)

    def close(self) -> None:
        """Take the last line, also one without an end."""
        self._block(self._cutter.close())
        for raw in self._records.values():
            self._clean(raw)
        self._records.clear()

    def _block(self, block: bytes) -> None:
        if not block:
            return
        self._first = self._first or block[: block.index(b"\n")]
        self._last = block[block.rfind(b"\n", 0, -1) + 1 : -1] or self._last
        # A record's timestamp may stand inside a needle.
        has_records = self._cutter.has_long_lines
        lines, matched = self._cutter.lines_of_block, self.matched_lines
        if self._is_dense or has_records:
            block = without_escapes(block)
            self._every_line(block, 0, is_plain=b"\r" not in block and not has_records)
        else:
            self._some_lines(block)
        # Where most lines matter, looking for needles costs more than it saves.
        self._is_dense = (self.matched_lines - matched) * 2 > lines

    def _some_lines(self, block: bytes, *, has_escapes: bool = True) -> None:
        at = self._wanted_lines(block, 0)
        for start, end in self.reader.places(block) if at < len(block) else ():
            if end <= at:
                continue
            at = max(at, block.rfind(b"\n", at, start) + 1)
            # Each line of a coloured log has some.
            if has_escapes and block.startswith(ESCAPE, start):
                self._some_lines(without_escapes(block[at:]), has_escapes=False)
                return
            while at < end:
                begin, at = at, at if self._records else self.reader.row(block, at)
                if at > begin:
                    self.matched_lines += 1
                else:
                    at = self._one_line(block, at)
            at = self._wanted_lines(block, at)

    def _wanted_lines(self, block: bytes, at: int) -> int:
        """Take lines as long as every one is wanted; return where they end."""
        while at < len(block) and (self.reader.wants_all or self._records):
            at = self._one_line(block, at)
        return at

    def _every_line(self, block: bytes, at: int, *, is_plain: bool) -> None:
        size, fast = len(block), self.reader.fast
        while at < size:
            taken = 0
            if is_plain and not self._records:
                at, taken = fast(block, at)
                self.matched_lines += taken
            if not taken:
                at = self._one_line(block, at)

    def _one_line(self, block: bytes, at: int) -> int:
        end = block.index(b"\n", at)
        raw = without_escapes(block[at:end])
        if self._records or b" P" in raw[:80]:
            record = _CRI_RECORD.match(raw)
            if record is not None:
                held = self._records.pop(record[1], b"")
                raw = held + raw[record.end() :] if held else raw
                if record[2] == b"P":
                    self._records[record[1]] = raw[: MAX_LINE_BYTES + 1]
                    return end + 1
        self._clean(raw)
        return end + 1

    def _clean(self, raw: bytes) -> None:
        if len(raw) > MAX_LINE_BYTES:
            self._cutter.lines_too_long += 1
            return
        if len(raw) > min(RECORD_BYTES):
            raw = join_records(raw)
        line = clean_line(raw)
        if b"\r" in line.text:
            self.matched_lines += self._pieces(line)
        else:
            self.matched_lines += self.reader.line(line)

    def _pieces(self, line: Line) -> bool:
        """Hand over what a terminal showed one after another on the same line.

        Only the last piece was written at the line's time.
        """
        is_matched = False
        pieces = [piece for piece in line.text.split(b"\r") if piece]
        for index, piece in enumerate(pieces):
            clean = clean_line(piece) if index else replace(line, text=piece, printed=piece)
            clean.tag = clean.tag or line.tag
            if index < len(pieces) - 1:
                clean.kubelet_ns = None
            elif index:
                clean.kubelet_ns = line.kubelet_ns
            is_matched |= self.reader.line(clean)
        return is_matched
