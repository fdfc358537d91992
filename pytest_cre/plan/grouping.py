"""Nodes to groups: which nodes run one Job together."""

from collections.abc import Sequence

from pytest_cre.catalog.entry import DIAGNOSE
from pytest_cre.catalog.platform import RACK_LABEL
from pytest_cre.errors import UnmetNeed, UsageProblem
from pytest_cre.evidence.model import NodeFacts
from pytest_cre.plan.model import NodeGroup
from pytest_cre.plan.scales import nodes_per_group_of
from pytest_cre.plan.wording import listed


def group_nodes(
    nodes: Sequence[NodeFacts],
    scale: str,
    *,
    nodes_per_group: int | None = None,
    rack_label: str = RACK_LABEL,
) -> tuple[NodeGroup, ...]:
    """Return groups that together cover every node, whatever the order of `nodes`.

    - `full-scale`: one group, or groups of exactly `nodes_per_group`.
    - `intra-node`: one group per node.
    - `intra-rack`: one group per value of the label `rack_label`, never across.
    - a number such as `16`: groups of exactly that many nodes.

    Where an exact number leaves a remainder, a last group `group-<n>-overflow` takes the remaining
    nodes and borrows the rest from the end of the last full group, so these two share nodes.
    Raises `UsageProblem` for an unknown scale and `diagnose`, and `UnmetNeed` where the nodes cannot form it.
    """
    size = nodes_per_group_of(scale, nodes_per_group)
    if scale == DIAGNOSE:
        raise UsageProblem("a diagnosis plans its own groups, round by round")
    by_name = sorted(nodes, key=lambda node: node.name)
    if not by_name:
        return ()
    if scale == "intra-rack":
        return _racks(by_name, rack_label)
    names = [node.name for node in by_name]
    return _chunks(names, len(names) if size is None else size)


def _racks(nodes: Sequence[NodeFacts], label: str) -> tuple[NodeGroup, ...]:
    """Return one group per clique, the largest first, then by the clique's name."""
    unlabelled = [node.name for node in nodes if not node.labels.get(label)]
    if unlabelled:
        raise UnmetNeed(f"intra-rack needs the node label {label}, missing on {listed(unlabelled)}")
    racks: dict[str, list[str]] = {}
    for node in nodes:
        racks.setdefault(node.labels[label], []).append(node.name)
    ordered = sorted(racks.items(), key=lambda rack: (-len(rack[1]), rack[0]))
    return tuple(
        NodeGroup(name=f"group-{index}", nodes=tuple(names))
        for index, (_, names) in enumerate(ordered)
    )


def _chunks(names: Sequence[str], size: int) -> tuple[NodeGroup, ...]:
    if len(names) < size:
        raise UnmetNeed(f"a group needs {size} nodes, {len(names)} can be used: {listed(names)}")
    full, remainder = divmod(len(names), size)
    groups = [
        NodeGroup(name=f"group-{index}", nodes=tuple(names[index * size : (index + 1) * size]))
        for index in range(full)
    ]
    if remainder:
        # The last nodes of the last full group are the ones right before the remainder.
        groups.append(NodeGroup(name=f"group-{full}-overflow", nodes=tuple(names[-size:])))
    return tuple(groups)
