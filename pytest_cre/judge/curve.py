"""The shape of bandwidth over message size: plateau, dips, latency of small messages."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from statistics import median

from pytest_cre.measure.model import BandwidthMeasurement, BandwidthRow, HalfRow

PLATEAU_SPAN = 8  # sizes down to this part of the largest belong to the plateau
# Below it NCCL changes protocol and algorithm from size to size, and healthy curves dip, too.
DIP_FROM_BYTES = 64 * 1024**2


def plateau(by_size: Mapping[int, float]) -> float | None:
    """Return the median over the largest sizes, those within a factor of eight; None without any."""
    largest = max(by_size, default=0)
    values = [value for size, value in by_size.items() if size * PLATEAU_SPAN >= largest]
    return median(values) if values else None


def largest_dip(by_size: Mapping[int, float]) -> tuple[float, int] | None:
    """Return the largest drop from a size to the next one, as a part of it, and where it ends.

    Only sizes from 64 MiB on count. A curve that never falls has a dip of 0; None with fewer than
    two sizes.
    """
    sizes = [size for size in sorted(by_size) if size >= DIP_FROM_BYTES]
    drops = [
        (1 - by_size[size] / by_size[before], size)
        for before, size in pairwise(sizes)
        if by_size[before] > 0
    ]
    if not drops:
        return None
    drop, size = max(drops)
    return max(0.0, drop), size


def latency_by_size(bandwidth: BandwidthMeasurement) -> dict[int, float]:
    """Return the time of one operation in microseconds by size; the slower half of a row counts."""
    return _worst_by_size(bandwidth, lambda half: half.time_us, max)


def algbw_by_size(bandwidth: BandwidthMeasurement) -> dict[int, float]:
    """Return the judged algorithm bandwidth in GB/s by size; the slower half of a row counts."""
    return _worst_by_size(bandwidth, lambda half: half.algbw_gbs, min)


def _worst_by_size(
    bandwidth: BandwidthMeasurement,
    of: Callable[[HalfRow], float | None],
    worst: Callable[[float, float], float],
) -> dict[int, float]:
    found: dict[int, float] = {}
    for row in (row for table in bandwidth.tables for row in table.rows):
        for value in _halves(row, of):
            known = found.get(row.size_bytes)
            found[row.size_bytes] = value if known is None else worst(known, value)
    return dict(sorted(found.items()))


def _halves(row: BandwidthRow, of: Callable[[HalfRow], float | None]) -> Iterator[float]:
    for half in (row.out_of_place, row.in_place):
        value = of(half) if half is not None else None
        if value is not None:
            yield value
