"""The shipped entries against what upstream runs, and the page that describes them."""

import re
from pathlib import Path

import pytest

from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.catalog.options import resolve_options, substitute

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "catalog-entries.md"
COLLECTIVES = {
    "nccl-all-reduce": "all_reduce",
    "nccl-all-gather": "all_gather",
    "nccl-reduce-scatter": "reduce_scatter",
    "nccl-alltoall": "alltoall",
    "nccl-sendrecv": "sendrecv",
    "nccl-broadcast": "broadcast",
}
NCCL_IMAGE = "nvcr.io/nvidia/pytorch:26.01-py3"
DCGM_IMAGE = "nvcr.io/nvidia/cloud-native/dcgm:4.5.2-1-ubuntu22.04"


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(suites=[shipped_suites()], profiles=[shipped_profiles()])


def command(catalog, name, kind="indexedJob", **options):
    entry = catalog.entry(name)
    values = resolve_options(entry, options) | {
        "nodes": "2",
        "gpusPerNode": "8",
        "gpus": "16",
        "masterAddress": "job-0.job",
        "architecture": "h100",
        "test": entry.test or "",
    }
    workload = entry.workloads[kind]
    return [substitute(text, values) for text in (*workload.command, *workload.args)]


def after(words, flag):
    return words[words.index(flag) + 1]


def test_shipped_catalog_holds_every_entry_of_the_field(catalog):
    assert sorted(catalog.entries) == sorted(
        [
            *(f"communication/{name}" for name in COLLECTIVES),
            *("communication/nccl-loopback", "communication/nccl-loopback-nvswitch"),
            *(f"diagnostics/dcgm-level{level}" for level in (1, 2, 3, 4)),
            *("compute/gemm", "training/nemotron5-8b", "training/nemotron5-56b"),
        ]
    )


@pytest.mark.parametrize(("variant", "test"), COLLECTIVES.items())
def test_collective_runs_upstreams_sweep_with_and_without_mpi(catalog, variant, test):
    name = f"communication/{variant}"
    entry = catalog.entry(name)
    dtype = "uint8" if test == "alltoall" else "float"

    assert (entry.test, entry.image, entry.timeout_s) == (test, NCCL_IMAGE, 3600)
    assert entry.scales == ("full-scale", "intra-node")
    assert entry.scripts == ("collective.py", "exchange.py")
    for kind in ("indexedJob", "mpiJob"):
        words = command(catalog, name, kind)
        sweep = {flag: after(words, flag) for flag in ("-b", "-e", "-f", "-n", "-d")}
        assert sweep == {"-b": "8", "-e": "16G", "-f": "2", "-n": "100", "-d": dtype}
        cycles = [words[i + 1] for i, word in enumerate(words) if word == "-N"][-1]
        assert cycles == "10"
    assert after(command(catalog, name), "--collective") == test
    assert f"{test}_perf_mpi" in command(catalog, name, "mpiJob")


def test_loopbacks_are_one_process_and_differ_in_what_they_switch_off(catalog):
    network = catalog.entry("communication/nccl-loopback")
    nvlink = catalog.entry("communication/nccl-loopback-nvswitch")

    off = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
    assert network.env.items() - nvlink.env.items() == off.items()
    for entry, iterations, cycles in ((network, "10", "2"), (nvlink, "100", "10")):
        words = command(catalog, entry.name)
        assert words[0] == "all_reduce_perf_mpi"
        assert [after(words, flag) for flag in ("-g", "-n", "-N")] == ["8", iterations, cycles]
        assert (entry.scales, entry.log_profile) == (("intra-node",), "nccl-loopback")
        assert entry.timeout_s == 3600


@pytest.mark.parametrize(
    ("level", "timeout_s", "parameters"),
    [
        (1, 3600, []),
        (2, 3600, []),
        (3, 3600, ["nvbandwidth.is_allowed=true"]),
        (
            4,
            7200,
            [
                "targeted_power.test_duration=1200s",
                "targeted_stress.test_duration=1200s",
                "nvbandwidth.is_allowed=true",
            ],
        ),
    ],
)
def test_diagnostics_are_upstreams_command(catalog, level, timeout_s, parameters):
    entry = catalog.entry(f"diagnostics/dcgm-level{level}")
    words = command(catalog, entry.name)

    assert words[:8] == [
        *("dcgmi", "diag", "--host", "nvidia-dcgm.gpu-operator.svc:5555"),
        *("--run", str(level), "--json", "--verbose"),
    ]
    assert words[8:] == [word for each in parameters for word in ("-p", each)]
    assert (entry.image, entry.timeout_s) == (DCGM_IMAGE, timeout_s)


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_diagnostics_are_privileged_but_for_oci_on_the_hosts_network(catalog, level):
    overrides = {
        each.name: each for each in catalog.entry(f"diagnostics/dcgm-level{level}").overrides
    }

    assert overrides["host-network"].pod == {
        "spec": {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    }
    assert overrides["privileged"].container == {"securityContext": {"privileged": True}}
    assert not overrides["privileged"].when.platform.allows("oci")
    assert overrides["privileged"].when.platform.allows("aws")
    assert overrides["any-taint"].tolerations == ({"operator": "Exists"},)


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_diagnostics_are_judged_by_dcgms_own_verdicts_on_any_architecture(catalog, level):
    name = f"diagnostics/dcgm-level{level}"
    (limit,) = catalog.entry(name).limits

    assert (limit.metric, limit.operator, limit.value) == ("dcgm_failed_tests", "<", 1)
    assert (limit.entry, limit.architecture) == (name, None)


# Upstream's tables: tensor parallel size by architecture, and the least number of GPUs.
PARALLEL = {
    "training/nemotron5-8b": (4, {"h100": 2, "a100": 8, "l40s": 4, "l40": 4, "rtxpro6000": 4}, 1),
    "training/nemotron5-56b": (32, {"h100": 8, "a100": 8}, 4),
}


@pytest.mark.parametrize("name", PARALLEL)
def test_training_has_upstreams_parallelism_by_architecture(catalog, name):
    gpus, by_architecture, usual = PARALLEL[name]
    entry = catalog.entry(name)

    assert entry.needs.gpus == gpus
    assert entry.needs.model_parallel == ("tensorParallel", "pipelineParallel")
    assert entry.options["pipelineParallel"].default == "1"
    for architecture in ("h100", "a100", "l40s", "l40", "rtxpro6000", "b200", "gb200", "gb300"):
        sizes = [entry.options["tensorParallel"].default]
        for override in entry.overrides:
            condition = override.when.architecture
            if condition is None or condition.allows(architecture):
                sizes += [override.options.get("tensorParallel", sizes[-1])]
        assert sizes[-1] == str(by_architecture.get(architecture, usual))


def test_training_of_56_billion_parameters_has_upstreams_shape(catalog):
    words = command(catalog, "training/nemotron5-56b")

    assert {
        "--num-layers=79",
        "--hidden-size=8192",
        "--ffn-hidden-size=32768",
        "--num-attention-heads=64",
        "--num-query-groups=8",
        "--kv-channels=128",
        "--seq-length=8192",
        "--distributed-timeout-minutes=230",
        "--tensor-model-parallel-size=4",
        "--micro-batch-size=1",
        "--global-batch-size=16",
        "--train-iters=50",
        "--exit-duration-in-mins=30",
    } <= set(words)
    assert catalog.entry("training/nemotron5-56b").timeout_s == 24 * 3600


def test_burn_in_asks_for_every_gpu_of_the_node(catalog):
    words = command(catalog, "compute/gemm")

    assert words[:2] == ["python3", "/cre/gemm.py"]
    assert (after(words, "--gpus"), after(words, "--dtype")) == ("8", "bfloat16")
    assert [after(words, flag) for flag in ("-m", "-n", "-k")] == ["8192"] * 3


def test_every_entry_runs_as_every_kind_that_its_program_allows(catalog):
    for name, entry in catalog.entries.items():
        kinds = ["indexedJob", "jobSet", "trainJob"]
        is_collective = name.removeprefix("communication/") in COLLECTIVES
        assert list(entry.workloads) == kinds + ["mpiJob"] * is_collective, name


def test_page_of_the_entries_tells_scales_timeout_needs_and_cost(catalog):
    rows = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if found := re.fullmatch(r"`([a-z0-9/-]+)`", cells[0]):
            rows.setdefault(found[1], cells)
    words = {"nics": "NICs", "dcgm": "DCGM"}

    assert rows.keys() >= catalog.entries.keys()
    for name, entry in catalog.entries.items():
        _, _, scales, timeout, needs, cost = rows[name]
        gpus = [f"{entry.needs.gpus} GPUs"] if entry.needs.gpus > 1 else []
        links = ["NVLink"] if entry.needs.has_nvlink else []
        assert scales == ", ".join(entry.scales)
        assert timeout == f"{entry.timeout_s / 3600:g}h"
        assert needs == ", ".join([*gpus, *links, *(words[each] for each in entry.needs.cluster)])
        assert cost == f"{entry.cost_s / 60:g} min"
