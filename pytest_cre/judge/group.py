"""The verdict of one group: its evidence, its measurement and its limits."""

from collections.abc import Sequence
from dataclasses import replace

from pytest_cre.catalog.entry import CatalogEntry
from pytest_cre.catalog.limit import UNITS, Limit
from pytest_cre.evidence.model import GroupEvidence
from pytest_cre.judge.figures import busbw_by_size, figures_of, measured_metrics
from pytest_cre.judge.limits import fabric_of
from pytest_cre.judge.measured import measurement_finding, wrong_words
from pytest_cre.judge.problems import Finding, evidence_finding
from pytest_cre.judge.run import MissingLimit, worst
from pytest_cre.judge.verdict import WORST_FIRST, Check, Code, GroupVerdict
from pytest_cre.judge.words import (
    check_words,
    flag_words,
    limit_statistic,
    nodes_words,
    reason_words,
)
from pytest_cre.measure.model import Measurement

# A second booked in the wrong category moves the ratio, to either side.
DOUBTS_OF_GOODPUT = frozenset(
    {"no_timestamps", "log_gap", "exit_unknown", "clamped", "implicit_restart", "starts_midway"}
)


def judge_group(
    evidence: GroupEvidence,
    measurement: Measurement,
    limits: Sequence[Limit],
    *,
    missing: MissingLimit,
    entry: CatalogEntry | None = None,
) -> GroupVerdict:
    """Return the verdict of a group; a pass needs whole evidence and every limit met.

    `limits` are those that apply (`applying_limits`). `missing` says what a figure without any
    limit is: `fail`, or no-limit with `skip` and `record`. `entry`, where given, adds what it
    expects: the kind of measurement and the collective. A number equal to its limit meets it.
    """
    finding = _joined(
        evidence_finding(evidence),
        measurement_finding(measurement, evidence, entry, limits),
        wrong_words(measurement),
    )
    checks = _limit_checks(limits, measurement) or _bare_checks(measurement, missing)
    reasons = list(finding.reasons)
    if finding.code is not None:
        # A number is only as good as the run that it comes from.
        code = finding.code
        checks = tuple(replace(each, code=code) for each in checks if each.measured is not None)
    else:
        code = worst([check.code for check in checks])
        reasons += _check_reasons(checks, evidence, measurement)
        if not checks:
            code, reasons = "inconclusive", ["no metric was measured"]
    return GroupVerdict(
        group=evidence.group,
        nodes=evidence.nodes,
        code=code,
        checks=checks,
        reasons=tuple(dict.fromkeys(reasons)),
        warnings=tuple(word for word in finding.warnings if word not in reasons),
        figures=figures_of(measurement),
        attempt=evidence.attempt,
    )


def _joined(evidence: Finding, measured: Finding, wrong: Sequence[str]) -> Finding:
    """Return one finding of two: the evidence's verdict stands above the measurement's.

    Wrong values are told first where the workload failed, for they are why, and last where the
    evidence is incomplete.
    """
    warnings = (*evidence.warnings, *measured.warnings)
    if evidence.code is None:
        return Finding(code=measured.code, reasons=measured.reasons, warnings=warnings)
    reasons = evidence.reasons
    if measured.code == "fail" and evidence.code == "fail":
        # That the Job failed is told better by the evidence, with pod, node and exit code; what is
        # missing of the log is a consequence.
        told_better = reason_words("job-failed")
        causes = [each for each in measured.reasons if each in wrong and each != told_better]
        rest = [each for each in measured.reasons if each not in wrong]
        reasons = (*causes, *reasons, *rest)
    elif measured.code == "fail" and evidence.code == "inconclusive":
        reasons = (*reasons, *measured.reasons)
    return Finding(code=evidence.code, reasons=reasons, warnings=warnings)


def _limit_checks(limits: Sequence[Limit], measurement: Measurement) -> tuple[Check, ...]:
    metrics = measured_metrics(measurement)
    sizes = busbw_by_size(measurement.bandwidth) if measurement.bandwidth is not None else {}
    flags = measurement.training.flags if measurement.training is not None else ()
    checks = []
    for limit in limits:
        if limit.statistic == "at-size":
            measured = sizes.get(limit.size_bytes or 0)
        else:
            measured = metrics.get(limit.metric)
        is_doubtful = limit.metric == "goodput" and not DOUBTS_OF_GOODPUT.isdisjoint(flags)
        checks.append(_check(limit, measured, is_doubtful=is_doubtful))
    return tuple(checks)


def _check(limit: Limit, measured: float | None, *, is_doubtful: bool) -> Check:
    code: Code = "inconclusive"
    margin = None
    if measured is not None:
        is_floor = limit.operator == ">="
        if not is_doubtful:
            is_met = measured >= limit.value if is_floor else measured <= limit.value
            code = "pass" if is_met else "fail"
        if limit.value != 0:
            distance = measured / limit.value - 1
            margin = distance if is_floor else -distance
    return Check(
        metric=limit.metric,
        measured=measured,
        unit=limit.unit,
        limit=limit,
        margin=margin,
        code=code,
        statistic=limit_statistic(limit),
    )


def _bare_checks(measurement: Measurement, missing: MissingLimit) -> tuple[Check, ...]:
    """Return the measured metrics without a limit; used only where no limit applies at all."""
    return tuple(
        Check(
            metric=metric,
            measured=measured,
            unit=UNITS[metric],
            limit=None,
            margin=None,
            code="fail" if missing == "fail" else "no-limit",
            statistic="max" if metric == "busbw" else "",
        )
        for metric, measured in measured_metrics(measurement).items()
    )


def _check_reasons(
    checks: Sequence[Check], evidence: GroupEvidence, measurement: Measurement
) -> list[str]:
    """Return why each check is not a pass, the worst first."""
    missed = sorted(
        (check for check in checks if check.code != "pass"),
        key=lambda check: WORST_FIRST.index(check.code),
    )
    return [_check_reason(check, evidence, measurement) for check in missed]


def _check_reason(check: Check, evidence: GroupEvidence, measurement: Measurement) -> str:
    if check.limit is None:
        return _no_limit_words(check, evidence, measurement)
    words = check_words(check, architecture=evidence.architecture)
    if check.code == "inconclusive" and check.measured is not None:
        flags = measurement.training.flags if measurement.training is not None else ()
        doubts = ", ".join(flag_words(flag) for flag in flags if flag in DOUBTS_OF_GOODPUT)
        return f"{words}, but {doubts}"
    return words


def _no_limit_words(check: Check, evidence: GroupEvidence, measurement: Measurement) -> str:
    bandwidth = measurement.bandwidth
    fabric = fabric_of(bandwidth.transport) if bandwidth is not None else None
    parts = [
        f"architecture {evidence.architecture or 'unknown'}",
        *([f"fabric {fabric or 'unknown'}"] if bandwidth is not None else []),
        f"scale {evidence.scale}",
        nodes_words(len(evidence.nodes)),
    ]
    return f"{check_words(check)} for {', '.join(parts)}"
