"""Measurements of single GPUs: burn-in rows and diagnostics, from streams to one result."""

from collections.abc import Iterable, Sequence

from pytest_cre.measure import dcgm, gemm
from pytest_cre.measure.model import Kind, Measurement
from pytest_cre.measure.reasons import NO_DATA, status_of
from pytest_cre.measure.stream import StreamReader


def kind_of_devices(streams: Sequence[StreamReader]) -> Kind | None:
    """Return what the streams tell of single GPUs, or None where they tell nothing."""
    if any(each.gemm is not None and each.gemm.runs for each in streams):
        return "gemm"
    if any((each.reports and each.reports.documents) or each.engine.words for each in streams):
        return "diagnostics"
    return None


def measure_devices(
    kind: Kind,
    streams: Sequence[StreamReader],
    *,
    profile: str | None,
    reasons: Iterable[str],
    gpus_planned: int | None,
    failure: str | None,
) -> Measurement:
    """Measure burn-in rows or diagnostics.

    `profile` None: recognised from the text. `reasons` hold against the whole, `failure` is the log's.
    """
    if kind == "gemm":
        return _gemm(streams, profile or "gemm", set(reasons), gpus_planned, failure)
    return _diagnostics(streams, profile or "dcgm", set(reasons), gpus_planned, failure)


def _gemm(
    streams: Sequence[StreamReader],
    profile: str,
    reasons: set[str],
    gpus_planned: int | None,
    failure: str | None,
) -> Measurement:
    readers = [each.gemm for each in streams if each.gemm is not None]
    measured, own = gemm.assemble(readers, gpus_planned=gpus_planned, failure=failure)
    reasons |= own
    if failure is not None:
        reasons.add("failure")
    if not measured.rows:
        reasons.add(NO_DATA)
    return Measurement(
        kind="gemm",
        profile=profile,
        status=status_of(reasons, has_data=bool(measured.rows)),
        reasons=tuple(sorted(reasons)),
        gemm=measured,
    )


def _diagnostics(
    streams: Sequence[StreamReader],
    profile: str,
    reasons: set[str],
    gpus_planned: int | None,
    failure: str | None,
) -> Measurement:
    documents = [
        (each.name, document)
        for each in streams
        if each.reports is not None
        for document in each.reports.documents
    ]
    # What a report says of a failed test is no failure of the diagnostics themselves.
    failure = None if documents else failure
    unreachable = next((each.engine.words for each in streams if each.engine.words), None)
    measured, own = dcgm.assemble(
        documents, unreachable=unreachable, gpus_planned=gpus_planned, failure=failure
    )
    reasons |= own
    if not measured.results:
        reasons.add(NO_DATA)
    return Measurement(
        kind="diagnostics",
        profile=profile,
        status=status_of(reasons, has_data=bool(measured.results)),
        reasons=tuple(sorted(reasons)),
        diagnostics=measured,
    )
