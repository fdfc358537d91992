"""Recorded logs: a header and JSON lines `(offset_ms, stream, text)`, or a plain log file.

A folder holds the recordings of a whole group: `<index>.jsonl` of the pod with that completion index, or
`launcher.jsonl` of one without; `<index>.1.jsonl` is of the container that came after it, and so on.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_cre.simulator.logbuffer import Stream

FORMAT = "cre.recording/1"
PLAIN_LOG_S = 0.5  # a plain log has no times; all of it is replayed within this
_LARGEST_FILE_BYTES = 256 << 20
_LARGEST_OFFSET_MS = 7 * 24 * 3600 * 1000.0
_LATEST_NS = 1 << 62
_IN_FOLDER = re.compile(r"(?:(0|[1-9]\d{0,6})|launcher)(?:\.([1-9]\d{0,3}))?\.jsonl")

Recordings = Mapping[int | None, "tuple[Recording, ...]"]
"""By completion index, None of a pod without one: of each container after the other."""


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
    ended_s: float = 0.0  # when it ended, where that was after its last output
    started_ns: int | None = None  # when it was recorded, since 1970

    @property
    def lasted_s(self) -> float:
        """Return how long it ran."""
        return max(self.ended_s, max((each.offset_s for each in self.outputs), default=0.0))


def load_recordings(path: Path) -> Recordings:
    """Return the recordings of a file or folder; raises `ValueError` in one line.

    That of a file is of the pod with completion index 0, and of one without.
    """
    if not path.is_dir():
        recording = load_recording(path)
        return {0: (recording,), None: (recording,)}
    found: dict[int | None, dict[int, Recording]] = {}
    for file in sorted(path.iterdir()):
        match = _IN_FOLDER.fullmatch(file.name)
        if match is None:
            raise ValueError(
                f"recording {file}: a file of a folder is named 0.jsonl, 0.1.jsonl or launcher.jsonl"
            )
        index = None if match[1] is None else int(match[1])
        found.setdefault(index, {})[int(match[2] or 0)] = load_recording(file)
    if not found:
        raise ValueError(f"recording {path}: the folder is empty")
    return {index: tuple(each[nth] for nth in sorted(each)) for index, each in found.items()}


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
    ended_ms = header.get("ended_ms", 0)
    if not _is_offset(ended_ms):
        raise ValueError(f"{path}:1: ended_ms must be a number from 0 on, got {str(ended_ms)[:40]}")
    started = header.get("started_ns")
    if started is not None and (isinstance(started, bool) or not isinstance(started, int)):
        raise ValueError(f"{path}:1: started_ns must be nanoseconds, got {str(started)[:40]}")
    if started is not None and not 0 <= started <= _LATEST_NS:
        raise ValueError(f"{path}:1: started_ns must be since 1970, got {str(started)[:40]}")
    outputs = []
    for number, line in enumerate(raw.split(b"\n")[1:], start=2):
        if line.strip():
            outputs.append(_output(line, f"{path}:{number}"))
    outputs.sort(key=lambda each: each.offset_s)
    return Recording(
        outputs=tuple(outputs),
        exit_code=exit_code,
        ended_s=ended_ms / 1000.0,
        started_ns=started,
    )


def _is_offset(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and 0 <= value <= _LARGEST_OFFSET_MS


def _output(line: bytes, place: str) -> RecordedOutput:
    form = '{"offset_ms": 12.5, "stream": "stdout", "text": "..."}'
    try:
        data = json.loads(line)
        offset_ms, stream, text = data["offset_ms"], data.get("stream", "stdout"), data["text"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{place}: each line must be of the form {form}") from None
    if not _is_offset(offset_ms):
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
