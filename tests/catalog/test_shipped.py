import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.catalog.options import resolve_options, substitute
from pytest_cre.catalog.pattern import compile_pattern

UPSTREAM = yaml.safe_load(
    (Path(__file__).parents[1] / "data/upstream-log-profiles.yaml").read_text()
)


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(suites=[shipped_suites()], profiles=[shipped_profiles()])


def arguments(catalog, name, kind="indexedJob", **options):
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


def test_shipped_catalog_holds_the_entries_of_the_main_job(catalog):
    scales = {name: entry.scales for name, entry in catalog.entries.items()}
    assert scales["communication/nccl-all-reduce"] == ("full-scale", "intra-node")
    assert scales["training/nemotron5-8b"] == ("full-scale",)
    assert catalog.entry("communication/nccl-all-reduce").test == "all_reduce"
    assert catalog.entry("training/nemotron5-8b").log_profile == "megatron-training"


def test_all_reduce_runs_upstreams_sizes_and_iterations_by_default(catalog):
    command = arguments(catalog, "communication/nccl-all-reduce")
    assert command[:7] == [
        "torchrun",
        "--nnodes=2",
        "--nproc-per-node=8",
        "--node-rank=$(JOB_COMPLETION_INDEX)",
        "--master-addr=job-0.job",
        "--master-port=29500",
        "/cre/collective.py",
    ]
    flags = dict(zip(command[7::2], command[8::2], strict=True))
    assert flags["--collective"] == "all_reduce"
    assert {flag: flags[flag] for flag in ("-b", "-e", "-f", "-n", "-w", "-c")} == {
        "-b": "8",
        "-e": "16G",
        "-f": "2",
        "-n": "100",
        "-w": "5",
        "-c": "1",
    }


def test_all_reduce_by_mpi_is_upstreams_command(catalog):
    command = arguments(catalog, "communication/nccl-all-reduce", "mpiJob", maxBytes="1G")
    assert command[:8] == [
        *("timeout", "3600", "mpirun", "-N", "8", "--allow-run-as-root", "--mca", "plm_rsh_args")
    ]
    assert "all_reduce_perf_mpi" in command
    assert command[command.index("-e") + 1] == "1G"


def test_training_takes_steps_and_intervals_from_its_options(catalog):
    command = arguments(catalog, "training/nemotron5-8b", maxSteps="1000", saveInterval="100")
    for flag in ("--train-iters=1000", "--save-interval=100", "--log-interval=10"):
        assert flag in command
    for flag in ("--num-layers=32", "--hidden-size=4096", "--global-batch-size=16", "--mock-data"):
        assert flag in command
    assert "--log-throughput" in command  # the profile reads no step without it


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("communication/nccl-all-reduce", "maxBytes", "0"),
        ("communication/nccl-all-reduce", "maxBytes", "16GB"),
        ("communication/nccl-all-reduce", "stepFactor", "1"),
        ("communication/nccl-all-reduce", "numIterations", "0"),
        ("communication/nccl-all-reduce", "dataType", "fp8"),
        ("training/nemotron5-8b", "maxSteps", "-1"),
        ("training/nemotron5-8b", "checkpointPath", "relative"),
    ],
)
def test_option_that_would_break_the_workload_is_refused(catalog, name, option, value):
    pattern = catalog.entry(name).options[option].pattern
    assert compile_pattern(pattern).fullmatch(value) is None


@pytest.mark.parametrize("name", sorted(UPSTREAM))
def test_log_profile_is_upstreams(catalog, name):
    profile, upstream = catalog.log_profile(name), UPSTREAM[name]
    assert {key: each.regex for key, each in profile.patterns.items()} == upstream["patterns"]
    assert profile.timestamp_layout == upstream["layout"]
    assert (profile.warmup_steps, profile.log_interval) == (
        upstream["warmupSteps"],
        upstream["logInterval"],
    )
    strategy = upstream["workerStrategy"]
    assert profile.strategy == strategy["type"]
    assert profile.lifecycle_pod == strategy.get("lifecyclePod", "first")
    assert profile.training_step_pod == strategy.get("trainingStepPod", "first")
    assert profile.replicated_job_name == strategy.get("replicatedJobName", "")
    if "trainingStep" in profile.patterns:
        assert profile.patterns["trainingStep"].units == upstream["units"]


@pytest.mark.parametrize("name", sorted(UPSTREAM))
def test_log_profile_reads_upstreams_example_lines(catalog, name):
    for key, line in UPSTREAM[name]["lines"].items():
        assert compile_pattern(catalog.log_profile(name).patterns[key].regex).search(line)


def test_step_line_is_read_into_its_groups(catalog):
    pattern = catalog.log_profile("megatron-training").patterns["trainingStep"]
    found = compile_pattern(pattern.regex).search(
        UPSTREAM["megatron-training"]["lines"]["trainingStep"]
    )
    assert found.groupdict() == {
        "timestamp": "2026-02-05 16:03:52",
        "iteration": "1",
        "elapsedTime": "132563.1",
        "tflops": "138.5",
        "loss": "1.218472E+01",
    }


def test_every_shipped_pattern_has_an_example(catalog):
    for profile in catalog.log_profiles.values():
        assert [name for name, each in profile.patterns.items() if not each.example] == []


def test_types_of_the_catalog_load_neither_yaml_nor_pydantic():
    modules = "architecture, entry, limit, logprofile"
    code = f"import sys; from pytest_cre.catalog import {modules}; from pytest_cre.formats import "
    code += "duration, patch, quantity, selector; "
    code += "print(sorted({'yaml', 'pydantic', 're2'} & sys.modules.keys()))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
