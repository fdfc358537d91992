"""Whether an entry is for the hardware at hand at all; where it is not, nothing is missing."""

from collections.abc import Mapping, Sequence

from pytest_cre.catalog.architecture import Architecture
from pytest_cre.catalog.entry import CatalogEntry
from pytest_cre.errors import NotApplicable, UnmetNeed
from pytest_cre.evidence.model import Exclusion, NodeFacts
from pytest_cre.plan.needs import unmet_words
from pytest_cre.plan.wording import listed

# Nodes that the run was never to use. All others could come back, and what they lack is unmet.
_ELSEWHERE = ("unselected", "minority-architecture")


def check_applies(
    entry: CatalogEntry,
    scale: str,
    architecture: Architecture | None,
    *,
    nodes: Sequence[NodeFacts],
    excluded: Sequence[Exclusion],
    gpus_per_node: int,
    options: Mapping[str, str],
    rack_label: str,
) -> None:
    """Raise `NotApplicable` where no state of these nodes would let the entry run on them.

    `excluded` nodes count as if they were well: too few nodes for now are an unmet need. Where an
    entry is for some architectures and the nodes tell none, that is one, too.
    """
    if entry.architectures and architecture is None:
        raise UnmetNeed(
            f"{entry.name} is for {listed(entry.architectures)}, and nothing tells what these nodes "
            "are; name it with --cre-arch"
        )
    if architecture is not None:
        name = architecture.name
        if entry.architectures and name not in entry.architectures:
            raise NotApplicable(
                f"{entry.name} is for {listed(entry.architectures)}; these nodes are {name}"
            )
        if entry.needs.has_nvlink and architecture.domain_gpus < 2:
            raise NotApplicable(
                f"{entry.name} needs NVLink between the GPUs of a node, which {name} has not"
            )
        is_racked = any(node.labels.get(rack_label) for node in nodes)
        if scale == "intra-rack" and not architecture.has_rack_nvlink and not is_racked:
            raise NotApplicable(
                f"scale intra-rack needs nodes that NVLink joins, which {name} has not, or the node "
                f"label {rack_label}, which none has"
            )
    there = len(nodes) + sum(each.reason not in _ELSEWHERE for each in excluded)
    if there < entry.needs.nodes or there * gpus_per_node < entry.needs.gpus:
        words = unmet_words(entry, nodes=there, gpus_per_node=gpus_per_node, options=options)
        raise NotApplicable(f"{words}, which is all there are")
