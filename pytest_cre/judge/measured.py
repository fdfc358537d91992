"""What a measurement says about itself, before limits: wrong values, missing parts, mismatches."""

from pytest_cre.catalog.entry import CatalogEntry
from pytest_cre.evidence.model import GroupEvidence
from pytest_cre.formats.quantity import format_bytes
from pytest_cre.judge.problems import Finding
from pytest_cre.judge.words import flag_words, reason_words
from pytest_cre.measure.model import BandwidthMeasurement, BandwidthRow, BandwidthTable, Measurement

SIZES_NAMED = 3  # wrong sizes named in a reason; the log has them all


def measurement_finding(
    measurement: Measurement, evidence: GroupEvidence, entry: CatalogEntry | None
) -> Finding:
    """Return what the measurement says by itself.

    Wrong values and a failure that the log tells are a fail; whatever is missing or is not what
    was planned is inconclusive.
    """
    wrong = wrong_words(measurement)
    missing = _missing_words(measurement, evidence, entry)
    warnings = _warning_words(measurement)
    if wrong:
        return Finding(code="fail", reasons=(*wrong, *missing), warnings=warnings)
    if missing:
        return Finding(code="inconclusive", reasons=missing, warnings=warnings)
    return Finding(warnings=warnings)


def wrong_words(measurement: Measurement) -> tuple[str, ...]:
    """Return what shows that the hardware computed wrong values or broke down; empty if nothing."""
    words: list[str] = []
    bandwidth, training = measurement.bandwidth, measurement.training
    if bandwidth is not None:
        for table in bandwidth.tables:
            words += _table_wrong_words(table)
        if bandwidth.failure:
            words.append(f"the log tells a failure: {bandwidth.failure}")
    if measurement.status == "failed" and not words:
        failure = training.failure if training is not None else None
        words += [f"the log tells a failure: {failure}"] if failure else []
        words += [] if words else [reason_words(code) for code in measurement.reasons]
        words += [] if words else ["the measurement failed"]
    return tuple(words)


def _table_wrong_words(table: BandwidthTable) -> list[str]:
    words = []
    rows = [row for row in table.rows if any(_wrong_counts(row))]
    if rows:
        named = "; ".join(_row_wrong_words(row) for row in rows[:SIZES_NAMED])
        more = f"; {len(rows) - SIZES_NAMED} more sizes" if len(rows) > SIZES_NAMED else ""
        words.append(f"wrong values: {named}{more}")
    footer = table.out_of_bounds
    if footer is not None and (not footer.is_ok or footer.count > 0):
        words.append(f"values out of bounds: the footer counts {footer.count}")
    return words


def _wrong_counts(row: BandwidthRow) -> tuple[int, int]:
    out_of_place = row.out_of_place.wrong if row.out_of_place is not None else None
    in_place = row.in_place.wrong if row.in_place is not None else None
    return out_of_place or 0, in_place or 0


def _row_wrong_words(row: BandwidthRow) -> str:
    out_of_place, in_place = _wrong_counts(row)
    return f"{out_of_place} out-of-place and {in_place} in-place at {format_bytes(row.size_bytes)}"


def _missing_words(
    measurement: Measurement, evidence: GroupEvidence, entry: CatalogEntry | None
) -> tuple[str, ...]:
    if entry is not None and measurement.kind not in ("none", entry.measures):
        return (f"the entry measures {entry.measures}, the log holds {measurement.kind}",)
    words = []
    if measurement.status != "failed":
        words += [reason_words(code) for code in measurement.reasons]
    if measurement.status == "no-data" or measurement.kind == "none":
        words = words or [reason_words("no-data")]
    elif measurement.status == "incomplete" and not words:
        words.append("the measurement is not complete")
    if measurement.bandwidth is not None:
        words += _bandwidth_missing_words(measurement.bandwidth, evidence, entry)
    return tuple(dict.fromkeys(words))


def _bandwidth_missing_words(
    bandwidth: BandwidthMeasurement, evidence: GroupEvidence, entry: CatalogEntry | None
) -> list[str]:
    tables, planned = bandwidth.tables, evidence.ranks_planned
    if not tables:
        return ["the log holds no table"]
    if len(tables) > 1:
        return [f"{len(tables)} tables where one was expected"]
    table, words = tables[0], []
    if not table.is_complete:
        words.append("the table is not complete")
    if not table.rows:
        words.append("the table has no rows")
    if table.ranks is None:
        words.append(f"the log does not tell the number of ranks; {planned} were planned")
    elif table.ranks != planned:
        words.append(f"{table.ranks} ranks took part, {planned} were planned")
    test = entry.test if entry is not None else None
    if test is not None and table.test is not None and table.test != test:
        words.append(f"the table is of {table.test}, the entry runs {test}")
    return words


def _warning_words(measurement: Measurement) -> tuple[str, ...]:
    words = []
    if measurement.training is not None:
        words += [flag_words(flag) for flag in measurement.training.flags]
    if measurement.bandwidth is not None and measurement.bandwidth.tables:
        halves = [
            half
            for table in measurement.bandwidth.tables
            for row in table.rows
            for half in (row.out_of_place, row.in_place)
            if half is not None
        ]
        if halves and all(half.wrong is None for half in halves):
            words.append("values were not checked: the benchmark ran without validation")
    return tuple(words)
