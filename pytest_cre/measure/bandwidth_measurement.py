"""The tables of a Job to a measurement: what they tell together, and what is wrong with it."""

from collections.abc import Sequence

from pytest_cre.measure.failure import Failures
from pytest_cre.measure.model import (
    BandwidthMeasurement,
    BandwidthRow,
    BandwidthTable,
    HalfRow,
    Measurement,
)
from pytest_cre.measure.reasons import NO_DATA, status_of
from pytest_cre.measure.surroundings import Surroundings
from pytest_cre.measure.table import AssembledTable
from pytest_cre.measure.transport import TransportReader


def measure_bandwidth(
    tables: Sequence[AssembledTable],
    failures: Failures,
    transport: TransportReader,
    around: Surroundings,
    *,
    profile: str,
) -> Measurement:
    """Measure the tables of a Job."""
    found = [each.table for each in tables]
    reasons = set(around.reasons)
    for each in tables:
        reasons |= each.reasons
    if not found:
        reasons.add(NO_DATA)
    if _are_too_many(found, around.tables_expected):
        reasons.add("several-tables")
    if around.ranks_planned is not None and any(
        table.ranks is not None and table.ranks < around.ranks_planned for table in found
    ):
        reasons.add("fewer-ranks")
    known = [each.hosts for each in tables if each.hosts is not None]
    hosts = around.hosts if around.hosts is not None else max(known, default=None)
    if transport.fell_back_to_socket(hosts=hosts):
        reasons.add("socket-fallback")
    worst, data_errors = failures.worst, _data_errors(found)
    # A test reports its own wrong values as a failure; the rows say more.
    if worst is not None and worst.kind == "test" and data_errors is not None:
        worst = None
    if worst is not None:
        reasons.add("failure")
    has_data = any(table.rows for table in found)
    return Measurement(
        kind="bandwidth",
        profile=profile,
        status=status_of(reasons, has_data=has_data),
        reasons=tuple(sorted(reasons)),
        bandwidth=BandwidthMeasurement(
            tables=tuple(found),
            max_out_of_place_gbs=_largest(found, "out_of_place"),
            max_in_place_gbs=_largest(found, "in_place"),
            transport=transport.networks,
            failure=worst.text if worst is not None else data_errors,
            paths=transport.paths,
        ),
    )


def _are_too_many(found: Sequence[BandwidthTable], expected: int | None) -> bool:
    """Return whether there are more tables than expected, or the same test twice where nobody said."""
    if expected is not None:
        return len(found) > expected
    tests = [table.test for table in found]
    return len(tests) > len(set(tests))


def profile_table(found: Sequence[tuple[int, float, float]]) -> AssembledTable:
    """Return a table of what a profile's own row pattern took; it knows one half and no footer."""
    rows = [
        BandwidthRow(
            size_bytes=size,
            count=0,
            dtype="",
            redop=None,
            root=None,
            out_of_place=HalfRow(time_us=None, algbw_gbs=algbw, busbw_gbs=busbw, wrong=None),
            in_place=None,
        )
        for size, algbw, busbw in found
    ]
    return AssembledTable(
        table=BandwidthTable(
            test=None,
            rows=tuple(rows),
            avg_busbw_gbs=None,
            out_of_bounds=None,
            is_complete=True,
            ranks=None,
            nccl_version=None,
            tool_version=None,
        ),
        reasons=frozenset(),
        has_header=True,
    )


def _data_errors(found: Sequence[BandwidthTable]) -> str | None:
    """Return which values were wrong, or None."""
    words = []
    for table in found:
        for row in table.rows:
            halves = ((row.out_of_place, "out-of-place"), (row.in_place, "in-place"))
            told = [f"{half.wrong} {name}" for half, name in halves if half and half.wrong]
            if told:
                words.append(f"{' and '.join(told)} at {row.size_bytes} B")
        if table.out_of_bounds is not None and not table.out_of_bounds.is_ok:
            words.append(f"{table.out_of_bounds.count} values out of bounds")
    return f"wrong values: {'; '.join(words[:4])}" if words else None


def _largest(found: Sequence[BandwidthTable], half: str) -> float | None:
    values = [
        value.busbw_gbs
        for table in found
        for row in table.rows
        if (value := getattr(row, half)) is not None and value.busbw_gbs is not None
    ]
    return max(values, default=None)
