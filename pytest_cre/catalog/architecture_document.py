"""The form of a GPU architecture."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from pytest_cre.catalog.architecture import Architecture, Peak, Precision
from pytest_cre.catalog.documents import Count, Document, Filled, LabelValue, Natural
from pytest_cre.catalog.limit_document import LimitDocument, limit_from
from pytest_cre.catalog.override_document import OverrideDocument, overrides_from
from pytest_cre.formats.yaml import YamlDocument, validate

ProductLabel = Annotated[LabelValue, Field(min_length=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class LinkDocument(Document):
    """Line rates of one GPU in one direction, GB/s of 1e9 bytes."""

    gpu: Annotated[Rate, Field(alias="gpuGBps")]
    network: Annotated[Rate, Field(alias="networkGBps")]
    source: Filled


class PeaksDocument(Document):
    """Highest rates of one GPU, dense, in TFLOP/s (TOP/s for int8)."""

    tflops: Annotated[dict[Precision, Rate], Field(min_length=1)]
    source: Filled


class ArchitectureDocument(Document):
    """A GPU architecture; its name is its file's."""

    description: str = ""
    product_labels: Annotated[list[ProductLabel], Field(min_length=1)]
    gpus_per_node: Count
    nics_per_node: Natural
    nvlink_domain_gpus: Count = 1
    links: LinkDocument | None = None
    peaks: PeaksDocument | None = None
    overrides: list[OverrideDocument] = Field(default_factory=list)
    limits: list[LimitDocument] = Field(default_factory=list)


def architecture_from(document: YamlDocument, path: Path) -> Architecture:
    """Return the architecture of a file `<name>.yaml`; raises `YamlProblem`."""
    form, name = validate(document, ArchitectureDocument), path.stem
    links, peaks = form.links, form.peaks
    return Architecture(
        name=name,
        product_labels=tuple(form.product_labels),
        gpus_per_node=form.gpus_per_node,
        nics_per_node=form.nics_per_node,
        domain_gpus=form.nvlink_domain_gpus,
        link_gbs=links.gpu if links is not None else None,
        network_gbs=links.network if links is not None else None,
        rates_source=links.source if links is not None else "",
        peaks={}
        if peaks is None
        else {
            precision: Peak(tflops=tflops, source=peaks.source)
            for precision, tflops in sorted(peaks.tflops.items())
        },
        overrides=overrides_from(form.overrides, document),
        limits=tuple(
            limit_from(each, place=document.place(("limits", index)), architecture=name)
            for index, each in enumerate(form.limits)
        ),
        place=document.place(),
        places={
            label: document.place(("productLabels", index))
            for index, label in enumerate(form.product_labels)
        },
    )
