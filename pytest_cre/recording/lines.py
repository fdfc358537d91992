"""A container's log as lines of a recording, and back."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from pytest_cre.measure.blocks import RECORD_BYTES
from pytest_cre.measure.instants import split_kubelet_time
from pytest_cre.measure.logtext import join_records

FORMAT = "cre.recording/1"
NS_PER_MS = 1_000_000


def recorded(
    data: bytes,
    scrub: Callable[[bytes], bytes],
    *,
    started_ns: int,
    finished_ns: int | None,
    exit_code: int,
) -> str:
    """Return the recording of a log with the kubelet's timestamps.

    A line without a time has that of the line before.
    """
    times, texts = _parted(data)
    ended_ns = max(0, (finished_ns or 0) - started_ns)
    header = {
        "recording": FORMAT,
        "exit_code": exit_code,
        "started_ns": started_ns,
        "ended_ms": ended_ns / NS_PER_MS,
    }
    lines, offset_ns = [json.dumps(header)], 0
    scrubbed = scrub(b"\n".join(texts)).split(b"\n") if texts else []
    for number, (at_ns, text) in enumerate(zip(times, scrubbed, strict=True), start=1):
        offset_ns = max(0, at_ns - started_ns) if at_ns is not None else offset_ns
        line: dict[str, object] = {
            "offset_ms": offset_ns / NS_PER_MS,
            "text": text.decode("utf-8", "surrogateescape"),
        }
        if number == len(texts) and not data.endswith(b"\n"):
            line["partial"] = True
        lines.append(json.dumps(line))
    return "\n".join(lines) + "\n"


def first_time_ns(data: bytes) -> int:
    """Return the time of a log's first line, 0 where it has none."""
    return split_kubelet_time(data[: data.find(b"\n") + 1 or len(data)])[0] or 0


def replayed(recording: str, *, started_ns: int) -> bytes:
    """Return the log that a kubelet would give of the recording, played at that time."""
    return b"".join(_rendered(recording, started_ns))


def _rendered(recording: str, started_ns: int) -> Iterator[bytes]:
    for line in recording.splitlines()[1:]:
        given = json.loads(line)
        at_ns = started_ns + round(given["offset_ms"] * NS_PER_MS)
        seconds, rest_ns = divmod(at_ns, 1_000_000_000)
        moment = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        text = given["text"].encode("utf-8", "surrogateescape")
        end = b"" if given.get("partial") else b"\n"
        yield f"{moment}.{rest_ns:09d}Z ".encode() + text + end


def _parted(data: bytes) -> tuple[list[int | None], list[bytes]]:
    """Return time and text of each line."""
    times: list[int | None] = []
    texts: list[bytes] = []
    for raw in data.removesuffix(b"\n").split(b"\n") if data else ():
        whole = join_records(raw) if len(raw) > min(RECORD_BYTES) else raw
        at_ns, text = split_kubelet_time(whole)
        times.append(at_ns)
        texts.append(text)
    return times, texts
