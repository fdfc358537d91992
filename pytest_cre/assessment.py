"""From evidence to measurements, limits and verdicts: no cluster, so disk serves as well as a run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_cre.catalog.simulated import limits_from_json
from pytest_cre.errors import EvidenceProblem
from pytest_cre.judge.figures import whole_sizes
from pytest_cre.judge.group import judge_group
from pytest_cre.judge.limits import applying_limits
from pytest_cre.judge.run import judge_item
from pytest_cre.judge.transport import group_fabric
from pytest_cre.judge.wire import physics_limits
from pytest_cre.measure.measurement import measure_group
from pytest_cre.report.failure import failure_text, skip_text

if TYPE_CHECKING:
    from pytest_cre.catalog.entry import CatalogEntry
    from pytest_cre.catalog.limit import Limit
    from pytest_cre.catalog.loader import Catalog
    from pytest_cre.evidence.model import GroupEvidence, WorkflowEvidence
    from pytest_cre.judge.missing import MissingLimit, SimulatedBy
    from pytest_cre.judge.verdict import ItemVerdict
    from pytest_cre.measure.model import Measurement

NOT_KEPT = "not kept (--cre-evidence DIR keeps them)"


class Assessor:
    """What a catalog says of evidence. `simulated_limits`: JSON text by the node that carries it."""

    def __init__(
        self,
        catalog: "Catalog",
        *,
        simulated_limits: Mapping[str, str],
        missing_limit: "MissingLimit",
        logs_place: str | None,
        simulated_by: "SimulatedBy" = "scenario",
    ) -> None:
        self._catalog = catalog
        self._missing_limit = missing_limit
        self._is_judged_as_real = simulated_by == "published"
        self._logs_place = logs_place or NOT_KEPT
        limits = [limit for each in catalog.architectures.values() for limit in each.limits]
        limits += [limit for entry in catalog.entries.values() for limit in entry.limits]
        texts = {text: node for node, text in sorted(simulated_limits.items(), reverse=True)}
        for text, node in sorted(texts.items()):
            limits += limits_from_json(text, f"node {node}")
        self._candidates: tuple[Limit, ...] = tuple(limits)

    def measure(self, evidence: "WorkflowEvidence") -> "dict[tuple[str, int], Measurement]":
        """Return the measurement of each group."""
        return {group.key: self.measure_group(group) for group in evidence.groups}

    def measure_group(self, group: "GroupEvidence") -> "Measurement":
        """Return the measurement of one group, such as a provisional one while it runs."""
        profiles = self._catalog.log_profiles
        return measure_group(group, profiles[self._entry(group).log_profile], profiles)

    def limits(
        self, evidence: "WorkflowEvidence", measurements: "Mapping[tuple[str, int], Measurement]"
    ) -> "dict[tuple[str, int], tuple[Limit, ...]]":
        """Return the limits that apply to each group."""
        found = {}
        for group in evidence.groups:
            measurement = measurements[group.key]
            applying = applying_limits(
                self._candidates,
                entry=evidence.entry,
                scale=evidence.scale,
                nodes=len(group.nodes),
                architecture=group.architecture,
                fabric=group_fabric(group, measurement),
                is_simulated=group.is_simulated and not self._is_judged_as_real,
                collective=self._entry(evidence).test,
                sizes=whole_sizes(measurement),
            )
            architecture = self._catalog.architectures.get(group.architecture or "")
            bounds = physics_limits(architecture, group, measurement)
            found[group.key] = (*applying, *bounds)
        return found

    def judge(
        self,
        evidence: "WorkflowEvidence",
        measurements: "Mapping[tuple[str, int], Measurement]",
        limits: "Mapping[tuple[str, int], tuple[Limit, ...]] | None",
    ) -> "ItemVerdict":
        """Judge evidence by limits per group, or by the evidence alone where they are None."""
        groups = [
            judge_group(
                group,
                measurements[group.key],
                () if limits is None else limits[group.key],
                missing="record" if limits is None else self._missing_limit,
                entry=self._entry(evidence),
            )
            for group in evidence.groups
        ]
        return judge_item(evidence, groups)

    def text_of(self, verdict: "ItemVerdict", evidence: "WorkflowEvidence | None") -> str:
        """Return what pytest shows of a verdict; empty for a pass."""
        if verdict.code == "pass":
            return ""
        if verdict.code in ("unmet", "no-limit", "not-applicable"):
            return skip_text(verdict)
        return failure_text(verdict, evidence=evidence, logs_place=self._logs_place)

    def _entry(self, evidence: "WorkflowEvidence | GroupEvidence") -> "CatalogEntry":
        try:
            return self._catalog.entries[evidence.entry]
        except KeyError:
            raise EvidenceProblem(
                f"{evidence.entry}: no such catalog entry; name its folder with --catalog"
            ) from None
