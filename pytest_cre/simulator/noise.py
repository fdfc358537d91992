"""Noise that depends on nothing but its key, so that the same run gives the same numbers."""

import math
from hashlib import blake2b

_LARGEST_SIGMAS = 3.0  # an outlier is a fault's business, not noise's


def unit(*key: object) -> float:
    """Return a number in [0, 1) for a key."""
    digest = blake2b("\x1f".join(map(str, key)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def gauss(*key: object) -> float:
    """Return a normal number of mean 0 and deviation 1 for a key, cut at three deviations."""
    radius = math.sqrt(-2.0 * math.log(1.0 - unit(*key, "radius")))
    value = radius * math.cos(2.0 * math.pi * unit(*key, "angle"))
    return max(-_LARGEST_SIGMAS, min(_LARGEST_SIGMAS, value))
