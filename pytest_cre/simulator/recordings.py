"""Recorded logs: a header and JSON lines `(offset_ms, stream, text)`, or a plain log file."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_cre.simulator.logbuffer import Stream

FORMAT = "cre.recording/1"
PLAIN_LOG_S = 0.5  # a plain log has no times; all of it is replayed within this
_LARGEST_FILE_BYTES = 256 << 20
_LARGEST_OFFSET_MS = 7 * 24 * 3600 * 1000.0


@dataclass(frozen=True, slots=True)
class RecordedOutput:
    """Bytes that the program wrote, and when."""

    offset_s: float
    stream: Stream
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a program wrote, in order, and how it ended."""

    outputs: tuple[RecordedOutput, ...]
    exit_code: int = 0


def load_recording(path: Path) -> Recording:
    """Return the recording of a file; raises `ValueError` in one line."""
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST_FILE_BYTES + 1)
    except OSError as problem:
        raise ValueError(f"recording {path} cannot be read: {problem.strerror}") from None
    if len(raw) > _LARGEST_FILE_BYTES:
        raise ValueError(f"recording {path} is larger than {_LARGEST_FILE_BYTES} bytes")
    header = _header(raw)
    return _plain(raw) if header is None else _timed(raw, header, path)


def _header(raw: bytes) -> dict[str, Any] | None:
    """Return the first line of a recording with times, None for a plain log."""
    line = raw.partition(b"\n")[0]
    if FORMAT.encode() not in line:
        return None
    try:
        header = json.loads(line)
    except ValueError:
        return None
    return header if isinstance(header, dict) and header.get("recording") == FORMAT else None


def _plain(raw: bytes) -> Recording:
    lines = raw.splitlines(keepends=True)
    gap_s = PLAIN_LOG_S / max(1, len(lines))
    # bytes.splitlines also ends lines at a bare CR, which changes nothing in what is written.
    outputs = tuple(
        RecordedOutput(number * gap_s, "stdout", line) for number, line in enumerate(lines)
    )
    return Recording(outputs=outputs)


def _timed(raw: bytes, header: dict[str, Any], path: Path) -> Recording:
    exit_code = header.get("exit_code", 0)
    if isinstance(exit_code, bool) or not isinstance(exit_code, int) or not 0 <= exit_code <= 255:
        raise ValueError(f"{path}:1: exit_code must be 0 to 255, got {exit_code!r}")
    outputs = []
    for number, line in enumerate(raw.split(b"\n")[1:], start=2):
        if line.strip():
            outputs.append(_output(line, f"{path}:{number}"))
    outputs.sort(key=lambda each: each.offset_s)
    return Recording(outputs=tuple(outputs), exit_code=exit_code)


def _output(line: bytes, place: str) -> RecordedOutput:
    form = '{"offset_ms": 12.5, "stream": "stdout", "text": "..."}'
    try:
        data = json.loads(line)
        offset_ms, stream, text = data["offset_ms"], data.get("stream", "stdout"), data["text"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{place}: each line must be of the form {form}") from None
    is_number = isinstance(offset_ms, int | float) and not isinstance(offset_ms, bool)
    if not is_number or not math.isfinite(offset_ms) or not 0 <= offset_ms <= _LARGEST_OFFSET_MS:
        raise ValueError(
            f"{place}: offset_ms must be a number from 0 on, got {str(offset_ms)[:40]}"
        )
    if stream not in ("stdout", "stderr") or not isinstance(text, str):
        raise ValueError(f"{place}: each line must be of the form {form}")
    end = "" if data.get("partial") is True else "\n"
    try:
        written = (text + end).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"{place}: text holds a code point that cannot be written") from None
    return RecordedOutput(offset_ms / 1000.0, stream, written)
