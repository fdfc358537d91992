"""How much bus bandwidth links allow: bounds of physics, in GB/s."""

from pytest_cre.catalog.architecture import Architecture

TOLERANCE = 1.02  # clocks and rounding
SHARING = ("all_reduce", "all_gather", "reduce_scatter")


def busbw_bound(
    architecture: Architecture,
    collective: str,
    *,
    ranks: int,
    domains: int,
    may_reduce_on_nvlink: bool,
    may_reduce_in_network: bool,
) -> float | None:
    """Return the highest bus bandwidth in GB/s, or None where the rates are not known.

    Bus bandwidth counts 2(n-1)/n of a message for all-reduce and (n-1)/n for the others that
    share it. A ring moves just that over each link. A switch that reduces (NVLS, SHARP) moves a
    message once each way, so that all-reduce may show up to 2(n-1)/n of the link. Across k NVLink
    domains of n/k GPUs, hierarchical algorithms move (k-1)/(n-1) of it over each GPU's network.
    """
    link, network = architecture.link_gbs, architecture.network_gbs
    if link is None or network is None or ranks < 2:
        return None
    twice = 2 * (ranks - 1) / ranks
    is_all_reduce = collective == "all_reduce"
    bound = link * (twice if is_all_reduce and may_reduce_on_nvlink else 1)
    if domains > 1:
        largest = ranks / domains
        if collective == "alltoall":
            crossing = network * (ranks - 1) / (ranks - largest)
        elif collective in SHARING:
            crossing = network * (ranks - 1) / (domains - 1)
            if is_all_reduce and may_reduce_in_network:
                crossing = max(crossing, twice * largest * network)
        else:
            crossing = network * largest  # one domain's whole network at most
        bound = min(bound, crossing)
    return bound * TOLERANCE
