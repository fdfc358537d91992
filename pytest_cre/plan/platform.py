"""Which platform the nodes are of, and what that means for the pods and the fabric under test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_cre.catalog.architecture import Architecture
from pytest_cre.catalog.platform import (
    FALLBACK,
    RACK_LABEL,
    Platform,
    PlatformHardware,
    platforms_of,
    told_by,
)
from pytest_cre.errors import UsageProblem
from pytest_cre.evidence.model import PRODUCT_LABEL, NodeFacts
from pytest_cre.formats.choices import choices_words
from pytest_cre.plan.model import GroupPlan
from pytest_cre.plan.overrides import NO_FITTING, Fitting
from pytest_cre.plan.podsites import add_tolerations, rank_variables
from pytest_cre.plan.site import NO_SITE, Site
from pytest_cre.plan.taints import DEFAULT_TOLERATIONS
from pytest_cre.plan.wording import listed

RDMA = ("infiniband", "roce")
NVLINK = "nvlink"
# Extended resources that nodes with such a network allocate, by the beginning of their names.
_NETWORKS: Mapping[str, tuple[str, ...]] = {
    "vpc.amazonaws.com/efa": ("efa",),
    "nvidia.com/mlnxnics": RDMA,
    "rdma/": RDMA,
    "nscale.com/rdmashare": RDMA,
    "networking.gke.io.networks/rdma-": RDMA,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a run stands on: platform, hardware on it, and how pods are fitted to both.

    `platform` is the one that was recognised or named, `told_by` says by what; the settings are
    those of `settings_of`, which may be the fallback.
    """

    platform: str | None
    gpus_per_node: int | None  # None: as the nodes say
    nics_per_node: int
    network: tuple[str, ...]  # fabrics of which traffic between nodes must take one; empty: unknown
    rack_label: str
    has_rack_nvlink: bool
    fitting: Fitting
    warnings: tuple[str, ...] = ()
    told_by: str = ""
    settings_of: str | None = None

    def placed(self, plan: GroupPlan, nodes: Sequence[NodeFacts]) -> GroupPlan:
        """Return the plan with the fabrics that its nodes and its variables speak for."""
        members = [node for node in nodes if node.name in plan.group.nodes]
        fabrics = self.fabrics(members, rank_variables(plan.manifests))
        return replace(plan, platform=self.platform, fabrics=fabrics)

    def fabrics(self, nodes: Sequence[NodeFacts], env: Mapping[str, str]) -> tuple[str, ...]:
        """Return the fabrics of which the traffic of these nodes must take one; empty: any.

        Inside one NVLink domain of several nodes that is NVLink, unless `env` switches it off.
        """
        if len(nodes) < 2:
            return ()
        racks = {node.labels.get(self.rack_label) for node in nodes}
        is_one_rack = len(racks) == 1 and None not in racks
        if self.has_rack_nvlink and is_one_rack and env.get("NCCL_MNNVL_ENABLE") != "0":
            return (NVLINK,)
        return self.network


NO_GROUND = Ground(
    platform=None,
    gpus_per_node=None,
    nics_per_node=0,
    network=(),
    rack_label=RACK_LABEL,
    has_rack_nvlink=False,
    fitting=NO_FITTING,
)


def choose_platform(
    nodes: Sequence[NodeFacts], platforms: Mapping[str, Platform], asked: str | None = None
) -> str:
    """Return the platform of the nodes, or the one that was asked for.

    Raises `UsageProblem` for an unknown one and for nodes of several.
    """
    if asked is not None:
        if asked not in platforms:
            raise UsageProblem(f"unknown platform {asked!r}{choices_words(asked, platforms)}")
        return asked
    found = platforms_of(nodes, platforms)
    if len(found) > 1:
        words = ", ".join(f"{name} {count}" for name, count in found.items())
        raise UsageProblem(
            f"the GPU nodes are of several platforms ({words}); choose nodes of one with "
            "--cre-node-selector, or name one with --cre-platform"
        )
    return next(iter(found), FALLBACK)


def selection_tolerations(
    nodes: Sequence[NodeFacts],
    platforms: Mapping[str, Platform],
    asked: str | None = None,
    site: Site = NO_SITE,
) -> tuple[Mapping[str, str], ...]:
    """Return what pods on these nodes will tolerate, for nodes that are not selected yet."""
    names = [asked] if asked is not None else list(platforms_of(nodes, platforms))
    found: tuple[Mapping[str, str], ...] = DEFAULT_TOLERATIONS
    for name in (*names, FALLBACK):
        for override in platforms[name].overrides if name in platforms else ():
            found = add_tolerations(found, override.tolerations)
    return add_tolerations(found, site.tolerations)


def ground_of(
    platform: str,
    architecture: Architecture | None,
    platforms: Mapping[str, Platform],
    *,
    nodes: Sequence[NodeFacts] | None = None,
    was_asked: bool = False,
    site: Site = NO_SITE,
) -> Ground:
    """Return what a run on these nodes stands on; `nodes` None: they are not known.

    Where the platform has no settings for the architecture, those of `onprem` are taken, and a
    warning says so.
    """
    known = platforms.get(platform)
    taken, warnings = _settings(platform, architecture, platforms)
    if known is not None and known.warning and not was_asked:
        warnings = (known.warning, *warnings)
    if architecture is None and nodes:
        warnings = (_unknown_product_words(nodes), *warnings)
    hardware = known.on(_name(architecture)) if known is not None else PlatformHardware()
    nics = hardware.nics_per_node
    if nics is None:
        nics = architecture.nics_per_node if architecture is not None else 0
    gpus = hardware.gpus_per_node
    if gpus is None and architecture is not None:
        gpus = architecture.gpus_per_node
    fabric = site.fabric or hardware.fabric
    network: tuple[str, ...] = (fabric,) if fabric is not None else ()
    allocatable = None if nodes is None else _least(nodes)
    if not network and site.has_host_rdma:
        network = RDMA
    if not network and allocatable is not None:
        network = _network_of(allocatable)
    overrides = architecture.overrides if architecture is not None else ()
    return Ground(
        platform=platform,
        gpus_per_node=gpus,
        nics_per_node=nics,
        network=network,
        rack_label=hardware.rack_label or RACK_LABEL,
        has_rack_nvlink=architecture is not None and architecture.has_rack_nvlink,
        fitting=Fitting(
            platform=platform,
            architecture=_name(architecture),
            overrides=(*overrides, *(taken.overrides if taken is not None else ())),
            nics_per_node=nics,
            nics=allocatable,
            site=site,
        ),
        warnings=warnings,
        told_by=_told_by(nodes, platforms, was_asked=was_asked),
        settings_of=taken.name if taken is not None else None,
    )


def _unknown_product_words(nodes: Sequence[NodeFacts]) -> str:
    products = sorted({node.gpu_product for node in nodes if node.gpu_product is not None})
    if not products:
        return f"no node has the label {PRODUCT_LABEL}; name the architecture with --cre-arch"
    return (
        f"{PRODUCT_LABEL} is {listed([repr(each) for each in products])}, which no productLabels has; "
        "mend the label, or add it to an architecture of --cre-profiles"
    )


def _told_by(
    nodes: Sequence[NodeFacts] | None, platforms: Mapping[str, Platform], *, was_asked: bool
) -> str:
    if was_asked:
        return "--cre-platform"
    return told_by(nodes[0], platforms) if nodes else "no node"


def _settings(
    platform: str, architecture: Architecture | None, platforms: Mapping[str, Platform]
) -> tuple[Platform | None, tuple[str, ...]]:
    """Return the platform whose overrides are taken, and what to say where that is another one."""
    known, name = platforms.get(platform), _name(architecture)
    if known is not None and name in known.hardware:
        return known, ()
    fallback = platforms.get(FALLBACK)
    subject = name or "an unknown GPU architecture"
    has = ", ".join(known.hardware) if known is not None else "nothing"
    if platform == FALLBACK or fallback is None:
        return known, (
            f"platform {platform} has no settings for {subject} (it knows {has}); "
            "pods ask for no NICs and set no variables of a network",
        )
    return fallback, (
        f"platform {platform} has no settings for {subject} (it knows {has}); "
        f"those of {FALLBACK} are taken",
    )


def _name(architecture: Architecture | None) -> str | None:
    return architecture.name if architecture is not None else None


def _least(nodes: Sequence[NodeFacts]) -> dict[str, int]:
    """Return the extended resources that every node allocates, each with the least of them."""
    if not nodes:
        return {}
    names = set.intersection(*(set(node.resources) for node in nodes))
    return {name: min(node.resources[name] for node in nodes) for name in sorted(names)}


def _network_of(resources: Mapping[str, int]) -> tuple[str, ...]:
    found = {
        fabrics
        for name, count in resources.items()
        for start, fabrics in _NETWORKS.items()
        if count > 0 and name.startswith(start)
    }
    return found.pop() if len(found) == 1 else ()
