"""What a measurement says about itself, before limits: wrong values, missing parts, mismatches."""

from collections.abc import Sequence

from pytest_cre.catalog.entry import CatalogEntry
from pytest_cre.catalog.limit import Limit
from pytest_cre.catalog.logprofile import KINDS
from pytest_cre.evidence.model import GroupEvidence
from pytest_cre.formats.quantity import format_bytes
from pytest_cre.judge.devices import (
    diagnostic_warnings,
    diagnostic_wrong_words,
    fewer_gpus_words,
    gemm_wrong_words,
)
from pytest_cre.judge.problems import Finding
from pytest_cre.judge.transport import fallback_words, transport_words
from pytest_cre.judge.words import flag_words, reason_words
from pytest_cre.measure.model import BandwidthMeasurement, BandwidthRow, BandwidthTable, Measurement
from pytest_cre.measure.reasons import FAILED, NOTED

SIZES_NAMED = 3  # wrong sizes named in a reason; the log has them all
FALLBACK = "socket-fallback"
NO_ENGINE = "no-engine"
# True of every run of some frameworks; they change no verdict and no ratio that is judged.
QUIET_FLAGS = frozenset({"reference_estimated", "commit_unseen", "last_steps_not_durable"})


def measurement_finding(
    measurement: Measurement,
    evidence: GroupEvidence,
    entry: CatalogEntry | None,
    limits: Sequence[Limit] = (),
) -> Finding:
    """Return what the measurement says by itself.

    Wrong values and a failure that the log tells are a fail. So is, whatever the numbers, traffic
    over another network than the nodes are expected to use, and a fallback to sockets where limits
    are to be met and none of them is for sockets. Whatever is missing or
    is not what was planned is inconclusive. Diagnostics that found no host engine never ran: unmet.
    """
    if NO_ENGINE in measurement.reasons:
        failure = measurement.diagnostics.failure if measurement.diagnostics is not None else None
        words = f"{reason_words(NO_ENGINE)}: {failure}" if failure else reason_words(NO_ENGINE)
        return Finding(code="unmet", reasons=(words,))
    wrong = wrong_words(measurement)
    missing = _missing_words(measurement, evidence, entry)
    warnings = _warning_words(measurement, evidence)
    took_other = transport_words(evidence, measurement)
    if took_other is not None:
        wrong = (*wrong, took_other)
    elif (
        FALLBACK in measurement.reasons
        and "socket" not in evidence.fabrics
        and measurement.bandwidth is not None
    ):
        fallback = fallback_words(evidence, measurement.bandwidth)
        if limits and all(limit.fabric != "socket" for limit in limits):
            wrong = (*wrong, fallback)
        else:
            warnings = (fallback, *warnings)
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
        # For wrong values alone the failure says the same again.
        if bandwidth.failure and (not words or "failure" in measurement.reasons):
            words.append(f"the log tells a failure: {bandwidth.failure}")
    if measurement.gemm is not None:
        words += gemm_wrong_words(measurement.gemm)
    if measurement.diagnostics is not None and NO_ENGINE not in measurement.reasons:
        words += diagnostic_wrong_words(measurement.diagnostics)
    if measurement.status == "failed" and not words:
        failure = training.failure if training is not None else None
        words += [f"the log tells a failure: {failure}"] if failure else []
        failed = [code for code in measurement.reasons if code in FAILED]
        words += [] if words else [reason_words(code) for code in failed]
        words += [] if words else ["the measurement failed"]
    return tuple(words)


def has_wrong_values(measurement: Measurement) -> bool:
    """Return whether the hardware computed wrong values, or failed a test of itself."""
    bandwidth, gemm, diagnostics = measurement.bandwidth, measurement.gemm, measurement.diagnostics
    return (
        (bandwidth is not None and any(map(_table_wrong_words, bandwidth.tables)))
        or (gemm is not None and any(gpu.wrong for gpu in gemm.gpus))
        or (diagnostics is not None and bool(diagnostics.failed))
    )


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
    told: dict[str, str] = {}
    if measurement.bandwidth is not None:
        told = _planned_words(measurement.bandwidth, evidence, entry)
    devices = measurement.gemm or measurement.diagnostics
    if devices is not None and "fewer-gpus" in measurement.reasons and devices.gpus:
        told["fewer-gpus"] = fewer_gpus_words(devices, evidence.ranks_planned)
    for code in measurement.reasons:
        if code not in FAILED and code not in NOTED:
            told.setdefault(code, reason_words(code))
    if measurement.status == "no-data" or measurement.kind == "none":
        told = told or {"no-data": reason_words("no-data")}
    elif measurement.status == "incomplete" and not told:
        told["incomplete"] = "the measurement is not complete"
    tables = measurement.bandwidth.tables if measurement.bandwidth is not None else ()
    if not told and not all(table.is_complete and table.rows for table in tables):
        told["incomplete"] = "the table is not complete"
    for code in ("no-data", "no-steps"):
        if code in told:
            told[code] += _unmatched_words(measurement, evidence, entry)
    return tuple(dict.fromkeys(told.values()))


def _unmatched_words(
    measurement: Measurement, evidence: GroupEvidence, entry: CatalogEntry | None
) -> str:
    """Return by what pattern nothing was found in how many lines, and what to do about it."""
    name = entry.log_profile if entry is not None else measurement.profile
    kind = entry.measures if entry is not None else measurement.kind
    pattern = next((each for each, measures in KINDS.items() if measures == kind), None)
    count = sum(log.data.count(b"\n") for log in evidence.logs if not log.is_context)
    if not name or pattern is None:
        return ""
    if not count:
        return ": it is empty"
    return (
        f": {pattern} of {name} matched no line of {count}; "
        f"try `pytest-cre measure --profile {name} LOG`"
    )


def _planned_words(
    bandwidth: BandwidthMeasurement, evidence: GroupEvidence, entry: CatalogEntry | None
) -> dict[str, str]:
    """Return what is not as planned, by the reason that would say the same with fewer words."""
    tables, planned = bandwidth.tables, evidence.ranks_planned
    if not tables:
        return {"no-data": "the log holds no table"}
    if len(tables) > 1:
        return {"several-tables": f"{len(tables)} tables where one was expected"}
    table, words = tables[0], {}
    if table.ranks is not None and table.ranks != planned:
        words["fewer-ranks"] = f"{table.ranks} ranks took part, {planned} were planned"
    elif table.ranks is None and not _is_of_own_pattern(table):
        words["ranks"] = _unknown_ranks_words(evidence)
    test = entry.test if entry is not None else None
    if test is not None and table.test is not None and table.test != test:
        words["test"] = f"the table is of {table.test}, the entry runs {test}"
    return words


def _is_of_own_pattern(table: BandwidthTable) -> bool:
    """Return whether a log profile's own row pattern made the table: it knows rows and no more."""
    return table.is_complete and table.avg_busbw_gbs is None


def _unknown_ranks_words(evidence: GroupEvidence) -> str:
    return f"the log does not tell the number of ranks; {evidence.ranks_planned} were planned"


def _warning_words(measurement: Measurement, evidence: GroupEvidence) -> tuple[str, ...]:
    words = []
    if measurement.training is not None:
        flags = [flag for flag in measurement.training.flags if flag not in QUIET_FLAGS]
        words += [flag_words(flag) for flag in flags]
    if measurement.bandwidth is not None and measurement.bandwidth.tables:
        if all(_is_of_own_pattern(table) for table in measurement.bandwidth.tables):
            words.append(_unknown_ranks_words(evidence))
        halves = [
            half
            for table in measurement.bandwidth.tables
            for row in table.rows
            for half in (row.out_of_place, row.in_place)
            if half is not None
        ]
        if halves and all(half.wrong is None for half in halves):
            words.append("values were not checked: the benchmark ran without validation")
    if measurement.diagnostics is not None:
        words += diagnostic_warnings(measurement.diagnostics)
    return tuple(words)
