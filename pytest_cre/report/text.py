"""Hostile text made safe for terminals and XML: nothing hidden, nothing lost without a word."""

import re

from pytest_cre.evidence.masking import mask_text

LOG_BYTES = 32 * 1024  # of a log that a report shows
NOTE_BYTES = 64
BRIEF_CHARS = 1000

_ANSI = re.compile(r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b\n]{0,1024}(?:\x07|\x1b\\)")
# Controls, line and direction marks, surrogates and non-characters: invisible, or illegal in XML.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff]"
)
_NAME = re.compile(r"[^a-z0-9._-]+")


def clean(text: str) -> str:
    """Return text without colour codes, in which every unsafe character shows as its number.

    Newlines and tabs stay; carriage returns become newlines.
    """
    text = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNSAFE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str) -> str:
    """Return clean text on one line: runs of blanks and newlines become one blank."""
    return " ".join(clean(text).split())


def brief(text: str) -> str:
    """Return clean text on one line, cut where nobody would read on."""
    return fit(one_line(text[: 4 * BRIEF_CHARS]), BRIEF_CHARS)


def fit(text: str, width: int) -> str:
    """Return text cut to a width, with an ellipsis of three points where it was cut."""
    return text if len(text) <= width else text[: max(0, width - 3)] + "..."


def name_from(text: str) -> str:
    """Return a name of `[a-z0-9._-]` made from any text; never empty."""
    return _NAME.sub("-", text.lower()).strip("-")[:200] or "unnamed"


def clipped(text: str, *, head_bytes: int, tail_bytes: int) -> str:
    """Return clean text of at most `head_bytes + tail_bytes` bytes: its begin and its end.

    Cut at line ends where there are any; a line between the two says how many bytes were left out.
    """
    data = clean(text).encode()
    if len(data) <= head_bytes + tail_bytes:
        return data.decode()
    head, tail = _begin(data, head_bytes), _end(data, tail_bytes - NOTE_BYTES)
    note = f"[... {len(data) - len(head) - len(tail)} bytes left out ...]\n".encode()
    return b"".join((head, b"" if head.endswith(b"\n") else b"\n", note, tail)).decode()


def log_end(data: bytes, size: int = LOG_BYTES) -> str:
    """Return the last lines of a log as clean text of at most `size` bytes, without credentials.

    Of a last line that is longer its end. Only the end of the log is read, however long it is.
    """
    start = max(0, len(data) - 2 * size)
    start = start and (data.find(b"\n", start, -1) + 1 or start)
    text = mask_text(clean(data[start:].decode("utf-8", "replace"))).encode()
    return (text if len(text) <= size else _end(text, size)).decode()


def _begin(data: bytes, size: int) -> bytes:
    """Return whole lines from the begin; a part of the first one when it is longer."""
    part = data[:size]
    return part[: part.rfind(b"\n") + 1] or part.decode("utf-8", "ignore").encode()


def _end(data: bytes, size: int) -> bytes:
    """Return whole lines from the end; a part of the last one when it is longer."""
    part = data[len(data) - size :]
    return part.partition(b"\n")[2] or part.decode("utf-8", "ignore").encode()
