"""What a diagnosis of an entry has to work with on these nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_cre.catalog.entry import DIAGNOSE, CatalogEntry, WorkloadKind
from pytest_cre.catalog.override import Override, When
from pytest_cre.errors import UnmetNeed
from pytest_cre.evidence.model import DiagnosisSetup, NodeFacts
from pytest_cre.plan.diagnose.topology import diagnosis_setup
from pytest_cre.plan.needs import unmet_words
from pytest_cre.plan.platform import Ground

MNNVL = "NCCL_MNNVL_ENABLE"
_OFF = Override(name="nvlink-between-nodes-off", when=When(), env={MNNVL: "0"}, place="diagnosis")


def without_nvlink(entry: CatalogEntry) -> CatalogEntry:
    """Return the entry with NVLink between nodes switched off, whatever else sets it."""
    return replace(entry, overrides=(*entry.overrides, _OFF))


def setup_on(
    entry: CatalogEntry,
    nodes: Sequence[NodeFacts],
    ground: Ground,
    *,
    kind: WorkloadKind,
    gpus_per_node: int,
    options: Mapping[str, str],
    min_group_size: int,
) -> DiagnosisSetup:
    """Return what a diagnosis begins with; raises `UnmetNeed` where there is nothing to compare.

    NVLink is not switched off where a limit was given to the run: one number cannot judge both.
    """
    if len(nodes) < 2:
        raise UnmetNeed(
            f"scale {DIAGNOSE} compares nodes and needs 2 at least, there is {len(nodes)}"
        )
    lacking = unmet_words(entry, nodes=2, gpus_per_node=gpus_per_node, options=options)
    if lacking is not None:
        raise UnmetNeed(f"scale {DIAGNOSE} tests pairs of nodes, but {lacking}")
    alone = unmet_words(entry, nodes=1, gpus_per_node=gpus_per_node, options=options)
    env: dict[str, str | None] = {**entry.env}
    for override in ground.fitting.matching(
        entry, kind=kind, scale=DIAGNOSE, nodes=2, options=options
    ):
        env |= override.env
    has_nvlink = ground.has_rack_nvlink and env.get(MNNVL) != "0"
    is_told = any(
        limit.tier == "given" and limit.scale in (None, DIAGNOSE) for limit in entry.limits
    )
    return diagnosis_setup(
        nodes,
        rack_label=ground.rack_label,
        has_rack_nvlink=has_nvlink,
        can_switch_nvlink=has_nvlink and not is_told,
        # One GPU alone exchanges data with nobody.
        may_run_alone=alone is None and gpus_per_node > 1,
        min_group_size=min_group_size,
    )
