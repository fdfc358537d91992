import pytest

from pytest_cre.catalog.architecture import Architecture
from pytest_cre.catalog.entry import CatalogEntry, OptionSpec, WorkloadCommand
from pytest_cre.evidence.model import NodeFacts

H100 = "NVIDIA-H100-80GB-HBM3"
GB200 = "NVIDIA-GB200"


def make_node(name, *, product=H100, gpus=8, labels=None, ready=True, cordoned=False, taints=()):
    own = {"kubernetes.io/hostname": name, "nvidia.com/gpu.present": "true"}
    if product is not None:
        own["nvidia.com/gpu.product"] = product
    return NodeFacts(
        name=name,
        uid=f"uid-{name}",
        labels=own | (labels or {}),
        gpus_allocatable=gpus,
        is_ready=ready,
        is_cordoned=cordoned,
        taints=tuple(taints),
    )


def make_cpu_node(name):
    labels = {"kubernetes.io/hostname": name}
    return NodeFacts(
        name=name, uid=name, labels=labels, gpus_allocatable=0, is_ready=True, is_cordoned=False
    )


@pytest.fixture
def node():
    return make_node


@pytest.fixture
def cpu_node():
    return make_cpu_node


@pytest.fixture
def architectures():
    h100 = Architecture(name="h100", product_labels=(H100,), gpus_per_node=8, nics_per_node=8)
    gb200 = Architecture(name="gb200", product_labels=(GB200,), gpus_per_node=4, nics_per_node=8)
    return {"h100": h100, "gb200": gb200}


@pytest.fixture
def entry():
    return CatalogEntry(
        name="communication/nccl-all-reduce",
        description="all-reduce",
        measures="bandwidth",
        image="example.com/pytorch:1",
        workloads={
            "mpiJob": WorkloadCommand(command=("mpirun",)),
            "indexedJob": WorkloadCommand(
                command=("python3", "/cre/collective.py"),
                args=("--nodes", "${nodes}", "--gpus", "${gpusPerNode}", "--ranks", "${gpus}",
                      "--master", "${masterAddress}", "-e", "${maxBytes}", "--arch", "${architecture}"),
            ),
        },
        log_profile="nccl-bandwidth",
        timeout_s=900.5,
        start_timeout_s=600,
        options={"maxBytes": OptionSpec(name="maxBytes", default="16G")},
        env={"NCCL_DEBUG": "INFO"},
        scripts=("collective.py",),
    )  # fmt: skip
