"""Single GPUs of a simulated node: their identity, and which of them are gone."""

from hashlib import blake2b
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from pytest_cre.simulator.world import ContainerRun


def gpu_uuid(node: str, gpu: int) -> str:
    """Return the UUID of a GPU, the same in every run."""
    digest = blake2b(f"gpu\x1f{node}\x1f{gpu}".encode(), digest_size=16).digest()
    return f"GPU-{UUID(bytes=digest, version=4)}"


def gpu_serial(node: str, gpu: int) -> str:
    """Return the serial number of a GPU, the same in every run."""
    digest = blake2b(f"serial\x1f{node}\x1f{gpu}".encode(), digest_size=5).digest()
    return f"{int.from_bytes(digest, 'big') % 10**13:013d}"


def lost_gpus(run: "ContainerRun") -> frozenset[int]:
    """Return the numbers of the GPUs that the node's driver no longer sees."""
    return frozenset(fault.gpu for fault in run.holding("lost-gpu") if fault.gpu is not None)
