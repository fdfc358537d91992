"""What an entry needs of the cluster besides GPUs: NICs, devices, ComputeDomains, a DCGM engine."""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from pytest_cre.catalog.entry import CatalogEntry, WorkloadKind
from pytest_cre.catalog.override import AUTO
from pytest_cre.errors import NotApplicable, UnmetNeed
from pytest_cre.evidence.model import NodeFacts
from pytest_cre.formats.quantity import parse_quantity
from pytest_cre.plan.model import GroupPlan
from pytest_cre.plan.platform import Ground
from pytest_cre.plan.podedits import MLNX_NICS, NETWORKS_ANNOTATION, Nics
from pytest_cre.plan.podsites import (
    GPU_RESOURCE,
    Json,
    Manifest,
    containers_of,
    pod_templates,
)
from pytest_cre.plan.wording import listed

SIMULATED_NICS = "cre.pytest.org/nics"  # allocatable on simulated nodes, and never asked for
COMPUTE_DOMAIN, CLAIM_TEMPLATE = "ComputeDomain", "ResourceClaimTemplate"
DCGM_HOST = "dcgmHost"
_SERVICE = re.compile(r"([a-z0-9][-a-z0-9]*)\.([a-z0-9][-a-z0-9]*)\.svc(?:\.[-.a-z0-9]+)?(?::\d+)?")
_SHOWN = 3


class Provisions(Protocol):
    """What the cluster says of itself. None: it does not tell, so nothing is missed."""

    def serves(self, kind: str) -> bool:
        """Return whether the cluster serves a kind that overrides create."""

    def domain_nodes(self) -> frozenset[str] | None:
        """Return the nodes on which the driver of ComputeDomains offers devices."""

    def has_service(self, namespace: str, name: str) -> bool | None:
        """Return whether there is a Service of this name."""


def check_provisions(
    entry: CatalogEntry,
    scale: str,
    kind: WorkloadKind,
    groups: Sequence[GroupPlan],
    nodes: Sequence[NodeFacts],
    *,
    ground: Ground,
    options: Mapping[str, str],
    offered: Provisions,
) -> None:
    """Raise `UnmetNeed` for the first thing that the rendered groups need and the cluster lacks.

    The line names the need, what was found and what to do. `NotApplicable` where nodes of this
    kind are made without it.
    """
    for group in groups:
        members = [node for node in nodes if node.name in group.group.nodes]
        if _needs_nics(entry, len(members)):
            _check_nics(entry, scale, kind, members, ground, options)
        _check_resources(entry, group, members)
        _check_domain(entry, group, members, offered)
    is_simulated = all(node.is_simulated for node in nodes)  # their DCGM has no Service
    if "dcgm" in entry.needs.cluster and not is_simulated:
        _check_dcgm(entry, options.get(DCGM_HOST, ""), offered)


def _needs_nics(entry: CatalogEntry, nodes: int) -> bool:
    """Return whether data leaves the node: between nodes, or because the entry is about its NICs."""
    return "nics" in entry.needs.cluster and (nodes > 1 or _is_about_nics(entry))


def _is_about_nics(entry: CatalogEntry) -> bool:
    """Return whether an entry that never leaves a node needs NICs all the same."""
    return "nics" in entry.needs.cluster and entry.all_scales == ("intra-node",)


def _check_nics(
    entry: CatalogEntry,
    scale: str,
    kind: WorkloadKind,
    nodes: Sequence[NodeFacts],
    ground: Ground,
    options: Mapping[str, str],
) -> None:
    fitting = ground.fitting
    if fitting.site.asks_for_no_nics:
        return  # whether a node has such devices shows when its pod starts
    matching = fitting.matching(entry, kind=kind, scale=scale, nodes=len(nodes), options=options)
    wanted = next((each.nic_resource for each in matching if each.nic_resource), None)
    if all(node.is_simulated for node in nodes):
        wanted = None if NETWORKS_ANNOTATION in fitting.site.annotations else SIMULATED_NICS
    elif fitting.site.nic_resource is not None:
        wanted = fitting.site.nic_resource
    # Without a resource to ask for they come by networks or claims, which are looked at themselves.
    missed = _missed_nics(wanted, nodes, ground) if wanted is not None else None
    if missed is None and (wanted is not None or ground.nics_per_node):
        return
    if ground.nics_per_node == 0:
        # A fast network that is there all the same is reached without asking for NICs.
        if _is_about_nics(entry) and ground.network in ((), ("socket",)):
            raise NotApplicable(f"{entry.name} tests NICs, and these nodes are made without")
        return
    remedy = (
        "install its device plugin, or say in --cre-site how pods reach them: nicResource, networks as "
        "annotation, or rdmaDeviceAccess: hostPath"
    )
    if wanted == SIMULATED_NICS:
        remedy = (
            "give the scenario's hardware nics, or say rdmaDeviceAccess: hostPath in --cre-site"
        )
    raise UnmetNeed(f"{entry.name} needs {missed}; {remedy}")


def _missed_nics(wanted: str, nodes: Sequence[NodeFacts], ground: Ground) -> str | None:
    """Return which NICs the nodes should have, and what they have; None where they have them."""
    if wanted != AUTO:
        lacking = [node.name for node in nodes if not node.resources.get(wanted)]
        where = f"{wanted} is not allocatable on {_names(lacking, len(nodes))}"
        return f"NICs on each node: {where}" if lacking else None
    fitting = ground.fitting
    nics = Nics(per_node=ground.nics_per_node, allocatable=fitting.nics)
    if nics.resource(AUTO) is not None or NETWORKS_ANNOTATION in fitting.site.annotations:
        return None
    found = [
        f"{count} of {name}"
        for name, count in sorted((fitting.nics or {}).items())
        if name.startswith("rdma/") or name == MLNX_NICS
    ]
    has = f"no rdma/* and no {MLNX_NICS} is allocatable on every node"
    if found:
        has = f"every node allocates {listed(found, _SHOWN)}"
    return f"NICs, one resource with {max(1, ground.nics_per_node)} of them on each node: {has}"


def _check_resources(entry: CatalogEntry, group: GroupPlan, nodes: Sequence[NodeFacts]) -> None:
    """Compare the devices that pods ask for with those that their nodes allocate."""
    for manifest in group.manifests:
        for container in _containers(manifest):
            limits = (container.get("resources") or {}).get("limits") or {}
            for name, amount in sorted(limits.items()):
                if "/" not in name or name == GPU_RESOURCE:
                    continue
                wanted = int(parse_quantity(str(amount)))
                lacking = [each.name for each in nodes if each.resources.get(name, 0) < wanted]
                if lacking:
                    raise UnmetNeed(
                        f"{entry.name} needs {wanted} of {name} on each node: not allocatable on "
                        f"{_names(lacking, len(nodes))}; install its device plugin, or leave these "
                        "nodes out with --cre-node-selector"
                    )


def _containers(manifest: Manifest) -> list[Json]:
    templates = pod_templates(cast("Json", manifest))
    return [each for template in templates for each in containers_of(template)]


def _check_domain(
    entry: CatalogEntry, group: GroupPlan, nodes: Sequence[NodeFacts], offered: Provisions
) -> None:
    kinds = {str(manifest.get("kind")) for manifest in group.manifests}
    is_declared = "computeDomain" in entry.needs.cluster
    if CLAIM_TEMPLATE in kinds and not offered.serves(CLAIM_TEMPLATE):
        raise UnmetNeed(
            f"{entry.name} needs devices by claim: the cluster does not serve {CLAIM_TEMPLATE} of "
            "resource.k8s.io/v1; it takes Kubernetes 1.34 or newer"
        )
    if COMPUTE_DOMAIN not in kinds and not is_declared:
        return
    need = f"{entry.name} needs a {COMPUTE_DOMAIN}, for NVLink between nodes"
    remedy = "install NVIDIA's DRA driver for GPUs, with compute domains"
    if not offered.serves(COMPUTE_DOMAIN):
        raise UnmetNeed(
            f"{need}: the cluster does not serve {COMPUTE_DOMAIN} of resource.nvidia.com/v1beta1; "
            f"{remedy}"
        )
    has_driver = offered.domain_nodes()
    lacking = [
        each.name for each in nodes if has_driver is not None and each.name not in has_driver
    ]
    if lacking:
        raise UnmetNeed(
            f"{need}: no ResourceSlice of compute-domain.nvidia.com is for "
            f"{_names(lacking, len(nodes))}; {remedy}, on every node"
        )


def _check_dcgm(entry: CatalogEntry, host: str, offered: Provisions) -> None:
    service = _SERVICE.fullmatch(host)
    if service is None or offered.has_service(service[2], service[1]) is not False:
        return
    raise UnmetNeed(
        f"{entry.name} needs a DCGM host engine: namespace {service[2]} has no Service {service[1]}; "
        f"enable dcgm in the GPU Operator, or name an engine with --cre-option {DCGM_HOST}=HOST:PORT"
    )


def _names(lacking: Sequence[str], nodes: int) -> str:
    if len(lacking) == nodes and nodes > 1:
        return f"any of the {nodes} nodes"
    return listed(list(lacking), _SHOWN)
