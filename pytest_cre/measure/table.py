"""One table of a collective benchmark, from its lines to rows, footer and what is wrong with it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log10

from pytest_cre.measure.model import BandwidthRow, BandwidthTable, HalfRow, OutOfBounds
from pytest_cre.measure.rows import Layout, ParsedRow, layout_of, parse_row
from pytest_cre.measure.tablelines import (
    AVERAGE,
    BOUNDS,
    DEVICE,
    LIBRARY,
    PARAMETERS,
    RCCL_VERSION,
    START,
    VALIDATION_OFF,
    VERSION,
    TableLine,
)

_TEST_NAME = re.compile(r"(?:.*/)?([a-z][a-z_]*?)(?:_perf)?(?:_mpi)?")
_OTHER_NAMES = {"all_to_all": "alltoall", "sendrecv": "sendrecv", "allreduce": "all_reduce"}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledTable:
    """A table and what is wrong with it; see docs/reference/measure.md for the reasons."""

    table: BandwidthTable
    reasons: frozenset[str]
    has_header: bool
    time_ns: int | None = None
    hosts: int | None = None  # that the device lines name


@dataclass(slots=True, kw_only=True)
class OpenTable:
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
        """Return whether anything came that ends with the next table's beginning."""
        return bool(self.rows or self.footers or self.torn)

    @property
    def has_header(self) -> bool:
        """Return whether it told its parameters or columns."""
        return self.parameters is not None or self.layout is not None

    def take(self, line: TableLine) -> None:
        """Take the next line."""
        text = line.text
        if self.time_ns is None:
            self.time_ns = line.t_ns
        if line.is_row:
            row = parse_row(text, self.layout)
            if row is None:
                self.torn += 1
            else:
                self.rows.append(row)
        elif layout := layout_of(text):
            self.layout = layout
        elif found := PARAMETERS.search(text):
            self.openings += 1
            self.parameters = found
            self.is_validated = VALIDATION_OFF.search(text) is None
        elif found := DEVICE.search(text):
            self.ranks.add(int(found[1]))
            self.hosts.add(found[2])
        elif found := BOUNDS.search(text):
            self.footers += 1
            count, verdict = int(found[1]), found[2]
            is_ok = count == 0 if verdict is None else verdict == b"OK"
            self.bounds = OutOfBounds(count=count, is_ok=is_ok)
        elif found := AVERAGE.search(text):
            self.footers += 1
            self.average = found[1]
            self.average_failed = found[2] == b"FAILED"
        elif found := START.search(text):
            self.test = collective_name(found[1].decode(errors="replace"))
        elif found := VERSION.search(text):
            self.tool_version = found[1].decode(errors="replace")[:80]
            self.nccl_version = (
                version_text(int(found[2]) if found[2] else None) or self.nccl_version
            )
        elif found := RCCL_VERSION.search(text):
            self.tool_version = found[1].decode(errors="replace")[:80]
        elif found := LIBRARY.search(text):
            self.nccl_version = found[1].decode()

    def close(self) -> AssembledTable:
        """Return the table as far as it was read."""
        reasons: set[str] = set()
        parsed = self.rows
        whole = [row for row in parsed if not row.is_half]
        if 0 < len(whole) < len(parsed):
            # A row cut after its first half looks like a table of one half.
            self.torn += len(parsed) - len(whole)
            parsed = whole
        found = [row.row for row in parsed]
        if not self.is_validated:
            found = [_unchecked(row) for row in found]
        halves = [half for row in found for half in _halves(row)]
        if self.torn:
            reasons.add("torn-rows")
        if any(row.has_nan for row in parsed):
            reasons.add("not-a-number")
        average = float(self.average) if self.average and _is_number(self.average) else None
        if average is None:
            reasons.add("no-footer")
        elif not _is_mean(average, self.average or b"", halves, parsed):
            reasons.add("average-mismatch")
        if self.average_failed:
            reasons.add("below-minimum")
        if self.openings > 1 or self.footers > 2:
            reasons.add("several-tables")
        if found and self.parameters and _lacks_sizes(self.parameters, found, len(self.ranks)):
            reasons.add("sizes-missing")
        if any(half.wrong for half in halves):
            reasons.add("wrong-values")
        if self.bounds is not None and not self.bounds.is_ok:
            reasons.add("out-of-bounds")
        is_complete = bool(found) and not reasons & INCOMPLETE_TABLE
        return AssembledTable(
            table=BandwidthTable(
                test=self.test or _guess_test(found, len(self.ranks)),
                rows=tuple(found),
                avg_busbw_gbs=average,
                out_of_bounds=self.bounds,
                is_complete=is_complete,
                ranks=len(self.ranks) or None,
                nccl_version=self.nccl_version,
                tool_version=self.tool_version,
            ),
            reasons=frozenset(reasons) if found else frozenset({"no-rows"}),
            has_header=self.has_header,
            time_ns=self.time_ns,
            hosts=len(self.hosts) or None,
        )


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


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _halves(row: BandwidthRow) -> list[HalfRow]:
    return [half for half in (row.out_of_place, row.in_place) if half is not None]


def _unchecked(row: BandwidthRow) -> BandwidthRow:
    """Drop the counts of a table made without validation: old releases print 0 there."""
    out, into = row.out_of_place, row.in_place
    return row._replace(
        out_of_place=out and out._replace(wrong=None), in_place=into and into._replace(wrong=None)
    )


def _is_mean(
    printed: float, digits: bytes, halves: Sequence[HalfRow], parsed: Sequence[ParsedRow]
) -> bool:
    """Return whether the printed average is the mean of both halves over all rows.

    It may differ by what printing rounds away: of each value, and of the average itself, which has
    six digits.
    """
    known = [half.busbw_gbs for half in halves if half.busbw_gbs is not None]
    if not known or len(known) != len(halves):
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
