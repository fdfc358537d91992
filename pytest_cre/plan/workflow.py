"""An entry at one scale on the selected nodes: kind, groups and objects."""

from collections.abc import Collection, Mapping, Sequence

from pytest_cre.catalog.architecture import Architecture
from pytest_cre.catalog.entry import DIAGNOSE, MIN_GROUP_SIZE, CatalogEntry, WorkloadKind
from pytest_cre.errors import NotApplicable, UnmetNeed
from pytest_cre.evidence.model import DiagnosisSetup, Exclusion, NodeFacts, Problem
from pytest_cre.plan.applies import check_applies
from pytest_cre.plan.diagnose.course import Diagnosis
from pytest_cre.plan.diagnose.ground import setup_on, without_nvlink
from pytest_cre.plan.diagnose.model import Trial
from pytest_cre.plan.kinds import choose_kind
from pytest_cre.plan.model import GroupPlan, NodeGroup, Selection, WorkflowPlan
from pytest_cre.plan.needs import fitting_groups
from pytest_cre.plan.platform import NO_GROUND, Ground
from pytest_cre.plan.provisions import Provisions, check_provisions
from pytest_cre.plan.render import render_group
from pytest_cre.plan.wording import listed


def plan_workflow(
    entry: CatalogEntry,
    scale: str,
    selection: Selection,
    architecture: Architecture | None,
    *,
    served: Collection[WorkloadKind],
    run_id: str,
    owner: tuple[str, str],
    namespace: str,
    options: Mapping[str, str],
    scripts: Mapping[str, str],
    attempt: int = 0,
    nodes_per_group: int | None = None,
    asked_kind: WorkloadKind | None = None,
    ground: Ground = NO_GROUND,
    min_group_size: int = MIN_GROUP_SIZE,
    trials: Sequence[Trial] | None = None,
    offered: Provisions | None = None,
) -> WorkflowPlan:
    """Return what will run where.

    The workload kind is the entry's first that the cluster serves, or `asked_kind`. Where the
    cluster lacks what the entry needs, the plan has no groups and a problem `unschedulable` that
    says what is missing; where the entry is for other hardware, one `not-applicable`. `options` are
    the entry's options, complete. `ground` is what the pods are fitted to, `offered` what the
    cluster provides (None: nobody asks). At scale `diagnose` the groups are `trials`, or without
    these the first round of a diagnosis, which halves groups down to `min_group_size`. Raises
    `UsageProblem` for an unknown scale and `CatalogProblem` for an override that cannot be applied.
    """
    choice = choose_kind(entry, served, asked_kind)
    excluded = selection.excluded
    problems: tuple[Problem, ...] = ()
    groups: tuple[GroupPlan, ...] = ()
    diagnosis: DiagnosisSetup | None = None
    try:
        if choice.unmet is not None:
            raise UnmetNeed(choice.unmet)
        gpus_per_node = _gpus_per_node(entry, selection, architecture, ground)
        nodes, too_small = _with_gpus(selection.nodes, gpus_per_node)
        excluded = tuple(sorted((*excluded, *too_small), key=lambda each: each.node))
        if not nodes:
            raise UnmetNeed(f"no node can be used: {_exclusion_words(excluded)}")
        check_applies(
            entry,
            scale,
            architecture,
            nodes=nodes,
            excluded=excluded,
            gpus_per_node=gpus_per_node,
            options=options,
            rack_label=ground.rack_label,
        )
        members: Sequence[NodeGroup]
        switched_off: frozenset[str] = frozenset()
        if scale == DIAGNOSE:
            diagnosis = setup_on(
                entry,
                nodes,
                ground,
                kind=choice.kind,
                gpus_per_node=gpus_per_node,
                options=options,
                min_group_size=min_group_size,
            )
            trials = Diagnosis(diagnosis).current if trials is None else trials
            members = [NodeGroup(name=each.name, nodes=each.nodes) for each in trials]
            switched_off = frozenset(each.name for each in trials if each.without_nvlink)
        else:
            members = fitting_groups(
                entry,
                nodes,
                scale,
                nodes_per_group=nodes_per_group,
                gpus_per_node=gpus_per_node,
                options=options,
                rack_label=ground.rack_label,
            )
        groups = tuple(
            ground.placed(
                render_group(
                    without_nvlink(entry) if group.name in switched_off else entry,
                    choice.kind,
                    group,
                    scale=scale,
                    architecture=selection.architecture,
                    gpus_per_node=gpus_per_node,
                    run_id=run_id,
                    owner=owner,
                    namespace=namespace,
                    options=options,
                    scripts=scripts,
                    attempt=attempt,
                    fitting=ground.fitting,
                ),
                nodes,
            )
            for group in members
        )
        if offered is not None:
            check_provisions(
                entry,
                scale,
                choice.kind,
                groups,
                nodes,
                ground=ground,
                options=options,
                offered=offered,
            )
    except UnmetNeed as need:
        groups, diagnosis = (), None
        problems = (Problem(code="unschedulable", message=str(need)),)
    except NotApplicable as other:
        groups, diagnosis = (), None
        problems = (Problem(code="not-applicable", message=str(other)),)
    return WorkflowPlan(
        entry=entry,
        scale=scale,
        kind=choice.kind,
        kind_reason=choice.reason,
        architecture=selection.architecture,
        is_simulated=selection.is_simulated,
        groups=groups,
        excluded=excluded,
        options=dict(options),
        problems=problems,
        diagnosis=diagnosis,
    )


def disjoint(first: NodeGroup, second: NodeGroup) -> bool:
    """Return whether two groups may run at the same time: they share no node."""
    return not set(first.nodes) & set(second.nodes)


def _gpus_per_node(
    entry: CatalogEntry, selection: Selection, architecture: Architecture | None, ground: Ground
) -> int:
    if entry.gpus_per_node is not None:
        return entry.gpus_per_node
    if ground.gpus_per_node is not None:
        return ground.gpus_per_node
    if architecture is not None:
        return architecture.gpus_per_node
    return min((node.gpus_allocatable for node in selection.nodes), default=1)


def _with_gpus(
    nodes: tuple[NodeFacts, ...], gpus_per_node: int
) -> tuple[list[NodeFacts], list[Exclusion]]:
    """Split off the nodes that have fewer GPUs than this entry asks for."""
    enough = [node for node in nodes if node.gpus_allocatable >= gpus_per_node]
    too_small = [
        Exclusion(
            node=node.name,
            reason="few-gpus",
            message=f"{node.gpus_allocatable} of {gpus_per_node} GPUs allocatable",
        )
        for node in nodes
        if node.gpus_allocatable < gpus_per_node
    ]
    return enough, too_small


def _exclusion_words(excluded: tuple[Exclusion, ...]) -> str:
    words = [f"{each.node} {each.reason} ({each.message})" for each in excluded]
    return listed(words, 5) or "the cluster has none"
