"""The verdict of one group: its evidence, its measurement and its limits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_cre.catalog.entry import CatalogEntry
from pytest_cre.catalog.limit import LEDGER_METRICS, UNITS, Limit
from pytest_cre.evidence.model import GroupEvidence
from pytest_cre.judge.figures import busbw_by_size, figures_of, measured_metrics
from pytest_cre.judge.hardware import hardware_words
from pytest_cre.judge.judged import expression_problem, is_met, judged_value, margin_of
from pytest_cre.judge.limits import Unused
from pytest_cre.judge.measured import measurement_finding, wrong_words
from pytest_cre.judge.missing import MissingLimit
from pytest_cre.judge.problems import Finding, evidence_finding, replay_words
from pytest_cre.judge.repeats import Repeated
from pytest_cre.judge.run import worst
from pytest_cre.judge.transport import group_fabric
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
    {
        *("no_timestamps", "log_gap", "exit_unknown", "clamped", "implicit_restart"),
        *("start_unseen", "starts_midway"),
    }
)
OF_LEDGER = frozenset({"goodput", *LEDGER_METRICS})


def judge_group(
    evidence: GroupEvidence,
    measurement: Measurement,
    limits: Sequence[Limit],
    *,
    missing: MissingLimit,
    entry: CatalogEntry | None = None,
    repeated: Mapping[Limit, Repeated] | None = None,
    unused: Unused | None = None,
) -> GroupVerdict:
    """Return the verdict of a group; a pass needs whole evidence and every limit met.

    `limits` are those that apply (`applying_limits`). `missing` says what a figure without any
    limit is: `fail`, or no-limit with `skip` and `record`. `entry`, where given, adds what it
    expects: the kind of measurement and the collective. A number equal to its limit meets it.
    `repeated` are the limits that all attempts on the group answer together; `unused` are told
    where a figure has no limit.
    """
    repeated = repeated or {}
    finding = group_finding(evidence, measurement, limits, entry)
    checks = tuple(
        replace(check, code=repeated[check.limit].code)
        if check.limit is not None and check.limit in repeated
        else check
        for check in _limit_checks(limits, measurement)
    )
    if not any(limit.demands_speed for limit in limits):
        # A guard can fail a run, but meeting it shows no speed; nor does staying below a ceiling.
        checks = (*checks, *_bare_checks(measurement, missing))
    reasons = list(finding.reasons)
    if finding.code is not None:
        # A number is only as good as the run that it comes from.
        code = finding.code
        checks = tuple(replace(each, code=code) for each in checks if each.measured is not None)
    else:
        code = worst([check.code for check in checks])
        reasons += _check_reasons(checks, evidence, measurement, repeated, unused or Unused())
        if not checks:
            code, reasons = "inconclusive", ["no metric was measured"]
    return GroupVerdict(
        group=evidence.group,
        nodes=evidence.nodes,
        code=code,
        checks=checks,
        reasons=tuple(dict.fromkeys(reasons)),
        warnings=tuple(
            word
            for word in (*finding.warnings, *hardware_words(evidence), *replay_words(evidence))
            if word not in reasons
        ),
        figures=figures_of(measurement),
        attempt=evidence.attempt,
    )


def unjudged(group: GroupVerdict) -> GroupVerdict:
    """Return the verdict of a group whose figures were never judged, for its item ended before.

    It lacks no limit: nobody asked for one. A group that its evidence has judged stays as it is.
    """
    if group.code != "no-limit":
        return group
    checks = tuple(replace(check, code="unmet") for check in group.checks)
    return replace(group, code="unmet", checks=checks, reasons=())


def group_finding(
    evidence: GroupEvidence,
    measurement: Measurement,
    limits: Sequence[Limit],
    entry: CatalogEntry | None,
) -> Finding:
    """Return what a group's run alone says, whatever its figures; no code: they may be judged."""
    return _joined(
        evidence_finding(evidence),
        measurement_finding(measurement, evidence, entry, limits),
        wrong_words(measurement),
    )


def _joined(evidence: Finding, measured: Finding, wrong: Sequence[str]) -> Finding:
    """Return one finding of two: the evidence's verdict stands above the measurement's.

    A workload that failed because it found nothing to run on is unmet, as the measurement says.
    Wrong values are told first where the workload failed, for they are why, and last where the
    evidence is incomplete.
    """
    warnings = (*evidence.warnings, *measured.warnings)
    if evidence.code is None or (measured.code == "unmet" and evidence.code == "fail"):
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
    flags = measurement.training.flags if measurement.training is not None else ()
    has_doubts = not DOUBTS_OF_GOODPUT.isdisjoint(flags)
    checks = []
    for limit in limits:
        measured = judged_value(limit, measurement)
        if measured is None and limit.is_guard:
            continue  # a table of small messages has no dip, and what was not measured no bound
        checks.append(_check(limit, measured, is_doubtful=has_doubts and limit.metric in OF_LEDGER))
    return tuple(checks)


def _check(limit: Limit, measured: float | None, *, is_doubtful: bool) -> Check:
    code: Code = "inconclusive"
    if measured is not None and not is_doubtful and expression_problem(limit, measured) is None:
        if is_met(limit, measured):
            code = "pass"
        elif limit.tier != "physics":  # above what is possible nothing was measured
            code = "fail"
    return Check(
        metric=limit.metric,
        measured=measured,
        unit=limit.unit,
        limit=limit,
        margin=margin_of(limit, measured) if measured is not None else None,
        code=code,
        statistic=limit_statistic(limit),
    )


def _bare_checks(measurement: Measurement, missing: MissingLimit) -> tuple[Check, ...]:
    """Return the measured metrics without a limit; used only where no limit demands speed."""
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
    checks: Sequence[Check],
    evidence: GroupEvidence,
    measurement: Measurement,
    repeated: Mapping[Limit, Repeated],
    unused: Unused,
) -> list[str]:
    """Return why each check is not a pass, the worst first."""
    missed = sorted(
        (check for check in checks if check.code != "pass"),
        key=lambda check: WORST_FIRST.index(check.code),
    )
    return [
        repeated[check.limit].words(check.limit)
        if check.limit is not None and check.limit in repeated
        else _check_reason(check, evidence, measurement, unused)
        for check in missed
    ]


def _check_reason(
    check: Check, evidence: GroupEvidence, measurement: Measurement, unused: Unused
) -> str:
    if check.limit is None:
        where = _no_limit_words(check, evidence, measurement)
        return "; ".join((where, *_unused_words(check.metric, unused, measurement)))
    words = check_words(check, architecture=evidence.architecture)
    if check.code == "inconclusive" and check.measured is not None:
        if check.limit.tier == "physics":
            return f"{words}, more than the hardware can do, so the figure is not to be trusted"
        if problem := expression_problem(check.limit, check.measured):
            return f"{words}, but {problem}"
        flags = measurement.training.flags if measurement.training is not None else ()
        doubts = ", ".join(flag_words(flag) for flag in flags if flag in DOUBTS_OF_GOODPUT)
        return f"{words}, but {doubts}"
    return words


def _no_limit_words(check: Check, evidence: GroupEvidence, measurement: Measurement) -> str:
    bandwidth = measurement.bandwidth
    fabric = group_fabric(evidence, measurement)
    parts = [
        f"architecture {evidence.architecture or 'unknown'}",
        *([f"fabric {fabric or 'unknown'}"] if bandwidth is not None else []),
        f"scale {evidence.scale}",
        nodes_words(len(evidence.nodes)),
    ]
    return f"{check_words(check)} for {', '.join(parts)}"


def _unused_words(metric: str, unused: Unused, measurement: Measurement) -> Iterator[str]:
    """Yield which limits would judge the metric, and what each of them lacks."""
    bandwidth = measurement.bandwidth
    largest = max(busbw_by_size(bandwidth), default=None) if bandwidth is not None else None
    for limit in unused.other_sizes:
        if limit.metric == metric and limit.demands_speed and largest is not None:
            yield (
                f"the limit {limit_statistic(limit)} ({limit.place}) needs a row of that size, the "
                f"largest is {largest} B"
            )
    real = [each for each in unused.of_real_nodes if each.metric == metric and each.demands_speed]
    if real:
        first = real[0]
        words = f"1 limit of tier {first.tier} ({first.place})"
        if len(real) > 1:
            words = f"{len(real)} limits such as that of tier {first.tier} ({first.place})"
        yield (
            f"simulated nodes take those of their scenario; {words} would judge it with "
            "--cre-simulated-by published"
        )
