"""What an entry needs of a group of nodes, by its numbers."""

from collections.abc import Mapping, Sequence
from math import prod

from pytest_cre.catalog.entry import CatalogEntry
from pytest_cre.catalog.platform import RACK_LABEL
from pytest_cre.errors import UnmetNeed, UsageProblem
from pytest_cre.evidence.model import NodeFacts
from pytest_cre.plan.grouping import group_nodes
from pytest_cre.plan.model import NodeGroup


def fitting_groups(
    entry: CatalogEntry,
    nodes: Sequence[NodeFacts],
    scale: str,
    *,
    nodes_per_group: int | None,
    gpus_per_node: int,
    options: Mapping[str, str],
    rack_label: str = RACK_LABEL,
) -> tuple[NodeGroup, ...]:
    """Return groups that cover every node, each of which the entry can run on.

    At `full-scale`, unless told otherwise, a group has the most nodes that the entry can use; where
    that leaves a remainder, a second group takes it and borrows the rest. Raises `UnmetNeed` where
    the nodes cannot form what the entry needs, and `UsageProblem` for an unknown scale.
    """
    if scale == "full-scale" and nodes_per_group is None and nodes:
        most = largest_group(entry, nodes=len(nodes), gpus_per_node=gpus_per_node, options=options)
        nodes_per_group = most if most < len(nodes) else None
    groups = group_nodes(nodes, scale, nodes_per_group=nodes_per_group, rack_label=rack_label)
    for group in groups:
        words = unmet_words(
            entry, nodes=len(group.nodes), gpus_per_node=gpus_per_node, options=options
        )
        if words is not None:
            raise UnmetNeed(words)
    return groups


def unmet_words(
    entry: CatalogEntry, *, nodes: int, gpus_per_node: int, options: Mapping[str, str]
) -> str | None:
    """Return what a group of so many nodes lacks, or None where the entry can run on it."""
    needs, gpus = entry.needs, nodes * gpus_per_node
    has = f"{nodes} x {gpus_per_node} GPUs"
    if nodes < needs.nodes:
        return f"{entry.name} needs groups of at least {needs.nodes} nodes, this one has {nodes}"
    if gpus < needs.gpus:
        least = -(-needs.gpus // gpus_per_node)
        return (
            f"{entry.name} needs at least {needs.gpus} GPUs, {least} nodes with {gpus_per_node}; "
            f"a group has {has}"
        )
    sizes = {name: _size(entry, options, name) for name in needs.model_parallel}
    model = prod(sizes.values())
    if gpus % model:
        named = " x ".join(f"{name} {size}" for name, size in sizes.items())
        return f"{entry.name} needs a multiple of {model} GPUs ({named}); a group has {has}"
    if needs.expert_parallel is None:
        return None
    experts, data = _size(entry, options, needs.expert_parallel), gpus // model
    if data % experts:
        return (
            f"{entry.name} needs a data-parallel size that is a multiple of "
            f"{needs.expert_parallel} {experts}; {has} give {data}"
        )
    return None


def largest_group(
    entry: CatalogEntry, *, nodes: int, gpus_per_node: int, options: Mapping[str, str]
) -> int:
    """Return the most of these nodes that can form one group; raises `UnmetNeed` where none can.

    What is wrong with all of them together is told.
    """
    for count in range(nodes, 0, -1):
        if unmet_words(entry, nodes=count, gpus_per_node=gpus_per_node, options=options) is None:
            return count
    words = unmet_words(entry, nodes=nodes, gpus_per_node=gpus_per_node, options=options)
    raise UnmetNeed(words or f"{entry.name} runs on no number of these {nodes} nodes")


def _size(entry: CatalogEntry, options: Mapping[str, str], name: str) -> int:
    text = options[name]
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        raise UsageProblem(
            f"option {name!r} of {entry.name} must be a whole number of at least 1, got {text!a}"
        )
    return int(text)
