"""Limits of a site from its own accepted runs: what its healthy hardware gave, less its spread."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, stdev
from typing import TYPE_CHECKING, Any

from pytest_cre.assessment import Assessor
from pytest_cre.catalog.certification_file import certification_of
from pytest_cre.catalog.limit import UNITS, Metric
from pytest_cre.errors import CreError, EvidenceProblem
from pytest_cre.evidence.images import images_in
from pytest_cre.evidence.manifest import RunManifest, read_manifest
from pytest_cre.evidence.store import read_workflow
from pytest_cre.judge.figures import busbw_by_size
from pytest_cre.judge.transport import group_fabric
from pytest_cre.rejudge import rejudge
from pytest_cre.report.model import RunReport

if TYPE_CHECKING:
    from pytest_cre.catalog.loader import Catalog
    from pytest_cre.evidence.model import GroupEvidence
    from pytest_cre.measure.model import Measurement

FEW = 3  # samples: below it the spread says nothing
MANY = 10
LEAST_MARGIN = 0.03  # of the median: what software alone moves the same hardware
SPREADS = 3.0  # standard deviations below the median of a floor
TAKEN = ("pass", "no-limit")
PASSED_OVER = ("unmet", "not-applicable")
FAILED, USAGE, INCOMPLETE = 1, 2, 10


class BaselineRefusal(CreError):
    """Evidence that no limits may be made from."""

    def __init__(self, words: str, exit_code: int) -> None:
        super().__init__(words)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What a limit is for: figures of the same kind, of groups of the same kind."""

    entry: str
    scale: str
    nodes: int
    metric: Metric
    fabric: str | None = None
    size_bytes: int | None = None


@dataclass(slots=True, kw_only=True)
class Samples:
    """Figures of one kind, and what they were measured with."""

    values: list[float] = field(default_factory=list)
    versions: set[str] = field(default_factory=set)
    options: set[tuple[tuple[str, str], ...]] = field(default_factory=set)
    runs: set[str] = field(default_factory=set)
    dates: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The limits of one architecture as a document, and what is to be told about them."""

    document: Mapping[str, Any]
    warnings: tuple[str, ...]


def baseline_of(
    folders: Sequence[Path], catalog: "Catalog", *, allow_simulated: bool = False
) -> Baseline:
    """Return site limits from the evidence of accepted runs.

    Every item is measured and judged again. Raises `BaselineRefusal` for a run that was killed, for
    any item that failed or was inconclusive, for simulated hardware unless that is allowed, for
    nodes of several architectures, and where nothing was measured; `EvidenceProblem` for evidence
    that is missing or was changed.
    """
    found: dict[Key, Samples] = {}
    architectures: set[str] = set()
    is_simulated = False
    for folder in dict.fromkeys(path.resolve() for path in folders):
        manifest = read_manifest(folder)
        report = _accepted(folder, manifest, catalog, allow_simulated=allow_simulated)
        is_simulated = is_simulated or report.is_simulated
        for key, value, group, measurement in _figures(folder, manifest, report, catalog):
            architectures.add(group.architecture or "")
            samples = found.setdefault(key, Samples())
            samples.values.append(value)
            samples.versions |= set(_versions(group, measurement))
            samples.options.add(tuple(sorted(group.options.items())))
            samples.runs.add(report.run_id)
            samples.dates.add(_date(group))
    if not found:
        raise BaselineRefusal("no complete figure in the evidence given", INCOMPLETE)
    if len(architectures) > 1 or "" in architectures:
        names = ", ".join(sorted(name or "unknown" for name in architectures))
        raise BaselineRefusal(
            f"limits are of one known architecture, the runs are of {names}; name the runs of one, "
            "and make a file for each",
            USAGE,
        )
    for key, samples in found.items():
        if len(samples.options) > 1:
            names = ", ".join(sorted(_differing(samples)))
            raise BaselineRefusal(f"{key.entry}: the runs differ in the options {names}", USAGE)
    limits, warnings = [], []
    for key, samples in sorted(found.items(), key=lambda item: _order(item[0])):
        limits.append(_limit(key, samples, is_simulated=is_simulated))
        if len(samples.values) < FEW:
            warnings.append(
                f"{key.entry} at {key.scale}: {key.metric} rests on {len(samples.values)} "
                f"measurement{'s' if len(samples.values) > 1 else ''}; {FEW} tell something"
            )
    return Baseline(
        document={
            "description": "Limits of this site, made from its own accepted runs",
            "architecture": architectures.pop(),
            "limits": limits,
        },
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _accepted(
    folder: Path, manifest: RunManifest, catalog: "Catalog", *, allow_simulated: bool
) -> RunReport:
    """Return the run's report, made again; raises `BaselineRefusal` unless it can be built on."""
    if not manifest.is_finished:
        raise BaselineRefusal(f"{folder}: the run was killed before its end", INCOMPLETE)
    report = rejudge(folder, manifest, catalog)
    if report.is_simulated and not allow_simulated:
        raise BaselineRefusal(
            f"{folder}: of simulated hardware; --simulated makes limits for rehearsals of it", USAGE
        )
    for item in report.items:
        if item.code not in (*TAKEN, *PASSED_OVER):
            code = INCOMPLETE if item.code == "inconclusive" else FAILED
            raise BaselineRefusal(f"{folder}: {item.title}: {item.code}; not an accepted run", code)
    if report.leftovers:
        raise BaselineRefusal(f"{folder}: the run ended as ERROR; not an accepted run", FAILED)
    return report


def _figures(
    folder: Path, manifest: RunManifest, report: RunReport, catalog: "Catalog"
) -> "Iterator[tuple[Key, float, GroupEvidence, Measurement]]":
    if manifest.certification:
        text, source = manifest.certification, manifest.certification_source
        catalog = certification_of(text, source, catalog).applied(catalog)
    assessor = Assessor(catalog, simulated_limits={}, missing_limit="record", logs_place=None)
    for item in report.items:
        if item.code not in TAKEN or item.evidence is None:
            continue
        evidence = read_workflow(folder / item.evidence)
        measurements = assessor.measure(evidence)
        made_again = assessor.retried(evidence.groups)
        for group in (each for each in evidence.groups if each.key not in made_again):
            measurement = measurements[group.key]
            if measurement.status != "complete":
                raise EvidenceProblem(f"{folder / item.evidence}: {group.group} is not complete")
            for metric, size, value in _measured(measurement):
                key = Key(
                    entry=item.entry,
                    scale=item.scale,
                    nodes=len(group.nodes),
                    metric=metric,
                    fabric=reached_over(group, measurement) if size is not None else None,
                    size_bytes=size,
                )
                yield key, value, group, measurement


def reached_over(group: "GroupEvidence", measurement: "Measurement") -> str | None:
    """Return the fabric that a bandwidth was reached over; None for one node, which needs none."""
    return group_fabric(group, measurement) if len(group.nodes) > 1 else None


def _measured(measurement: "Measurement") -> Iterator[tuple[Metric, int | None, float]]:
    """Yield the figures that limits are made from: metric, message size, value."""
    if measurement.bandwidth is not None:
        by_size = busbw_by_size(measurement.bandwidth)
        if by_size:
            size = max(by_size)
            yield "busbw", size, by_size[size]
    if measurement.training is not None:
        summary = measurement.training.summary
        if summary.avg_step_time_s is not None:
            yield "step_time", None, summary.avg_step_time_s
        if summary.avg_tflops_per_gpu is not None:
            yield "tflops_per_gpu", None, summary.avg_tflops_per_gpu
    if measurement.gemm is not None and measurement.gemm.min_tflops is not None:
        yield "gemm_tflops", None, measurement.gemm.min_tflops


def _limit(key: Key, samples: Samples, *, is_simulated: bool) -> dict[str, Any]:
    """Return a limit: `SPREADS` standard deviations from the median, and `LEAST_MARGIN` of it."""
    values, count = samples.values, len(samples.values)
    middle = median(values)
    deviation = stdev(values) if count > 1 else 0.0
    margin = max(SPREADS * deviation, LEAST_MARGIN * middle)
    is_floor = key.metric != "step_time"
    bound = max(middle - margin, 0.0) if is_floor else middle + margin
    runs = f"{len(samples.runs)} accepted run{'s' if len(samples.runs) > 1 else ''}"
    hardware = " of simulated hardware, for rehearsals only" if is_simulated else ""
    found: dict[str, Any] = {
        "metric": key.metric,
        "operator": ">=" if is_floor else "<=",
        "value": _rounded(bound, up=not is_floor),
        "unit": UNITS[key.metric],
        "entry": key.entry,
        "statistic": "value" if key.size_bytes is None else "at-size",
        "scale": key.scale,
        "minNodes": key.nodes,
        "maxNodes": key.nodes,
        "tier": "site",
        "confidence": "high" if count >= MANY else "medium" if count >= FEW else "low",
        "source": f"{runs}{hardware}: {', '.join(sorted(samples.runs))}",
        "date": max(samples.dates),
        "note": f"median {middle:.6g}, standard deviation {deviation:.3g}, n {count}, "
        f"margin {margin / middle:.1%}; from {min(values):.6g} to {max(values):.6g}",
    }
    if key.size_bytes is not None:
        found["size"] = _size_words(key.size_bytes)
    if key.fabric is not None:
        found["fabric"] = key.fabric
    if samples.versions:
        found["versions"] = "; ".join(sorted(samples.versions))
    return found


def _rounded(value: float, *, up: bool) -> float:
    """Return four digits of a value, rounded to the side that demands less."""
    digits = 3 - math.floor(math.log10(value)) if value > 0 else 0
    scale = math.pow(10.0, digits)
    whole = math.ceil(value * scale) if up else math.floor(value * scale)
    return round(whole / scale, max(digits, 0))


def _size_words(size: int) -> str:
    """Return a message size as files write it: `16G`, `1000`."""
    for power, unit in ((4, "T"), (3, "G"), (2, "M"), (1, "K")):
        if size % 1024**power == 0:
            return f"{size // 1024**power}{unit}"
    return str(size)


def _versions(group: "GroupEvidence", measurement: "Measurement") -> Iterator[str]:
    for table in measurement.bandwidth.tables if measurement.bandwidth is not None else ():
        if table.nccl_version:
            yield f"NCCL {table.nccl_version}"
    for manifest in group.manifests:
        yield from (f"image {image}" for image in images_in(manifest))


def _date(group: "GroupEvidence") -> str:
    ended_ns = group.job.terminal_ns if group.job is not None else None
    return datetime.fromtimestamp((ended_ns or 0) / 1e9, UTC).date().isoformat()


def _differing(samples: Samples) -> set[str]:
    first = dict(next(iter(samples.options)))
    return {
        name
        for each in samples.options
        for name in {*first, *dict(each)}
        if dict(each).get(name) != first.get(name)
    }


def _order(key: Key) -> tuple[object, ...]:
    return key.entry, key.scale, key.nodes, key.metric, key.fabric or "", key.size_bytes or 0
