"""A folder with entries whose pods are real processes, and an interpreter that has torch."""

import atexit
import functools
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.warm import torch_python as torch_python_file

TIMEOUT_S = 120
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


@functools.cache
def torch_python() -> str:
    """Return an interpreter that imports torch in no time, made of this one or else the system's."""
    looks = "import importlib.util as u; raise SystemExit(not u.find_spec('torch'))"
    for python in (sys.executable, "/usr/bin/python3"):
        if Path(python).exists():
            found = subprocess.run([python, "-c", looks], check=False, timeout=TIMEOUT_S)
            if found.returncode == 0:
                return warm(python)
    pytest.skip("no torch: neither this Python nor /usr/bin/python3 can import it")


def warm(python: str) -> str:
    """Start the server of `tests.warm.torch_python`; return the program that asks it."""
    folder = tempfile.TemporaryDirectory(prefix="torch-python-")
    program, address = Path(folder.name, "python"), f"{folder.name}/door"
    server = subprocess.Popen(
        [python, torch_python_file.__file__, "serve", address],
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # read when torch is imported
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(folder.cleanup)
    atexit.register(server.communicate)
    assert server.stdout.readline() == "ready\n"
    asks = shlex.join([python, "-IS", torch_python_file.__file__, "ask", address, str(program)])
    program.write_text(f'#!/bin/sh\nexec {asks} "$@"\n')
    program.chmod(0o755)
    return str(program)


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
