"""From evidence to measurements, limits and verdicts: no cluster, so disk serves as well as a run."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_cre.catalog.entry import DIAGNOSE
from pytest_cre.catalog.simulated import limits_from_json
from pytest_cre.errors import EvidenceProblem, UnmetNeed
from pytest_cre.judge.diagnose import judge_diagnosis, outcome_of
from pytest_cre.judge.figures import whole_sizes
from pytest_cre.judge.group import group_finding, judge_group, unjudged
from pytest_cre.judge.limits import Unused, applying_limits
from pytest_cre.judge.repeats import answers, wants_another
from pytest_cre.judge.retries import is_lost, retried, told
from pytest_cre.judge.run import judge_item
from pytest_cre.judge.statistics import Repeats
from pytest_cre.judge.transport import group_fabric
from pytest_cre.judge.wire import physics_limits
from pytest_cre.measure.measurement import measure_group
from pytest_cre.report.failure import failure_text, skip_text

if TYPE_CHECKING:
    from pytest_cre.catalog.entry import CatalogEntry, Repeat
    from pytest_cre.catalog.limit import Limit
    from pytest_cre.catalog.loader import Catalog
    from pytest_cre.evidence.model import GroupEvidence, WorkflowEvidence
    from pytest_cre.judge.missing import MissingLimit, SimulatedBy
    from pytest_cre.judge.repeats import Repeated
    from pytest_cre.judge.verdict import Check, ItemVerdict
    from pytest_cre.measure.model import Measurement
    from pytest_cre.plan.diagnose.model import Outcome

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
        return {
            group.key: self._limits_of(group, measurements[group.key]) for group in evidence.groups
        }

    def resume_step(self, group: "GroupEvidence") -> int:
        """Return the step of the newest checkpoint that the logs prove; raises `UnmetNeed`."""
        training = self.measure_group(group).training
        if training is None or training.durable_step <= 0:
            raise UnmetNeed("the logs prove no checkpoint")
        return training.durable_step

    def is_retry(self, attempts: "Sequence[GroupEvidence]") -> bool:
        """Return whether the last of a group's attempts is to be made again, because it was lost.

        Never where another one has failed already.
        """
        retries = self._entry(attempts[0]).retries
        last = self.measure_group(attempts[-1]) if retries else None
        if last is None or not is_lost(attempts[-1], last):
            return False
        measured = [*map(self.measure_group, attempts[:-1]), last]
        codes = [
            judge_group(
                group,
                each,
                self._limits_of(group, each),
                missing=self._missing_limit,
                entry=self._entry(group),
            ).code
            for group, each in zip(attempts, measured, strict=True)
        ]
        before = retried([is_lost(*each) for each in zip(attempts, measured, strict=True)], retries)
        return sum(before) < retries and "fail" not in codes

    def wants_more(self, attempts: "Sequence[GroupEvidence]", *, iterations: int = 1) -> bool:
        """Return whether a group needs another attempt after these to come to a verdict.

        It does when the last one is to be made again, when there are not `iterations` that stand
        yet, and when its entry repeats until an interval is clear.
        """
        if self.is_retry(attempts):
            return True
        made_again = self.retried(attempts)
        attempts = [each for each in attempts if each.key not in made_again]
        if len(attempts) < iterations:
            return True
        repeat = self._entry(attempts[0]).repeat
        if repeat is None:
            return False
        repeats = _repeats(repeat)
        measured = [self.measure_group(each) for each in attempts]
        limits = [self._limits_of(*each) for each in zip(attempts, measured, strict=True)]
        whole = self._whole_checks(attempts, measured, limits)
        if len(whole) < len(attempts):
            return False  # a failed attempt has decided, and a lost one cannot be made good
        return wants_another(answers(whole, repeats), count=len(whole), repeats=repeats)

    def retried(self, groups: "Sequence[GroupEvidence]") -> "frozenset[tuple[str, int]]":
        """Return the keys of the attempts that were made again, so that nothing depends on them."""
        return frozenset(
            each.key
            for attempts, made_again in self._by_group(groups)
            for each, was_made_again in zip(attempts, made_again, strict=True)
            if was_made_again
        )

    def outcome(self, attempts: "Sequence[GroupEvidence]") -> "Outcome":
        """Return what the attempts of a diagnosis' test came to: the first one that tells."""
        return self._outcome(zip(attempts, map(self.measure_group, attempts), strict=True))

    def _outcome(self, attempts: "Iterable[tuple[GroupEvidence, Measurement]]") -> "Outcome":
        for group, measured in attempts:
            limits, entry = self._limits_of(group, measured), self._entry(group)
            found = outcome_of(
                group_finding(group, measured, limits, entry),
                judge_group(group, measured, limits, missing="record", entry=entry),
            )
            if found != "undetermined":
                return found
        return "undetermined"

    def _by_group(
        self,
        groups: "Sequence[GroupEvidence]",
        measurements: "Mapping[tuple[str, int], Measurement] | None" = None,
    ) -> "Iterator[tuple[list[GroupEvidence], tuple[bool, ...]]]":
        """Yield the attempts of each group, in their order, and which of them were made again.

        Without `measurements` those that it takes are made.
        """
        tried: dict[str, list[GroupEvidence]] = {}
        for group in sorted(groups, key=lambda each: each.attempt):
            tried.setdefault(group.group, []).append(group)
        for attempts in tried.values():
            retries = self._entry(attempts[0]).retries
            may_be = retries > 0 and len(attempts) > 1
            lost = [
                may_be
                and is_lost(
                    each, measurements[each.key] if measurements else self.measure_group(each)
                )
                for each in attempts
            ]
            yield attempts, retried(lost, retries)

    def _limits_of(self, group: "GroupEvidence", measurement: "Measurement") -> "tuple[Limit, ...]":
        applying = self._applying(
            group,
            measurement,
            is_simulated=self._takes_simulated(group),
            sizes=whole_sizes(measurement),
        )
        architecture = self._catalog.architectures.get(group.architecture or "")
        return (*applying, *physics_limits(architecture, group, measurement))

    def _unused(self, group: "GroupEvidence", measurement: "Measurement") -> Unused:
        """Return the limits that would judge the group but for one thing."""
        is_simulated, sizes = self._takes_simulated(group), whole_sizes(measurement)
        apply = partial(self._applying, group, measurement)
        taken = apply(is_simulated=is_simulated, sizes=sizes)
        of_any_size = apply(is_simulated=is_simulated, sizes=None)
        return Unused(
            other_sizes=tuple(each for each in of_any_size if each not in taken),
            of_real_nodes=apply(is_simulated=False, sizes=sizes) if is_simulated else (),
        )

    def _takes_simulated(self, group: "GroupEvidence") -> bool:
        return group.is_simulated and not self._is_judged_as_real

    def _applying(
        self,
        group: "GroupEvidence",
        measurement: "Measurement",
        *,
        is_simulated: bool,
        sizes: "Collection[int] | None",
    ) -> "tuple[Limit, ...]":
        return applying_limits(
            self._candidates,
            entry=group.entry,
            scale=group.scale,
            nodes=len(group.nodes),
            architecture=group.architecture,
            fabric=group_fabric(group, measurement),
            is_simulated=is_simulated,
            collective=self._entry(group).test,
            sizes=sizes,
        )

    def _whole_checks(
        self,
        attempts: "Sequence[GroupEvidence]",
        measured: "Sequence[Measurement]",
        limits: "Sequence[tuple[Limit, ...]]",
    ) -> "list[tuple[Check, ...]]":
        """Return the checks of each attempt whose figures may be judged."""
        return [
            judge_group(group, each, of_group, missing="record", entry=self._entry(group)).checks
            for group, each, of_group in zip(attempts, measured, limits, strict=True)
            if group_finding(group, each, of_group, self._entry(group)).code is None
        ]

    def _repeated(
        self,
        evidence: "WorkflowEvidence",
        measurements: "Mapping[tuple[str, int], Measurement]",
        limits: "Mapping[tuple[str, int], tuple[Limit, ...]]",
    ) -> "dict[str, dict[Limit, Repeated]]":
        """Return what the attempts on each group answer together; nothing for what runs once."""
        repeat = self._entry(evidence).repeat
        if repeat is None:
            return {}
        found = {}
        for attempts, made_again in self._by_group(evidence.groups, measurements):
            standing = zip(attempts, made_again, strict=True)
            groups = [each for each, was_made_again in standing if not was_made_again]
            name = groups[0].group
            measured = [measurements[each.key] for each in groups]
            whole = self._whole_checks(groups, measured, [limits[each.key] for each in groups])
            found[name] = answers(whole, _repeats(repeat))
        return found

    def judge(
        self,
        evidence: "WorkflowEvidence",
        measurements: "Mapping[tuple[str, int], Measurement]",
        limits: "Mapping[tuple[str, int], tuple[Limit, ...]] | None",
    ) -> "ItemVerdict":
        """Judge evidence by limits per group, or by the evidence alone where they are None."""
        repeated = {} if limits is None else self._repeated(evidence, measurements, limits)
        groups = [
            judge_group(
                group,
                measurements[group.key],
                () if limits is None else limits[group.key],
                missing="record" if limits is None else self._missing_limit,
                entry=self._entry(evidence),
                repeated=repeated.get(group.group),
                unused=None if limits is None else self._unused(group, measurements[group.key]),
            )
            for group in evidence.groups
        ]
        verdicts = {(each.group, each.attempt): each for each in groups}
        outcomes: dict[str, Outcome] = {}
        for attempts, made_again in self._by_group(evidence.groups, measurements):
            own = told([verdicts[each.key] for each in attempts], made_again)
            verdicts |= {(each.group, each.attempt): each for each in own}
            if evidence.scale == DIAGNOSE:
                outcomes[attempts[0].group] = self._outcome(
                    (each, measurements[each.key]) for each in attempts
                )
        judged = list(verdicts.values())
        if evidence.scale == DIAGNOSE:
            missing = "record" if limits is None else self._missing_limit
            return judge_diagnosis(evidence, judged, outcomes, missing=missing)
        verdict = judge_item(evidence, judged)
        if limits is None and verdict.code != "no-limit":
            verdict = replace(verdict, groups=tuple(unjudged(each) for each in verdict.groups))
        return verdict

    def text_of(self, verdict: "ItemVerdict", evidence: "WorkflowEvidence | None") -> str:
        """Return what pytest shows of a verdict; empty for a pass."""
        if verdict.code == "pass":
            return ""
        if verdict.code in ("unmet", "no-limit", "not-applicable"):
            return skip_text(verdict)
        return failure_text(verdict, evidence=evidence, logs_place=self._logs_place)

    def _entry(self, evidence: "WorkflowEvidence | GroupEvidence") -> "CatalogEntry":
        try:
            return self._catalog.entries[evidence.entry].at(evidence.scale)
        except KeyError:
            raise EvidenceProblem(
                f"{evidence.entry}: no such catalog entry; name its folder with --catalog"
            ) from None


def _repeats(repeat: "Repeat") -> Repeats:
    return Repeats(least=repeat.least, most=repeat.most, error=repeat.error)
