"""A folder with entries whose pods are real processes."""

from pathlib import Path

from tests.workloads.interpreter import torch_python

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


def write_pods(folder: Path, entries: dict[str, str]) -> list[str]:
    """Write these entries, a test of them and a scenario; return the arguments of their run."""
    (folder / "scenario.yaml").write_text(SCENARIO.format(python=torch_python()))
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
    files = (f"--cre-scenario={folder}/scenario.yaml", f"--cre-catalog={folder}/mine")
    return [*files, *options, f"{folder}/test_mine.py"]


def figures_of(group: dict) -> dict[str, float]:
    """Return the figures of a group of a report, by name."""
    return {name: figure["value"] for name, figure in group["figures"].items()}
