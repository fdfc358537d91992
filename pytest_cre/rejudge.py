"""A run's whole report, made again from its evidence: with the same limits, the same bytes."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_cre.assessment import Assessor
from pytest_cre.errors import EvidenceProblem
from pytest_cre.evidence.files import is_inside
from pytest_cre.evidence.journal import has_partial, read_partial
from pytest_cre.evidence.manifest import MANIFEST_FILE, RunManifest
from pytest_cre.evidence.store import read_workflow
from pytest_cre.report.model import ItemReport, RunReport, item_report, with_result

if TYPE_CHECKING:
    from pytest_cre.catalog.loader import Catalog
    from pytest_cre.evidence.model import WorkflowEvidence
    from pytest_cre.judge.missing import SimulatedBy


def rejudge(
    root: Path,
    manifest: RunManifest,
    catalog: "Catalog",
    *,
    simulated_by: "SimulatedBy | None" = None,
) -> RunReport:
    """Judge every item that limits or evidence decided again; what a test decided stands.

    `simulated_by` says which limits judge simulated nodes, where not those that judged the run.

    Of a run that was killed, items with partial evidence are inconclusive and the rest never ran.
    Raises `EvidenceProblem` where evidence is missing or was changed.
    """
    try:
        report = RunReport.from_dict(manifest.report)
    except (KeyError, TypeError) as problem:
        raise EvidenceProblem(f"{root / MANIFEST_FILE}: report: {problem}") from None
    if manifest.certification:
        from pytest_cre.catalog.certification_file import certification_of

        text, source = manifest.certification, manifest.certification_source
        catalog = certification_of(text, source, catalog).applied(catalog)
    missing: Any = report.settings.get("missing_limit", "skip")
    judged_by: Any = simulated_by or report.settings.get("simulated_by", "scenario")
    report = replace(report, settings={**report.settings, "simulated_by": judged_by})
    assessor = Assessor(
        catalog,
        simulated_limits=manifest.simulated_limits,
        missing_limit=missing,
        simulated_by=judged_by,
        logs_place=manifest.logs_place or None,
    )
    items = [_rejudged(root, item, assessor) for item in report.items]
    if not manifest.is_finished:
        items += _cut_off(root, manifest, report, assessor)
    from pytest_cre.catalog.digest import catalog_sha256

    return with_result(replace(report, items=tuple(items), catalog_sha256=catalog_sha256(catalog)))


def _rejudged(root: Path, item: ItemReport, assessor: Assessor) -> ItemReport:
    if item.decided_by == "test" or item.evidence is None:
        return item
    if not is_inside(item.evidence):
        raise EvidenceProblem(
            f"{root / MANIFEST_FILE}: {item.evidence!r}: not a folder of evidence"
        )
    evidence = read_workflow(root / item.evidence)
    return _judged(evidence, item, assessor, by_limits=item.decided_by == "limits")


def _cut_off(
    root: Path, manifest: RunManifest, report: RunReport, assessor: Assessor
) -> list[ItemReport]:
    """Return the items that ran when the run was killed, as far as their evidence reached the disk."""
    items = []
    for node_id in report.not_run:
        planned = manifest.planned.get(node_id)
        if planned is None or not is_inside(planned.folder):
            continue
        if has_partial(root / planned.folder):
            evidence = read_partial(root / planned.folder, entry=planned.entry, scale=planned.scale)
            item = ItemReport(
                node_id=node_id,
                entry=planned.entry,
                scale=planned.scale,
                code="inconclusive",
                evidence=planned.folder,
            )
            items.append(_judged(evidence, item, assessor, by_limits=False))
    return items


def _judged(
    evidence: "WorkflowEvidence", item: ItemReport, assessor: Assessor, *, by_limits: bool
) -> ItemReport:
    measurements = assessor.measure(evidence)
    limits = assessor.limits(evidence, measurements) if by_limits else None
    verdict = assessor.judge(evidence, measurements, limits)
    return replace(
        item_report(
            verdict,
            evidence,
            node_id=item.node_id,
            duration_s=item.duration_s,
            text=assessor.text_of(verdict, evidence),
            decided_by="limits" if by_limits else "evidence",
            folder=item.evidence,
        ),
        recorded=item.recorded,
    )
