"""GPU architectures: how they are recognised, what they can do and what they are judged by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pytest_cre.catalog.limit import Limit
from pytest_cre.catalog.override import Override

Precision = Literal["fp64", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp64", "tf32", "bf16", "fp16", "fp8", "fp4", "int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The highest rate of one GPU at one precision, dense, with its source."""

    tflops: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A GPU architecture, recognised by the product name of its nodes' GPUs.

    `domain_gpus` is how many GPUs NVLink joins, 1 where there is none. `link_gbs` is what one GPU
    sends over NVLink, or over PCIe without it, `network_gbs` what it sends over its share of the
    node's NICs in the fastest system that is sold; both are line rates in one direction and bound
    what can be measured. None: not known.
    """

    name: str
    product_labels: tuple[str, ...]
    gpus_per_node: int
    nics_per_node: int
    domain_gpus: int = 1
    link_gbs: float | None = None
    network_gbs: float | None = None
    rates_source: str = ""
    peaks: Mapping[Precision, Peak] = field(default_factory=dict)
    overrides: tuple[Override, ...] = ()
    limits: tuple[Limit, ...] = ()
    place: str = ""
    places: Mapping[str, str] = field(default_factory=dict, compare=False)  # of product labels

    @property
    def has_rack_nvlink(self) -> bool:
        """Return whether NVLink joins the GPUs of several nodes."""
        return self.domain_gpus > self.gpus_per_node


def architecture_of(
    product_label: str | None, architectures: Mapping[str, Architecture]
) -> str | None:
    """Return the name of the architecture that has this product label, or None."""
    for name, architecture in sorted(architectures.items()):
        if product_label in architecture.product_labels:
            return name
    return None
