"""Tables of collective benchmarks (nccl-tests, rccl-tests and what prints the same) out of a log.

Lines of a table are collected per stream and launcher rank and put together when all is read, so that a
log split over several files gives the same tables as the whole.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from pytest_cre.measure.model import BandwidthTable
from pytest_cre.measure.table import AssembledTable, OpenTable
from pytest_cre.measure.tablelines import LIBRARY, TableLine, opens_table


def assemble(streams: Sequence[Sequence[TableLine]]) -> list[AssembledTable]:
    """Return the tables of one Job's streams, in the order of time where it is known.

    Streams, and ranks of a launcher within one, are tables of their own as long as each is whole; parts
    without a header are put together with the others, by time, else in the order given.
    """
    parts: list[list[TableLine]] = []
    library = [
        found
        for lines in streams
        for line in lines
        if not line.is_row and (found := LIBRARY.search(line.text))
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
    current = OpenTable()
    for line in lines:
        if current.is_begun and not line.is_row and opens_table(line.text):
            done.append(current.close())
            current = OpenTable(
                nccl_version=current.nccl_version, tool_version=current.tool_version
            )
        current.take(line)
    if current.is_begun or current.has_header or current.test:
        done.append(current.close())
    return done


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
