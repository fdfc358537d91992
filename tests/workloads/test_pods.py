"""The scripts in pods of a Job that are real processes on this machine, from manifest to verdict."""

import json

import pytest

from tests.home import home_in
from tests.warm.runs import run_pytest

TIMEOUT_S = 240
SCENARIO = """\
nodes: [{{name: "cpu-{{index}}", count: 2, gpu: h100}}]
podStartTime: 0s
processes: [{{match: {{namespace: default}}, python: {python}}}]
limits:
- {{metric: busbw, operator: ">=", value: 0.000001, unit: GB/s, entry: communication/*, statistic: max, date: "2026-11-30"}}
- {{metric: gemm_tflops, operator: ">=", value: 0.000000001, unit: TFLOP/s, entry: compute/*, statistic: value, date: "2026-11-30"}}
"""
COLLECTIVE = """\
extends: communication/nccl-all-reduce
description: One process on each of two nodes
gpusPerNode: 1
scales: [full-scale]
workloads:
  indexedJob:
    args:
      - --nnodes=${{nodes}}
      - --nproc-per-node=1
      - --node-rank=$(JOB_COMPLETION_INDEX)
      - --master-addr=${{masterAddress}}
      - --master-port=29500
      - /cre/collective.py
      - --collective
      - ${{test}}
      - -b
      - ${{minBytes}}
      - -e
      - ${{maxBytes}}
      - -f
      - ${{stepFactor}}
      - -n
      - ${{numIterations}}
      - -w
      - ${{warmupIterations}}
      - -N
      - ${{numCycles}}
      - -d
      - ${{dataType}}
      - -c
      - 1{more}
  jobSet: null
  trainJob: null
  mpiJob: null
"""
GEMM = "extends: compute/gemm\ndescription: One process on each node\ngpusPerNode: 1\n"
OPTIONS = {
    "minBytes": "1M",
    "maxBytes": "4M",
    "stepFactor": "2",
    "numIterations": "2",
    "warmupIterations": "0",
    "numCycles": "2",
    "dataType": "float",
    "device": "cpu",
    "size": "64",
    "numSamples": "2",
    "sampleSeconds": "0.02",
}


@pytest.fixture(scope="module")
def items(tmp_path_factory, torch_python):
    """What a certification of the entries comes to, by entry."""
    folder = tmp_path_factory.mktemp("pods")
    (folder / "scenario.yaml").write_text(SCENARIO.format(python=torch_python))
    entries = {
        "communication/healthy": COLLECTIVE.format(more=""),
        "communication/planted": COLLECTIVE.format(more="\n      - --plant-wrong\n      - 1:7"),
        "compute/small": GEMM,
    }
    for name, text in entries.items():
        path = folder / "mine" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "test_mine.py").write_text(
        "import pytest\n\n\n"
        f"@pytest.mark.certification({', '.join(map(repr, entries))})\n"
        "def test_mine(cre_workflow, cre_check):\n"
        "    cre_check(cre_workflow)\n"
    )
    options = [word for each in OPTIONS.items() for word in ("--cre-option", "=".join(each))]
    done = run_pytest(
        [
            *("-m", "certification", "-p", "no:cacheprovider"),
            *("--cre-cluster", "embedded", "--cre-scenario", "scenario.yaml"),
            *("--cre-catalog", "mine", "--cre-json=r.json", *options),
        ],
        cwd=folder,
        env=home_in(folder),
        timeout_s=TIMEOUT_S,
    )
    assert done.returncode == 1, done.stdout  # one of the three is spoilt on purpose
    return {each["entry"]: each for each in json.loads((folder / "r.json").read_text())["items"]}


def test_two_pods_exchange_data_and_every_value_is_right(items):
    item = items["communication/healthy"]

    assert (item["code"], item["text"]) == ("pass", "")
    (group,) = item["groups"]
    assert len(group["nodes"]) == 2
    figures = {name: figure["value"] for name, figure in group["figures"].items()}
    assert (figures["ranks"], figures["wrong_elements"]) == (2, 0)
    assert figures["busbw_max"] > 0


def test_planted_wrong_value_of_one_pod_fails_the_item_with_its_sizes(items):
    item = items["communication/planted"]

    assert item["code"] == "fail"
    first = item["text"].splitlines()[0]
    assert first.startswith("wrong values: 1 out-of-place and 1 in-place at 1 MiB; ")


def test_burn_in_has_a_figure_of_every_node(items):
    item = items["compute/small"]

    assert item["code"] == "pass"
    assert len(item["groups"]) == 2
    for group in item["groups"]:
        figures = {name: figure["value"] for name, figure in group["figures"].items()}
        assert (figures["gpus_measured"], figures["wrong_elements"]) == (1, 0)
        assert figures["gemm_tflops.gpu-0"] > 0
