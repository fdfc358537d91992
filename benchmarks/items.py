"""What the harness adds to an item, against the same objects created and awaited by hand, in one run.

    python benchmarks/items.py [ITEMS]

By hand means: create the item's manifests, read the Job every 20 ms until it has ended, read its
pods' logs, delete everything and wait for the pods to be gone, through the same client on the same
embedded cluster. The harness does that too, and holds a lease, writes a ledger, watches pods, nodes
and events, follows logs as they grow, measures, judges and reports.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from pytest_cre.catalog.loader import shipped_suites
from pytest_cre.cluster.client import Client, connect
from pytest_cre.cluster.local import start_embedded
from pytest_cre.cluster.objects import JOB, POD, condition, kind_of, metadata_of
from pytest_cre.cluster.transport import pieces

BUDGET_MS = 100
POLL_S = 0.02
OPTIONS = {"minBytes": "1K", "maxBytes": "1M", "numIterations": "1", "numCycles": "1"}
CONFTEST = """
import json, time

created, times = [], []


def pytest_cre_modify_manifests(manifests):
    created.append(json.loads(json.dumps(manifests)))


def pytest_runtest_logstart(nodeid):
    times.append((time.perf_counter(), time.process_time()))


def pytest_sessionfinish():
    times.append((time.perf_counter(), time.process_time()))
    with open("created.json", "w") as file:
        json.dump([times, created], file)
"""
TEST = """
import pytest


@pytest.mark.certification("communication/bench-*")
def test_item(cre_bandwidth, cre_record):
    cre_record("max", cre_bandwidth.max_busbw_gbs["in_place"], "GB/s")
"""


def write_entries(folder: Path, count: int) -> None:
    """Write copies of a shipped entry, each an item of its own."""
    text = (shipped_suites() / "communication/nccl-all-reduce.yaml").read_text()
    text = text.replace("scales: [full-scale, intra-node]", "scales: [full-scale]")
    (folder / "communication").mkdir(parents=True)
    for index in range(count):
        (folder / f"communication/bench-{index:03d}.yaml").write_text(text)


def by_hand(client: Client, items: list[list[dict[str, Any]]]) -> list[tuple[float, float]]:
    """Return seconds and CPU seconds of each item's manifests, run without the harness."""
    spent = []
    for manifests in items:
        begin, cpu = time.perf_counter(), time.process_time()
        made = []
        for manifest in manifests:
            manifest["metadata"].pop("ownerReferences", None)  # of the harness's run, which is over
            made.append(client.create_or_adopt(manifest))
        job = str(metadata_of(made[-1])["name"])
        while condition(client.get(JOB, job) or {}, "Complete", "Failed") is None:
            time.sleep(POLL_S)
        pods = f"batch.kubernetes.io/job-name={job}"
        for pod in client.list(POD, label_selector=pods).items:
            with client.open_log(metadata_of(pod)["name"], "main", follow=False) as log:
                assert b"".join(pieces(log))
        for item in reversed(made):
            metadata = metadata_of(item)
            client.delete(kind_of(item), metadata["name"], uid=metadata["uid"])
        while client.list(POD, label_selector=pods).items:
            time.sleep(POLL_S)
        spent.append((time.perf_counter() - begin, time.process_time() - cpu))
    return spent


def by_harness(
    folder: Path, kubeconfig: Path
) -> tuple[list[tuple[float, float]], list[list[dict[str, Any]]]]:
    """Return seconds and CPU seconds from each item to the next, and the manifests of each."""
    (folder / "test_items.py").write_text(TEST)
    (folder / "conftest.py").write_text(CONFTEST)
    command = [sys.executable, "-m", "pytest", "-m", "certification", "-p", "no:cacheprovider"]
    command += ["-q", f"--rootdir={folder}", "--cre-catalog=entries"]
    command += ["--cre-kind=indexedJob", f"--cre-kubeconfig={kubeconfig}"]
    command += [f"--cre-option={name}={value}" for name, value in OPTIONS.items()]
    env = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    times, created = json.loads((folder / "created.json").read_text())
    spent = [(end[0] - begin[0], end[1] - begin[1]) for begin, end in pairwise(times)]
    return spent, created


def main(count: int) -> int:
    """Measure both; 1 when the harness is over its budget."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_entries(folder / "entries", count)
        cluster = start_embedded(scenario="h100-2", seed=1, folder=folder, timeout_s=30)
        try:
            harness_spent, items = by_harness(folder, cluster.kubeconfig)
            client = connect(kubeconfig=str(cluster.kubeconfig), context=None, namespace=None)
            hand_spent = by_hand(client, items)
        finally:
            cluster.stop()
    hand_s, hand_cpu_s = (list(each) for each in zip(*hand_spent, strict=True))
    harness_s, harness_cpu_s = (list(each) for each in zip(*harness_spent, strict=True))
    hand, harness, hand_cpu, harness_cpu = (
        statistics.median(each) * 1000 for each in (hand_s, harness_s, hand_cpu_s, harness_cpu_s)
    )
    print(
        f"{count} items, median: by hand {hand:.0f} ms, by the harness {harness:.0f} ms: "
        f"{harness - hand:+.0f} ms, ratio {harness / hand:.2f}"
    )
    print(
        f"CPU of this side: by hand {hand_cpu:.0f} ms, by the harness {harness_cpu:.0f} ms: "
        f"{harness_cpu - hand_cpu:+.0f} ms; first item of the harness {harness_s[0] * 1000:.0f} ms"
    )
    return 1 if harness - hand > BUDGET_MS else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
