"""Tables of collective benchmarks (nccl-tests, rccl-tests and what prints the same) out of a log.

Lines of a table are collected per stream and launcher rank and put together when all is read, so that a
log split over several files gives the same tables as the whole.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import log10
from statistics import median

from pytest_cre.measure import rows
from pytest_cre.measure.logtext import Line
from pytest_cre.measure.model import BandwidthRow, BandwidthTable, HalfRow, OutOfBounds
from pytest_cre.measure.rows import Layout, ParsedRow, layout_of, parse_row

NEEDLES = (
    rows.NEEDLE,
    rb"minBytes +\d",
    rb"(?:size|count)[ \t]+(?:count|type)[ \t]",
    rb"Rank +\d+ +(?:Group +\d+ +)?Pid",
    rb"[nr]ccl-tests:? [vV]ersion",
    rb"Collective test (?:starting|concluded)",
    rb"(?i:out of bounds values|avg bus bandwidth)",
    rb"(?:N|R)CCL version",
)

_VERSION = re.compile(rb"nccl-tests version (\S+)(?:.*?nccl-library=(\d{3,7}))?")
_RCCL_VERSION = re.compile(rb"rccl-tests:? [vV]ersion:? +(\S+)")
_LIBRARY = re.compile(rb"[NR]CCL version *:? *(\d+\.\d+(?:\.\d+)?)")
_START = re.compile(rb"Collective test starting: *(\S+)")
_CONCLUDED = re.compile(rb"Collective test concluded")
_PARAMETERS = re.compile(
    rb"minBytes +(\d{1,18}) +maxBytes +(\d{1,18})(?: +step: *(\d{1,18})\((\w+)\))?"
)
_VALIDATION_OFF = re.compile(rb"\bvalidation: 0\b")
_DEVICE = re.compile(rb"Rank +(\d{1,7}) +(?:Group +\d+ +)?Pid +\d+ on +(\S+)")
_BOUNDS = re.compile(rb"(?i:out of bounds values) *: *(\d{1,18})(?: +(OK|FAILED))?")
_AVERAGE = re.compile(
    rb"(?i:avg bus bandwidth) *: *([+-]?\d[\d.]*(?:[eE][+-]?\d{1,3})?)(?: +(OK|FAILED))?[ \t]*$"
)
_TEST_NAME = re.compile(r"(?:.*/)?([a-z][a-z_]*?)(?:_perf)?(?:_mpi)?")
_OTHER_NAMES = {"all_to_all": "alltoall", "sendrecv": "sendrecv", "allreduce": "all_reduce"}


@dataclass(frozen=True, slots=True)
class TableLine:
    """A line that belongs to a table, with the launcher's rank tag and its time."""

    text: bytes
    tag: bytes
    t_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledTable:
    """A table and what is wrong with it; see docs/reference/measure.md for the reasons."""

    table: BandwidthTable
    reasons: frozenset[str]
    has_header: bool
    time_ns: int | None = None
    hosts: int | None = None  # that the device lines name


@dataclass(slots=True, kw_only=True)
class _Open:
    """A table that is being read."""

    test: str | None = None
    tool_version: str | None = None
    nccl_version: str | None = None
    parameters: "re.Match[bytes] | None" = None
    is_validated: bool = True
    layout: Layout | None = None
    ranks: set[int] = field(default_factory=set)
    hosts: set[bytes] = field(default_factory=set)
    rows: list[ParsedRow] = field(default_factory=list)
    bounds: OutOfBounds | None = None
    average: bytes | None = None
    average_failed: bool = False
    openings: int = 0
    footers: int = 0
    torn: int = 0
    time_ns: int | None = None

    @property
    def is_begun(self) -> bool:
        return bool(self.rows or self.footers or self.torn)

    @property
    def has_header(self) -> bool:
        return self.parameters is not None or self.layout is not None


def is_table_line(text: bytes) -> bool:
    """Return whether a line belongs to a benchmark's table."""
    if rows.is_row_like(text) or layout_of(text) is not None:
        return True
    return any(pattern.search(text) for pattern in _TABLE_PATTERNS)


_TABLE_PATTERNS = (
    _PARAMETERS,
    _DEVICE,
    _VERSION,
    _RCCL_VERSION,
    _START,
    _CONCLUDED,
    _BOUNDS,
    _AVERAGE,
    _LIBRARY,
)


class TableReader:
    """Collects the table lines of one stream."""

    def __init__(self) -> None:
        self.lines: list[TableLine] = []

    def line(self, line: Line) -> bool:
        """Take a line; return whether it belongs to a table."""
        if not is_table_line(line.text):
            return False
        t_ns = line.kubelet_ns if line.kubelet_ns is not None else line.app_ns
        self.lines.append(TableLine(line.text, line.tag, t_ns))
        return True

    @property
    def has_footer(self) -> bool:
        """Return whether the newest line closes a table."""
        return bool(self.lines) and bool(_AVERAGE.search(self.lines[-1].text))


def assemble(streams: Sequence[Sequence[TableLine]]) -> list[AssembledTable]:
    """Return the tables of one Job's streams, in the order of time where it is known.

    Streams, and ranks of a launcher within one, are tables of their own as long as each is whole; parts
    without a header are put together with the others, by time, else in the order given.
    """
    parts: list[list[TableLine]] = []
    library = [
        found for lines in streams for line in lines if (found := _LIBRARY.search(line.text))
    ]
    for lines in streams:
        by_tag: dict[bytes, list[TableLine]] = {}
        for line in lines:
            by_tag.setdefault(line.tag, []).append(line)
        parts.extend(by_tag.values())
    apart = [_tables_of(part) for part in parts]
    tables = [table for part in apart for table in part]
    with_tables = sum(bool(part) for part in apart)
    is_split = with_tables > 1 and any(
        not each.has_header or not each.table.rows for each in tables
    )
    if is_split or (with_tables == 1 and len(parts) > 1):
        merged = [line for part in parts for line in part]
        if all(line.t_ns is not None for line in merged):
            merged.sort(key=lambda line: line.t_ns or 0)
        together = _tables_of(merged)
        if len(together) < len(tables) or with_tables == 1:
            tables = together
    if all(each.time_ns is not None for each in tables):
        tables.sort(key=lambda each: each.time_ns or 0)
    if library:  # any rank may have printed it
        version = library[0][1].decode()
        tables = [
            replace(each, table=replace(each.table, nccl_version=version))
            if each.table.nccl_version is None
            else each
            for each in tables
        ]
    return tables


def _tables_of(lines: Iterable[TableLine]) -> list[AssembledTable]:
    done: list[AssembledTable] = []
    current = _Open()
    for line in lines:
        if current.is_begun and not rows.is_row_like(line.text) and _opens(line.text):
            done.append(_closed(current))
            current = _Open(nccl_version=current.nccl_version, tool_version=current.tool_version)
        _take(current, line)
    if current.is_begun or current.has_header or current.test:
        done.append(_closed(current))
    return done


def _opens(text: bytes) -> bool:
    return (
        _PARAMETERS.search(text) is not None
        or _START.search(text) is not None
        or _VERSION.search(text) is not None
        or layout_of(text) is not None
    )


def _take(table: _Open, line: TableLine) -> None:
    text = line.text
    if table.time_ns is None:
        table.time_ns = line.t_ns
    if rows.is_row_like(text):
        row = parse_row(text, table.layout)
        if row is None:
            table.torn += 1
        else:
            table.rows.append(row)
    elif layout := layout_of(text):
        table.layout = layout
    elif found := _PARAMETERS.search(text):
        table.openings += 1
        table.parameters = found
        table.is_validated = _VALIDATION_OFF.search(text) is None
    elif found := _DEVICE.search(text):
        table.ranks.add(int(found[1]))
        table.hosts.add(found[2])
    elif found := _BOUNDS.search(text):
        table.footers += 1
        count, verdict = int(found[1]), found[2]
        is_ok = count == 0 if verdict is None else verdict == b"OK"
        table.bounds = OutOfBounds(count=count, is_ok=is_ok)
    elif found := _AVERAGE.search(text):
        table.footers += 1
        table.average = found[1]
        table.average_failed = found[2] == b"FAILED"
    elif found := _START.search(text):
        table.test = collective_name(found[1].decode(errors="replace"))
    elif found := _VERSION.search(text):
        table.tool_version = found[1].decode(errors="replace")[:80]
        table.nccl_version = version_text(int(found[2]) if found[2] else None) or table.nccl_version
    elif found := _RCCL_VERSION.search(text):
        table.tool_version = found[1].decode(errors="replace")[:80]
    elif found := _LIBRARY.search(text):
        table.nccl_version = found[1].decode()


def collective_name(printed: str) -> str | None:
    """Return the collective's name without the program's endings: `all_reduce_perf_mpi` is all_reduce."""
    found = _TEST_NAME.fullmatch(printed.strip().lower())
    return _OTHER_NAMES.get(found[1], found[1]) if found else None


def version_text(number: int | None) -> str | None:
    """Return 2.27.7 for 22707: 10000, 100 and 1 since release 2.9; 1000, 100 and 1 before."""
    if number is None:
        return None
    major, rest = divmod(number, 10_000 if number >= 10_000 else 1_000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _closed(table: _Open) -> AssembledTable:
    reasons: set[str] = set()
    parsed = table.rows
    if any(not row.is_half for row in parsed) and any(
        row.is_half and row.row.in_place is None for row in parsed
    ):
        # A row cut after its first half looks like a table of one half.
        whole = [row for row in parsed if not row.is_half]
        table.torn += len(parsed) - len(whole)
        parsed = whole
    found = [row.row for row in parsed]
    if not table.is_validated:
        found = [_unchecked(row) for row in found]
    if table.torn:
        reasons.add("torn-rows")
    if any(row.has_nan for row in parsed):
        reasons.add("not-a-number")
    average = float(table.average) if table.average and _is_number(table.average) else None
    if average is None:
        reasons.add("no-footer")
    elif not _is_mean(average, table.average or b"", parsed):
        reasons.add("average-mismatch")
    if table.average_failed:
        reasons.add("below-minimum")
    if table.openings > 1 or table.footers > 2:
        reasons.add("several-tables")
    if found and table.parameters and _lacks_sizes(table.parameters, found, len(table.ranks)):
        reasons.add("sizes-missing")
    if any(wrong for row in found for wrong in _wrongs(row)):
        reasons.add("wrong-values")
    if table.bounds is not None and not table.bounds.is_ok:
        reasons.add("out-of-bounds")
    is_complete = bool(found) and not reasons & INCOMPLETE_TABLE
    return AssembledTable(
        table=BandwidthTable(
            test=table.test or _guess_test(found, len(table.ranks)),
            rows=tuple(found),
            avg_busbw_gbs=average,
            out_of_bounds=table.bounds,
            is_complete=is_complete,
            ranks=len(table.ranks) or None,
            nccl_version=table.nccl_version,
            tool_version=table.tool_version,
        ),
        reasons=frozenset(reasons) if found else frozenset({"no-rows"}),
        has_header=table.has_header,
        time_ns=table.time_ns,
        hosts=len(table.hosts) or None,
    )


INCOMPLETE_TABLE = frozenset(
    (
        "torn-rows",
        "not-a-number",
        "no-footer",
        "average-mismatch",
        "several-tables",
        "sizes-missing",
        "no-rows",
    )
)


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _halves(row: BandwidthRow) -> list[HalfRow]:
    return [half for half in (row.out_of_place, row.in_place) if half is not None]


def _wrongs(row: BandwidthRow) -> list[int | None]:
    return [half.wrong for half in _halves(row)]


def _unchecked(row: BandwidthRow) -> BandwidthRow:
    """Drop the counts of a table made without validation: old releases print 0 there."""
    return replace(
        row,
        out_of_place=replace(row.out_of_place, wrong=None) if row.out_of_place else None,
        in_place=replace(row.in_place, wrong=None) if row.in_place else None,
    )


def _is_mean(printed: float, digits: bytes, parsed: Sequence[ParsedRow]) -> bool:
    """Return whether the printed average is the mean of both halves over all rows.

    It may differ by what printing rounds away: of each value, and of the average itself, which has
    six digits.
    """
    values = [half.busbw_gbs for row in parsed for half in _halves(row.row)]
    known = [value for value in values if value is not None]
    if not known or len(known) != len(values):
        return False
    errors = [error for row in parsed for error in row.errors_gbs]
    places = len(digits.partition(b".")[2])
    six_digits = 10.0 ** (int(log10(abs(printed))) - 5) if abs(printed) > 1e-300 else 0.0
    unit = max(six_digits, 10.0**-places if b"e" not in digits.lower() else 0.0)
    slack = sum(errors) / len(errors) + 0.5 * unit + 1e-9 * abs(printed)
    return abs(sum(known) / len(known) - printed) <= slack


def _lacks_sizes(parameters: "re.Match[bytes]", found: Sequence[BandwidthRow], ranks: int) -> bool:
    """Return whether the sweep ended before the sizes that the parameter line announces.

    A size may be printed a little smaller than asked for: it is made divisible by the ranks.
    """
    first, last = int(parameters[1]), int(parameters[2])
    step = int(parameters[3]) if parameters[3] else 0
    count = 1
    if parameters[4] == b"factor" and step > 1 and first > 0:
        while first * step <= last:
            first, count = first * step, count + 1
        last = first
    elif parameters[4] == b"bytes" and step > 0 and last >= first:
        count += (last - first) // step
        last = first + (count - 1) * step
    slack = 16 * 8 * ranks if ranks else max(4096, last // 8)
    return max(row.size_bytes for row in found) + slack < last or len(found) < count


def _guess_test(found: Sequence[BandwidthRow], ranks: int) -> str | None:
    """Return the collective where its columns and factor leave one choice.

    Bus bandwidth is the algorithm's times 2(n-1)/n for all-reduce, (n-1)/n where each rank handles a
    share, and 1 where data moves once. The largest row tells best.
    """
    usable = [
        (row.size_bytes, half.busbw_gbs / half.algbw_gbs, row)
        for row in found
        for half in _halves(row)
        if half.busbw_gbs and half.algbw_gbs and half.algbw_gbs >= 1.0
    ]
    if not usable:
        return None
    _, factor, row = max(usable, key=lambda each: each[0])
    reduces = row.redop not in (None, "none")
    if reduces and row.root is not None and row.root >= 0:
        return "reduce"
    share = (ranks - 1) / ranks if ranks > 1 else 0.98
    if reduces:
        return "all_reduce" if abs(factor - 2 * share) < abs(factor - share) else "reduce_scatter"
    moves_once = abs(factor - 1.0) < 0.002
    if share > 0.996 or (not ranks and moves_once):
        return None
    if row.root is not None and row.root >= 0:
        return "broadcast" if moves_once else None
    if moves_once:
        return "sendrecv"
    checked = [half.wrong is not None for half in (row.out_of_place, row.in_place) if half]
    if checked == [True, True]:
        return "all_gather"
    return "alltoall" if checked == [True, False] else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeStatistics:
    """Bus bandwidth of one half at one size over all cycles of a table, in GB/s."""

    size_bytes: int
    half: str  # out_of_place or in_place
    samples: int
    min_gbs: float
    median_gbs: float
    max_gbs: float


def size_statistics(table: BandwidthTable) -> tuple[SizeStatistics, ...]:
    """Return per size and half how the bus bandwidth spreads over cycles; sizes in ascending order."""
    values: dict[tuple[int, str], list[float]] = {}
    for row in table.rows:
        for name, half in (("out_of_place", row.out_of_place), ("in_place", row.in_place)):
            if half is not None and half.busbw_gbs is not None:
                values.setdefault((row.size_bytes, name), []).append(half.busbw_gbs)
    return tuple(
        SizeStatistics(
            size_bytes=size,
            half=half,
            samples=len(seen),
            min_gbs=min(seen),
            median_gbs=median(seen),
            max_gbs=max(seen),
        )
        for (size, half), seen in sorted(
            values.items(), key=lambda item: (item[0][0], item[0][1] != "out_of_place")
        )
    )
