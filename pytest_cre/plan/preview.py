"""What a run would create, without a cluster: the same plan on nodes that stand for real ones."""

from collections.abc import Mapping, Sequence

from pytest_cre.catalog.architecture import Architecture
from pytest_cre.catalog.entry import CatalogEntry, WorkloadKind
from pytest_cre.catalog.options import resolve_options
from pytest_cre.catalog.platform import Platform
from pytest_cre.errors import UsageProblem
from pytest_cre.evidence.model import PRODUCT_LABEL, NodeFacts
from pytest_cre.plan.model import Selection, WorkflowPlan
from pytest_cre.plan.names import owner_name
from pytest_cre.plan.platform import Ground, ground_of
from pytest_cre.plan.site import NO_SITE, Site
from pytest_cre.plan.workflow import plan_workflow

# What only a run knows. As text they can be replaced by its values, and names stay right.
RUN_ID = "run-id-placeholder"
OWNER_UID = "owner-uid-placeholder"
NODE = "node-placeholder"
ALL_KINDS: tuple[WorkloadKind, ...] = ("indexedJob", "jobSet", "mpiJob", "trainJob")


def preview(
    entry: CatalogEntry,
    *,
    platform: str,
    architecture: Architecture,
    platforms: Mapping[str, Platform],
    nodes: int | Sequence[NodeFacts],
    scripts: Mapping[str, str],
    kind: WorkloadKind | None = None,
    scale: str | None = None,
    namespace: str = "default",
    options: Mapping[str, str] | None = None,
    site: Site = NO_SITE,
) -> tuple[WorkflowPlan, Ground]:
    """Return the plan of an entry on so many nodes, or on these; raises `UsageProblem`.

    The scale is the entry's first unless it is given. With a number of nodes, NICs are counted as
    the platform's hardware has them; with nodes, as these allocate them.
    """
    known = None if isinstance(nodes, int) else tuple(nodes)
    ground = ground_of(platform, architecture, platforms, nodes=known, was_asked=True, site=site)
    members = known if known is not None else _placeholders(_count(nodes), architecture, ground)
    scale = scale or entry.scales[0]
    entry = entry.at(scale)
    given = {**ground.fitting.option_defaults(entry, scale), **(options or {})}
    plan = plan_workflow(
        entry,
        scale,
        Selection(nodes=members, excluded=(), architecture=architecture.name, is_simulated=False),
        architecture,
        served=ALL_KINDS,
        run_id=RUN_ID,
        owner=(owner_name(RUN_ID), OWNER_UID),
        namespace=namespace,
        options=resolve_options(entry, given),
        scripts=scripts,
        asked_kind=kind,
        ground=ground,
    )
    for problem in plan.problems:
        raise UsageProblem(problem.message)
    return plan, ground


def _count(nodes: int | Sequence[NodeFacts]) -> int:
    return nodes if isinstance(nodes, int) else len(nodes)


def _placeholders(count: int, architecture: Architecture, ground: Ground) -> tuple[NodeFacts, ...]:
    """Return nodes whose names sort in the order of their numbers, filling one rack after another."""
    gpus = ground.gpus_per_node or architecture.gpus_per_node
    per_rack = max(1, architecture.domain_gpus // gpus)
    width = len(str(count - 1))
    return tuple(
        NodeFacts(
            name=f"{NODE}-{index:0{width}}",
            uid=f"{NODE}-{index:0{width}}",
            labels={
                PRODUCT_LABEL: architecture.product_labels[0],
                ground.rack_label: f"rack-{index // per_rack}",
            },
            gpus_allocatable=gpus,
            is_ready=True,
            is_cordoned=False,
        )
        for index in range(count)
    )
