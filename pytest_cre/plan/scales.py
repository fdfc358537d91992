"""Test scales: how many nodes form one group."""

from typing import Literal

from pytest_cre.errors import UsageProblem

NamedScale = Literal["full-scale", "intra-node", "intra-rack", "diagnose"]
NAMED_SCALES: tuple[NamedScale, ...] = ("full-scale", "intra-node", "intra-rack", "diagnose")


def nodes_per_group_of(scale: str, nodes_per_group: int | None = None) -> int | None:
    """Return the exact number of nodes that a scale asks for, or None for all there are.

    A scale is one of the names, or a whole number of nodes such as `16`. `nodes_per_group` gives
    the number for `full-scale`. Raises `UsageProblem`.
    """
    if nodes_per_group is not None and nodes_per_group < 1:
        raise UsageProblem(f"nodes per group must be at least 1, got {nodes_per_group}")
    if scale.isascii() and scale.isdecimal() and len(scale) < 10 and int(scale) >= 1:
        return int(scale)
    if scale not in NAMED_SCALES:
        raise UsageProblem(
            f"unknown scale {scale!r}; choices: {', '.join(NAMED_SCALES)}, or a number of nodes"
        )
    return {"full-scale": nodes_per_group, "intra-node": 1}.get(scale)
