"""GPU architectures: how they are recognised and what they are judged by."""

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_cre.catalog.limit import Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A GPU architecture, recognised by the label `nvidia.com/gpu.product` of its nodes."""

    name: str
    product_labels: tuple[str, ...]
    gpus_per_node: int
    nics_per_node: int
    limits: tuple[Limit, ...] = ()
    place: str = ""


def architecture_of(
    product_label: str | None, architectures: Mapping[str, Architecture]
) -> str | None:
    """Return the name of the architecture that has this product label, or None."""
    for name, architecture in sorted(architectures.items()):
        if product_label in architecture.product_labels:
            return name
    return None
