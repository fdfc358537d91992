import pytest

from pytest_cre.catalog.architecture import architecture_of
from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites

# Labels of GPU feature discovery: the GPU's name with hyphens.
LABELS = {
    "NVIDIA-A100-SXM4-40GB": "a100",
    "NVIDIA-A100-SXM4-80GB": "a100",
    "NVIDIA-B200": "b200",
    "NVIDIA-B300-SXM6-AC": "b300",
    "NVIDIA-GB200": "gb200",
    "NVIDIA-GB200-NVL72": "gb200",
    "NVIDIA-GB300": "gb300",
    "NVIDIA-GB300-NVL72": "gb300",
    "NVIDIA-H100-80GB-HBM3": "h100",
    "NVIDIA-H200": "h200",
    "NVIDIA-L40": "l40",
    "NVIDIA-L40S": "l40s",
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": "rtxpro6000",
    # Without NVSwitch, partitioned or shared: the limits would mean nothing.
    "NVIDIA-A100-PCIE-40GB": None,
    "NVIDIA-H100-NVL": None,
    "NVIDIA-H100-PCIe": None,
    "NVIDIA-H200-NVL": None,
    "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb": None,
    "NVIDIA-H100-80GB-HBM3-SHARED": None,
    "Tesla-V100-SXM2-32GB": None,
}
# GPUs per node, NICs per node, GPUs in one NVLink domain
SHAPES = {
    "a100": (8, 8, 8),
    "b200": (8, 8, 8),
    "b300": (8, 8, 8),
    "gb200": (4, 8, 72),
    "gb300": (4, 8, 72),
    "h100": (8, 8, 8),
    "h200": (8, 8, 8),
    "l40": (8, 4, 1),
    "l40s": (8, 8, 1),
    "rtxpro6000": (8, 0, 1),
}


@pytest.fixture(scope="module")
def architectures():
    catalog = load_catalog(suites=[shipped_suites()], profiles=[shipped_profiles()])
    return catalog.architectures


@pytest.mark.parametrize(("label", "name"), LABELS.items())
def test_product_label_tells_the_architecture(architectures, label, name):
    assert architecture_of(label, architectures) == name


def test_every_architecture_has_the_shape_of_upstreams_table(architectures):
    assert {
        name: (each.gpus_per_node, each.nics_per_node, each.domain_gpus)
        for name, each in architectures.items()
    } == SHAPES


def test_only_rack_architectures_have_nvlink_between_nodes(architectures):
    assert [name for name, each in architectures.items() if each.has_rack_nvlink] == [
        "gb200",
        "gb300",
    ]


def test_peaks_are_dense_and_carry_a_source(architectures):
    bf16 = {name: each.peaks["bf16"].tflops for name, each in architectures.items()}
    assert bf16 == {
        "a100": 312, "b200": 2250, "b300": 2250, "gb200": 2500, "gb300": 2500, "h100": 989.4,
        "h200": 989.4, "l40": 181.05, "l40s": 362.05, "rtxpro6000": 500,
    }  # fmt: skip
    for architecture in architectures.values():
        assert "data sheet" in architecture.rates_source
        for precision, peak in architecture.peaks.items():
            assert peak.tflops > 0, precision
            assert "data sheet" in peak.source


def test_no_published_figure_is_above_the_wire(architectures):
    for architecture in architectures.values():
        for limit in architecture.limits:
            if limit.metric == "busbw":
                assert limit.value / 0.9 < 2 * architecture.link_gbs, limit.place
