"""Overrides that change pods freely, tried on pods: does the change apply, does Kubernetes know it."""

from collections.abc import Iterable, Iterator
from itertools import islice, product

from pytest_cre.catalog.architecture import Architecture
from pytest_cre.catalog.entry import CatalogEntry, WorkloadKind
from pytest_cre.catalog.loader import Catalog
from pytest_cre.catalog.override import Override
from pytest_cre.catalog.platform import FALLBACK, Platform
from pytest_cre.embedded.decoding import DecodingError, decode
from pytest_cre.errors import UsageProblem
from pytest_cre.plan.model import WorkflowPlan
from pytest_cre.plan.podsites import all_templates, editable
from pytest_cre.plan.preview import preview

Owner = CatalogEntry | Platform | Architecture
Ground = tuple[CatalogEntry, WorkloadKind, str, str, Architecture]  # with scale and platform
MOST_TRIES = 20  # where groups cannot be formed, others are tried


def pod_problems(owners: Iterable[Owner], catalog: Catalog) -> Iterator[str]:
    """Yield a line per override that no pod can take, with the place of the override.

    Each override with a patch is tried once for every workload kind that it is for.
    """
    for owner in owners:
        for override in owner.overrides:
            if override.edits_freely:
                yield from dict.fromkeys(_override_problems(override, owner, catalog))


def _override_problems(override: Override, owner: Owner, catalog: Catalog) -> Iterator[str]:
    tried: set[WorkloadKind] = set()
    for ground in islice(_grounds(override, owner, catalog), MOST_TRIES):
        entry, kind, *_ = ground
        if kind in tried:
            continue
        try:
            plan = _plan(ground, override, catalog)
        except (UsageProblem, ValueError) as problem:
            if str(problem).startswith(f"{override.place}: "):
                yield str(problem)
                return
            continue  # no group of nodes fits, or something else is wrong, which is told
        tried.add(kind)
        for words in _strange(plan):
            yield f"{override.place}: override {override.name} on {entry.name}: {words}"


def _grounds(override: Override, owner: Owner, catalog: Catalog) -> Iterator[Ground]:
    """Yield where the override applies: entry, kind, scale, platform and architecture."""
    entries = [owner] if isinstance(owner, CatalogEntry) else catalog.entries.values()
    names = sorted(catalog.platforms, key=lambda name: (name != FALLBACK, name))
    platforms = [owner.name] if isinstance(owner, Platform) else names
    architectures = [owner] if isinstance(owner, Architecture) else catalog.architectures.values()
    if isinstance(owner, Platform):  # on any other the settings of onprem are taken
        architectures = [each for each in architectures if each.name in owner.hardware]
    for entry, platform, architecture in product(entries, platforms, architectures):
        if entry.architectures and architecture.name not in entry.architectures:
            continue
        for kind, scale in product(entry.workloads, entry.all_scales):
            applies = override.when.allows(
                platform=platform,
                architecture=architecture.name,
                kind=kind,
                scale=scale,
                entry=entry.name,
                measures=entry.measures,
                nodes=1_000_000,
                options=override.when.options,
            )
            if applies:
                yield entry, kind, scale, platform, architecture


def _plan(ground: Ground, override: Override, catalog: Catalog) -> WorkflowPlan:
    entry, kind, scale, platform, architecture = ground
    gpus = entry.gpus_per_node or architecture.gpus_per_node
    nodes = max(2, entry.needs.nodes, override.when.min_nodes or 1, -(-entry.needs.gpus // gpus))
    plan, _ = preview(
        entry,
        platform=platform,
        architecture=architecture,
        platforms=catalog.platforms,
        nodes=nodes,
        scripts=dict.fromkeys(entry.scripts, "pass"),
        kind=kind,
        scale=scale,
        options=override.when.options,
    )
    return plan


def _strange(plan: WorkflowPlan) -> Iterator[str]:
    """Yield what Kubernetes does not know of the pods of a plan, and what is of a wrong type."""
    for group in plan.groups[:1]:
        for template in all_templates(editable(group.manifests)):
            try:
                yield from decode("PodTemplateSpec", template).strays
            except DecodingError as problem:
                yield str(problem)
