"""GPU architectures: how they are recognised and what they are judged by."""

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
