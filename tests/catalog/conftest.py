from pathlib import Path

import pytest

from pytest_cre.catalog.loader import load_catalog, shipped_profiles
from pytest_cre.errors import CatalogProblem

ENTRY = """\
description: A bench
measures: bandwidth
test: all_reduce
image: example.org/bench:1
scales: [full-scale, intra-node]
logProfile: nccl-bandwidth
timeout: 1h
startTimeout: 5m
options:
  maxBytes:
    default: 16G
    pattern: "[0-9]+[KMGT]?"
    description: Largest message
env:
  NCCL_DEBUG: INFO
scripts: [collective.py]
workloads:
  mpiJob:
    command: [mpirun]
    args: [-e, "${maxBytes}", -N, "${gpusPerNode}"]
  indexedJob:
    command: [torchrun, /cre/collective.py]
    args: [-e, "${maxBytes}", "$(JOB_COMPLETION_INDEX)"]
"""
PROFILE = """\
apiVersion: nvcre.nvidia.com/v1alpha1
kind: LogProfile
metadata:
  name: my-bench
spec:
  timestamp:
    layout: "2006-01-02 15:04:05"
  patterns:
    bandwidthResult:
      regex: '^(?P<size>\\d+) (?P<algBW>[\\d.]+) (?P<busBW>[\\d.]+)'
      example: 8 1.0 2.0
"""
ARCHITECTURE = """\
description: Made up
productLabels: [EXAMPLE-X1]
gpusPerNode: 4
nicsPerNode: 2
limits:
  - metric: busbw
    operator: ">="
    value: 90
    unit: GB/s
    entry: communication/nccl-all-reduce
    statistic: at-size
    size: 16G
    scale: full-scale
    minNodes: 2
    maxNodes: 4
    fabric: roce
    tier: site
    source: our own acceptance runs
    date: 2026-11-30
    note: 0.9 x 100
"""


class Folder:
    """A catalog folder and a profiles folder under construction, beside the shipped profiles."""

    def __init__(self, root: Path) -> None:
        self.suites = root / "catalog"
        self.profiles = root / "profiles"
        (self.profiles / "logs").mkdir(parents=True)
        (self.profiles / "architectures").mkdir()

    def entry(self, text=ENTRY, name="mine/bench"):
        return _write(self.suites / f"{name}.yaml", text)

    def profile(self, text=PROFILE, name="my-bench"):
        return _write(self.profiles / "logs" / f"{name}.yaml", text)

    def architecture(self, text=ARCHITECTURE, name="x1"):
        return _write(self.profiles / "architectures" / f"{name}.yaml", text)

    def load(self):
        return load_catalog(suites=[self.suites], profiles=[shipped_profiles(), self.profiles])

    def problem(self):
        """Return the message that loading ends with."""
        with pytest.raises(CatalogProblem) as caught:
            self.load()
        assert len(str(caught.value).splitlines()) == 1
        return str(caught.value)


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text) if isinstance(text, bytes) else path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)
