"""Which limits a measurement is judged by."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pytest_cre.catalog.limit import Limit, Tier

TIER_ORDER: tuple[Tier, ...] = ("given", "site", "published", "physics", "simulated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unused:
    """Limits that would judge a group but for one thing."""

    other_sizes: tuple[Limit, ...] = ()  # at message sizes that the table has no row of
    of_real_nodes: tuple[Limit, ...] = ()  # which simulated nodes take only where that is asked


# Words of transport names in lower case; the first fabric that fits a name is taken.
_FABRIC_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("efa", ("efa", "libfabric", "ofi")),
    ("tcpxo", ("tcpx", "fastrak")),
    ("roce", ("roce", "gib")),
    ("socket", ("socket", "tcp")),
    ("infiniband", ("infiniband", "ib")),
)
_NVLINK_WORDS = ("nvls", "nvlink", "mnnvl", "p2p")


def applying_limits(
    limits: Sequence[Limit],
    *,
    entry: str,
    scale: str,
    nodes: int,
    architecture: str | None,
    fabric: str | None,
    is_simulated: bool,
    collective: str | None = None,
    sizes: Collection[int] | None = None,
) -> tuple[Limit, ...]:
    """Return the limits that apply to one group, sorted by metric, statistic, size, operator.

    `entry` is the entry's name, `collective` what it runs, `nodes` the group's node count, `fabric`
    one of `fabric_of`'s answers. `sizes` are the message sizes of a whole table: a limit at any
    other size is not for this run; None: not known, so that none is left out. With `is_simulated`
    limits of tier `simulated` are taken and no others, else all but those; what the run was told to
    demand (tier `given`) is taken always and wins. Of several limits on the same metric, statistic,
    category, size and operator the most specific one is taken: exact entry over a pattern, then a
    named collective, a named scale, closed node range, narrower node range, named fabric, named
    architecture; then tier site over published over physics; then the first given.
    """
    taken: dict[tuple[str, str, str, int, str, str], Limit] = {}
    for limit in limits:
        if limit.tier != "given" and (limit.tier == "simulated") != is_simulated:
            continue
        if not _covers(limit, entry, scale, nodes, architecture, fabric, collective):
            continue
        if sizes is not None and limit.statistic == "at-size" and limit.size_bytes not in sizes:
            continue
        key = (
            *(limit.metric, limit.statistic, limit.category or "", limit.size_bytes or 0),
            *(limit.operator, limit.expression),
        )
        if key not in taken or _specificity(limit) > _specificity(taken[key]):
            taken[key] = limit
    return tuple(taken[key] for key in sorted(taken))


def _covers(
    limit: Limit,
    entry: str,
    scale: str,
    nodes: int,
    architecture: str | None,
    fabric: str | None,
    collective: str | None,
) -> bool:
    return (
        fnmatchcase(entry, limit.entry)
        and limit.collective in (None, collective)
        and limit.scale in (None, scale)
        and limit.architecture in (None, architecture)
        and limit.fabric in (None, fabric)
        and (limit.min_nodes is None or nodes >= limit.min_nodes)
        and (limit.max_nodes is None or nodes <= limit.max_nodes)
    )


def _specificity(limit: Limit) -> tuple[float, ...]:
    ends = (limit.min_nodes, limit.max_nodes)
    is_closed = None not in ends
    span = (limit.max_nodes or 0) - (limit.min_nodes or 0) if is_closed else 0
    return (
        limit.tier == "given",
        not any(char in limit.entry for char in "*?["),
        limit.collective is not None,
        limit.scale is not None,
        sum(end is not None for end in ends),
        -span,
        limit.fabric is not None,
        limit.architecture is not None,
        -TIER_ORDER.index(limit.tier),
    )


def fabric_of(transport: Sequence[str]) -> str | None:
    """Return the fabric that NCCL's transport names tell, or None where they tell none.

    Answers: infiniband, roce, efa, tcpxo, socket, and nvlink where data moved between GPUs and
    over no network. Names of two networks tell none, for no limit fits a mixture.
    """
    fabrics = {fabric for name in transport if (fabric := _network(name)) is not None}
    if len(fabrics) == 1:
        return fabrics.pop()
    if not fabrics and any(_has_word(name, _NVLINK_WORDS) for name in transport):
        return "nvlink"
    return None


def _network(name: str) -> str | None:
    return next((fabric for fabric, words in _FABRIC_WORDS if _has_word(name, words)), None)


def _has_word(name: str, words: Sequence[str]) -> bool:
    """Return whether a part of the name is one of the words, or holds one of the longer ones."""
    parts = "".join(char if char.isalnum() else " " for char in name.lower()).split()
    return any(word == part or (len(word) > 3 and word in part) for word in words for part in parts)
