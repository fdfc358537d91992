"""The JSON report of nccl-tests (`-J`), as a file of its own or printed into a log."""

import json
from collections.abc import Callable, Mapping
from math import isfinite

from pytest_cre.measure.logtext import Line
from pytest_cre.measure.model import BandwidthRow, BandwidthTable, HalfRow, OutOfBounds
from pytest_cre.measure.table import AssembledTable, collective_name, version_text

# A document begins with a line that holds its opening brace alone, or with all of it on one line.
OPENINGS = (b"{\n", b"{\r")
NEEDLES = (*OPENINGS, b'"average_bus_bandwidth"')
MAX_DOCUMENT_BYTES = 4_194_304


def is_report(document: Mapping[str, object]) -> bool:
    """Return whether a JSON document is the report of a benchmark."""
    return isinstance(document.get("results"), list)


class DocumentReader:
    """Collects the JSON documents of one stream that are wanted.

    `mark` occurs in each that stands on one line.
    """

    def __init__(
        self,
        is_wanted: Callable[[Mapping[str, object]], bool] = is_report,
        mark: bytes = b'"average_bus_bandwidth"',
    ) -> None:
        self._is_wanted, self._mark = is_wanted, mark
        self.documents: list[Mapping[str, object]] = []
        self._lines: list[bytes] | None = None
        self._bytes = 0

    @property
    def is_open(self) -> bool:
        """Return whether a document was begun, so that every line is wanted."""
        return self._lines is not None

    def line(self, line: Line) -> bool:
        """Take a line; return whether it ended a document that is wanted."""
        text = line.text.strip()
        if self._lines is None:
            if text == b"{" and line.text.endswith(text):
                self._lines, self._bytes = [text], 0
            elif text.startswith(b"{") and self._mark in text:
                return self._take(text)
            return False
        self._lines.append(text)
        self._bytes += len(text)
        if line.text.rstrip() == b"}":
            joined, self._lines = b"\n".join(self._lines), None
            return self._take(joined)
        if self._bytes > MAX_DOCUMENT_BYTES:
            self._lines = None
        return False

    def _take(self, text: bytes) -> bool:
        try:
            document = json.loads(text.decode(errors="replace"))
        except (ValueError, RecursionError):
            return False
        if not isinstance(document, dict) or not self._is_wanted(document):
            return False
        self.documents.append(document)
        return True


def table_of(document: Mapping[str, object]) -> AssembledTable:
    """Return the table of a report; what has another form than the tool writes is left out."""
    results = document.get("results")
    parsed = [_row(each) for each in results] if isinstance(results, list) else []
    found = [row for row in parsed if row is not None]
    reasons = set()
    if len(found) < len(parsed):
        reasons.add("torn-rows")
    average = _mapping(document.get("average_bus_bandwidth"))
    bandwidth_gbs = _number(average.get("bandwidth"))
    if bandwidth_gbs is None:
        reasons.add("no-footer")
    if str(average.get("okay")).lower() == "false":
        reasons.add("below-minimum")
    bounds = _mapping(document.get("out_of_bounds"))
    count = _number(bounds.get("count"))
    out_of_bounds = None
    if count is not None:
        is_ok = str(bounds.get("okay", count == 0)).lower() == "true"
        out_of_bounds = OutOfBounds(count=int(count), is_ok=is_ok)
        if not is_ok:
            reasons.add("out-of-bounds")
    halves = [half for row in found for half in (row.out_of_place, row.in_place) if half]
    if any(half.wrong for half in halves):
        reasons.add("wrong-values")
    if any(half.busbw_gbs is None for half in halves):
        reasons.add("not-a-number")
    config = _mapping(document.get("config"))
    devices = config.get("devices")
    version = document.get("nccl_version")
    tool = document.get("version")
    args = document.get("args")
    program = args[0] if isinstance(args, list) and args else args
    incomplete = reasons & {"torn-rows", "no-footer", "not-a-number"}
    return AssembledTable(
        table=BandwidthTable(
            test=collective_name(program) if isinstance(program, str) and program else None,
            rows=tuple(found),
            avg_busbw_gbs=bandwidth_gbs,
            out_of_bounds=out_of_bounds,
            is_complete=bool(found) and not incomplete,
            ranks=len(devices) if isinstance(devices, list) and devices else None,
            nccl_version=version_text(version) if isinstance(version, int) else None,
            tool_version=str(tool)[:80] if isinstance(tool, str | int) else None,
        ),
        reasons=frozenset(reasons) if found else frozenset({"no-rows"}),
        has_header=True,
    )


def _row(result: object) -> BandwidthRow | None:
    fields = _mapping(result)
    size, count, root = (_whole(fields.get(name)) for name in ("size", "count", "root"))
    halves = [_half(fields.get(name)) for name in ("out_of_place", "in_place")]
    if size is None or size < 0 or not any(halves):
        return None
    redop = fields.get("redop")
    return BandwidthRow(
        size_bytes=size,
        count=count or 0,
        dtype=str(fields.get("type", ""))[:30].strip(),
        redop=redop.strip()[:30] if isinstance(redop, str) else None,
        root=root,
        out_of_place=halves[0],
        in_place=halves[1],
    )


def _half(value: object) -> HalfRow | None:
    fields = _mapping(value)
    if not fields:
        return None
    return HalfRow(
        time_us=_number(fields.get("time", fields.get("cpu_time"))),
        algbw_gbs=_number(fields.get("alg_bw")),
        busbw_gbs=_number(fields.get("bus_bw")),
        wrong=_whole(fields.get("nwrong")),
    )


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    try:
        return float(value) if isinstance(value, int | float) and isfinite(value) else None
    except OverflowError:
        return None


def _whole(value: object) -> int | None:
    """Return a whole number; the tool pads some of them to strings."""
    number = _number(value)
    return int(number) if number is not None and abs(number) < 2**63 else None
