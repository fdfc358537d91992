"""Nodes whose GPUs somebody else has."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_cre.evidence.model import Exclusion, GpuHolder, NodeFacts
from pytest_cre.plan.model import Selection


def busy_words(node: NodeFacts, holders: Sequence[GpuHolder]) -> str | None:
    """Return who holds how many of a node's GPUs; None where nobody does.

    The first by name is named, and what to do where it is a pod of a run of ours.
    """
    if not holders:
        return None
    first, *others = sorted(holders, key=lambda each: each.pod)
    words = f"{sum(each.gpus for each in holders)} of {node.gpus_allocatable} GPUs in use by {first.pod}"
    if others:
        words += f" and {len(others)} other pod{'s' if len(others) > 1 else ''}"
    run_id = next((each.run_id for each in (first, *others) if each.run_id), None)
    if run_id is not None:
        words += f"; left by run {run_id}, if that has ended: pytest-cre cleanup --run {run_id}"
    return words


def without_busy(selection: Selection, held: Mapping[str, Sequence[GpuHolder]]) -> Selection:
    """Return the selection without the nodes that somebody holds GPUs of."""
    words = {node.name: busy_words(node, held.get(node.name, ())) for node in selection.nodes}
    busy = [
        Exclusion(node=name, reason="busy", message=message)
        for name, message in words.items()
        if message is not None
    ]
    return replace(
        selection,
        nodes=tuple(node for node in selection.nodes if words[node.name] is None),
        excluded=tuple(sorted((*selection.excluded, *busy), key=lambda each: each.node)),
    )
