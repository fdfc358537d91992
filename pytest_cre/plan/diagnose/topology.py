"""Where nodes stand: their domains, an order in which neighbours are neighbours, and halves."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from pytest_cre.evidence.model import DiagnosisSetup, NodeFacts

UNLABELLED = "unlabelled"
_DIGITS = re.compile(r"([0-9]+)")


def natural(name: str) -> tuple[object, ...]:
    """Return what sorts `node-2` before `node-10`."""
    parts = _DIGITS.split(name)
    return (*(int(part) if index % 2 else part for index, part in enumerate(parts)), name)


def diagnosis_setup(
    nodes: Sequence[NodeFacts],
    *,
    rack_label: str,
    has_rack_nvlink: bool,
    can_switch_nvlink: bool,
    may_run_alone: bool,
    min_group_size: int = 2,
) -> DiagnosisSetup:
    """Return what a diagnosis begins with.

    The domain of a node is the value of `rack_label`; nodes without it are taken in the order of
    their names, in even chunks of about the square root of their number, at least two.
    """
    domains = {node.name: node.labels[rack_label] for node in nodes if node.labels.get(rack_label)}
    racks = sorted(set(domains.values()), key=natural)
    rest = sorted((node.name for node in nodes if node.name not in domains), key=natural)
    for index, chunk in enumerate(_chunks(rest)):
        domains |= dict.fromkeys(chunk, _free_name(f"{UNLABELLED}-{index}", racks))
    return DiagnosisSetup(
        domains={name: domains[name] for name in sorted(domains, key=natural)},
        nvlink_domains=tuple(racks) if has_rack_nvlink else (),
        can_switch_nvlink=can_switch_nvlink and has_rack_nvlink and bool(racks),
        may_run_alone=may_run_alone,
        min_group_size=min_group_size,
    )


def members_of(domains: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each domain, both in natural order."""
    found: dict[str, list[str]] = {}
    for node in sorted(domains, key=natural):
        found.setdefault(domains[node], []).append(node)
    return {domain: tuple(found[domain]) for domain in sorted(found, key=natural)}


def halves(
    nodes: Sequence[str], domains: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two halves, divided where a domain ends if that is near the middle, else by name."""
    ordered = in_order(nodes, domains)
    middle = -(-len(ordered) // 2)
    ends = [
        index
        for index in range(1, len(ordered))
        if domains[ordered[index - 1]] != domains[ordered[index]]
        and len(ordered) <= 4 * index <= 3 * len(ordered)
    ]
    cut = min(ends, key=lambda index: (abs(index - middle), index), default=middle)
    return ordered[:cut], ordered[cut:]


def in_order(nodes: Sequence[str], domains: Mapping[str, str]) -> tuple[str, ...]:
    """Return nodes by domain, then by name."""
    return tuple(sorted(nodes, key=lambda node: (natural(domains[node]), natural(node))))


def _chunks(names: Sequence[str]) -> list[Sequence[str]]:
    if not names:
        return []
    size = max(2, math.isqrt(len(names) - 1) + 1)  # the square root, rounded up
    count = max(1, min(-(-len(names) // size), len(names) // 2))
    cuts = [len(names) * index // count for index in range(count + 1)]
    return [names[start:end] for start, end in pairwise(cuts)]


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "x"
    return name
