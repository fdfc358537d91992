"""The report of a run as plain data, in the shape of `cre.report/1`.

Every renderer takes its numbers from here, so that all files say the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, cast

from pytest_cre.evidence.model import Exclusion, GroupEvidence, WorkflowEvidence
from pytest_cre.judge.figures import figure_unit
from pytest_cre.judge.nodes import NodeFailure, node_failures
from pytest_cre.judge.run import run_result
from pytest_cre.judge.verdict import EXIT_CODES, Check, Code, GroupVerdict, ItemVerdict, RunResult
from pytest_cre.report.diagnosis import DiagnosisReport, diagnosis_from, diagnosis_report
from pytest_cre.report.failurelog import FailureLog, failure_log

SCHEMA = "cre.report/1"
SIMULATED_NOTE = "simulated hardware, not a certification"
FULL_SCALE = "full-scale"
FAILED: tuple[Code, ...] = ("fail", "inconclusive", "error")
DecidedBy = Literal["limits", "evidence", "test"]
# Every other metric is the better the larger it is.
USUAL_OPERATORS = dict.fromkeys(
    ("step_time", "latency", "dip", "ledger_time", "ledger_share", "gemm_spread"), "<="
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """One metric against one limit. `operator`, `limit` and their origin are None without one."""

    metric: str
    statistic: str
    measured: float | None
    unit: str
    operator: str | None
    limit: float | None
    margin: float | None
    code: Code
    size_bytes: int | None = None
    tier: str | None = None
    source: str | None = None
    date: str | None = None
    place: str | None = None

    @property
    def key(self) -> str:
        """Return what tells this check from the others of its group.

        `busbw`, `busbw.at-8589934592`; a limit on the unusual side, such as a ceiling of bus
        bandwidth, ends in `.ceiling` or `.floor`.
        """
        name = self.metric if self.size_bytes is None else f"{self.metric}.at-{self.size_bytes}"
        if self.metric.startswith("ledger_") or self.statistic == "plateau":
            name += f".{self.statistic.removeprefix('of ').replace(' ', '-')}"
        if self.operator in (None, USUAL_OPERATORS.get(self.metric, ">=")):
            return name
        return f"{name}.{'ceiling' if self.operator == '<=' else 'floor'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measured number that no limit judges, or one that a test recorded itself."""

    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    """One group of nodes. Clocks are None where they were not seen.

    `restarts` are those of its workload from a checkpoint; with `is_retried` the attempt told
    nothing and was made again, so that the item does not depend on it.
    """

    group: str
    attempt: int
    nodes: tuple[str, ...]
    code: Code
    checks: tuple[CheckReport, ...] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failed_nodes: tuple[NodeFailure, ...] = ()
    queue_s: float | None = None
    start_s: float | None = None
    run_s: float | None = None
    restarts: int = 0
    is_retried: bool = False
    failure_log: FailureLog | None = None  # of a group that did not pass, where any pod ran

    @property
    def title(self) -> str:
        """Return the group's name, with its attempt where that is not the first."""
        return f"{self.group} attempt {self.attempt + 1}" if self.attempt else self.group


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReport:
    """One pytest item. `text` is what pytest showed of it; empty for a pass.

    `decided_by`: the limits of the catalog; the evidence alone, which was not fit to be judged by
    them; or the test function and whatever kept it from running. `evidence` is the item's folder
    below that of `--cre-evidence`.
    """

    node_id: str
    entry: str
    scale: str
    code: Code
    architecture: str | None = None
    nodes: tuple[str, ...] = ()
    gpus: int = 0
    is_simulated: bool = False
    duration_s: float = 0.0
    groups: tuple[GroupReport, ...] = ()
    reasons: tuple[str, ...] = ()
    recorded: Mapping[str, Figure] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    decided_by: DecidedBy = "test"
    evidence: str | None = None
    kind: str = ""  # workload kind that it ran as; empty where nothing was planned
    kind_reason: str = ""  # why that one of the kinds that the entry names
    diagnosis: DiagnosisReport | None = None  # of an item at scale `diagnose`
    excluded: tuple[Exclusion, ...] = ()  # until the run's report takes them, see `with_result`

    @property
    def failed_nodes(self) -> tuple[NodeFailure, ...]:
        """Return the nodes that the verdict speaks against, each with each reason once."""
        found = {
            (each.node, each.reason): each for group in self.groups for each in group.failed_nodes
        }
        if self.diagnosis is not None:
            found |= {(each.node, each.reason): each for each in self.diagnosis.failed_nodes}
        return tuple(found[key] for key in sorted(found))

    @property
    def title(self) -> str:
        """Return the entry's name, with its scale where that is not the usual one."""
        return title_of(self.entry, self.scale)

    def to_dict(self) -> dict[str, Any]:
        """Return the item as plain JSON types, which cross a process and a file."""
        return cast("dict[str, Any]", plain(self))

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> "ItemReport":
        """Return the item that `to_dict` was given."""
        known = dict(given)
        known["nodes"] = tuple(known["nodes"])
        known["reasons"] = tuple(known["reasons"])
        known["recorded"] = _figures_from(known["recorded"])
        known["groups"] = tuple(_group_from(each) for each in known["groups"])
        known["excluded"] = tuple(Exclusion(**each) for each in known.get("excluded", ()))
        diagnosis = known.get("diagnosis")
        known["diagnosis"] = diagnosis_from(diagnosis) if diagnosis else None
        return cls(**known)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReport:
    """The cluster that a run was made on."""

    kind: str
    server_version: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformReport:
    """The platform of the nodes, and by what it was told: a rule in words, or the option's name.

    `settings`: the platform whose settings were taken, which may be the fallback.
    """

    name: str
    told_by: str
    settings: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run. `planned` are the node ids that it promised; `items` are those that ended.

    `platform` None: no node was looked at.
    """

    run_id: str
    result: RunResult
    is_simulated: bool
    cluster: ClusterReport
    architecture: str | None = None
    nodes: tuple[str, ...] = ()
    excluded: tuple[Exclusion, ...] = ()
    leftovers: tuple[str, ...] = ()  # objects that clean-up could not delete
    settings: Mapping[str, Any] = field(default_factory=dict)
    catalog_sha256: str = ""
    plugin_version: str = ""
    planned: tuple[str, ...] = ()
    items: tuple[ItemReport, ...] = ()
    platform: PlatformReport | None = None
    warnings: tuple[str, ...] = ()  # of the run as a whole
    schema: str = SCHEMA

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> "RunReport":
        """Return the report that `to_dict` was given."""
        known = dict(given)
        for name in ("exit_code", "not_run", "note"):
            known.pop(name, None)
        for name in ("nodes", "leftovers", "planned"):
            known[name] = tuple(known[name])
        platform = known.get("platform")
        known["platform"] = PlatformReport(**platform) if platform else None
        known["warnings"] = tuple(known.get("warnings", ()))
        known["cluster"] = ClusterReport(**known["cluster"])
        known["excluded"] = tuple(Exclusion(**each) for each in known["excluded"])
        known["items"] = tuple(ItemReport.from_dict(each) for each in known["items"])
        return cls(**known)

    @property
    def exit_code(self) -> int:
        """Return pytest's exit code for this result."""
        return EXIT_CODES[self.result]

    @property
    def not_run(self) -> tuple[str, ...]:
        """Return the node ids that were planned and never ended, sorted."""
        return tuple(sorted(set(self.planned) - {item.node_id for item in self.items}))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON types."""
        note = SIMULATED_NOTE if self.is_simulated else None
        told = cast("dict[str, Any]", plain(self))
        for item in told["items"]:
            del item["excluded"]  # told by the run
        return {
            **told,
            "exit_code": self.exit_code,
            "not_run": list(self.not_run),
            "note": note,
        }


def title_of(entry: str, scale: str) -> str:
    """Return an entry's name, with its scale where that is not the usual one."""
    return entry if scale == FULL_SCALE else f"{entry}@{scale}"


def item_report(
    verdict: ItemVerdict,
    evidence: WorkflowEvidence | None,
    *,
    node_id: str,
    duration_s: float,
    recorded: Sequence[tuple[str, float, str]] = (),
    text: str = "",
    decided_by: DecidedBy = "test",
    folder: str | None = None,
) -> ItemReport:
    """Return the report of an item. `recorded` are a test's own figures; the last of a name counts.

    `evidence` None: nothing was run, so nothing is known of nodes and architecture.
    """
    seen = {(each.group, each.attempt): each for each in evidence.groups} if evidence else {}
    groups = tuple(
        group_report(each, seen.get((each.group, each.attempt))) for each in verdict.groups
    )
    first = next(iter(seen.values()), None)
    nodes = sorted({node for group in groups for node in group.nodes})
    return ItemReport(
        node_id=node_id,
        entry=verdict.entry,
        scale=verdict.scale,
        code=verdict.code,
        architecture=first.architecture if first else None,
        nodes=tuple(nodes),
        gpus=len(nodes) * first.gpus_per_node if first else 0,
        is_simulated=any(each.is_simulated for each in seen.values()),
        duration_s=duration_s,
        groups=groups,
        reasons=verdict.reasons,
        recorded={name: Figure(value=value, unit=unit) for name, value, unit in recorded},
        options=dict(first.options) if first else {},
        text=text,
        decided_by=decided_by,
        evidence=folder,
        kind=evidence.kind if evidence else "",
        kind_reason=evidence.kind_reason if evidence else "",
        excluded=evidence.excluded if evidence else (),
        diagnosis=diagnosis_report(verdict.diagnosis, {each.group for each in groups})
        if verdict.diagnosis
        else None,
    )


def with_result(report: RunReport) -> RunReport:
    """Return the report with the result that its items, exclusions and leftovers come to.

    A node that only some items could not use is excluded all the same, with the first of them.
    """
    excluded = {each.node: each for each in report.excluded}
    for item in report.items:
        for each in item.excluded:
            words = f"{each.message} (when {item.title} was to run)"
            excluded.setdefault(each.node, replace(each, message=words))
    report = replace(
        report,
        excluded=tuple(excluded[node] for node in sorted(excluded)),
        items=tuple(replace(item, excluded=()) for item in report.items),
    )
    accepted = report.settings.get("accepted_exclusions", ())
    result = run_result(
        report.items,
        planned=len(report.planned),
        excluded=report.excluded,
        # Nodes that the user left out by name or selector are untested by choice.
        accepted_exclusions=("unselected", *accepted),
        missing=report.settings.get("missing_limit", "skip"),
    )
    return replace(report, result="ERROR" if report.leftovers else result)


def group_report(verdict: GroupVerdict, evidence: GroupEvidence | None) -> GroupReport:
    """Return the report of a group."""
    return GroupReport(
        group=verdict.group,
        attempt=verdict.attempt,
        nodes=verdict.nodes,
        code=verdict.code,
        checks=tuple(_check_report(check) for check in verdict.checks),
        figures={
            name: Figure(value=value, unit=figure_unit(name))
            for name, value in verdict.figures.items()
        },
        reasons=verdict.reasons,
        warnings=verdict.warnings,
        failed_nodes=node_failures(verdict, evidence) if evidence else (),
        queue_s=evidence.queue_s if evidence else None,
        start_s=evidence.start_s if evidence else None,
        run_s=evidence.run_s if evidence else None,
        restarts=len(evidence.restarts) if evidence else 0,
        is_retried=verdict.is_retried,
        failure_log=failure_log(evidence) if evidence and verdict.code in FAILED else None,
    )


def _check_report(check: Check) -> CheckReport:
    limit = check.limit
    return CheckReport(
        metric=check.metric,
        statistic=check.statistic,
        measured=check.measured,
        unit=check.unit,
        operator=limit.operator if limit else None,
        limit=limit.value if limit else None,
        margin=check.margin,
        code=check.code,
        size_bytes=limit.size_bytes if limit else None,
        tier=limit.tier if limit else None,
        source=limit.source if limit else None,
        date=limit.known_date if limit else None,
        place=limit.place or None if limit else None,
    )


def plain(value: object) -> object:
    """Return dataclasses, tuples and mappings as dicts and lists of plain JSON types."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    return str(value)


def _group_from(given: Mapping[str, Any]) -> GroupReport:
    known = dict(given)
    for name in ("nodes", "reasons", "warnings"):
        known[name] = tuple(known[name])
    known["checks"] = tuple(CheckReport(**each) for each in known["checks"])
    known["failed_nodes"] = tuple(NodeFailure(**each) for each in known["failed_nodes"])
    known["figures"] = _figures_from(known["figures"])
    log = known.get("failure_log")
    known["failure_log"] = FailureLog(**log) if log else None
    return GroupReport(**known)


def _figures_from(given: Mapping[str, Mapping[str, Any]]) -> dict[str, Figure]:
    return {name: Figure(**figure) for name, figure in given.items()}
