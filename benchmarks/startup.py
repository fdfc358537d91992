"""What the plugin costs: start-up, embedded cluster, inventory, memory, as ratios in one run.

Run it as `python benchmarks/startup.py`. Each line names its baseline.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pytest_cre.cluster.client import connect
from pytest_cre.cluster.inventory import read_nodes
from pytest_cre.cluster.local import start_embedded

RUNS = 7
NODES = 1000


def seconds(command: list[str], folder: Path) -> float:
    """Return the wall seconds of one run of a command."""
    # With byte code, as an installed package has it.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=env)
    return time.perf_counter() - begin


def plugin_start(folder: Path) -> None:
    """Compare pytest on one empty test with the plugin and without it, in pairs."""
    (folder / "test_empty.py").write_text("def test_empty():\n    pass\n")
    (folder / "pytest.toml").write_text("[pytest]\n")
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    seconds(pytest, folder)  # writes the byte code
    pairs = [
        (seconds(pytest, folder), seconds([*pytest, "-p", "no:cre"], folder)) for _ in range(RUNS)
    ]
    with_s, without_s = (statistics.median(each) for each in zip(*pairs, strict=True))
    print(
        f"bare pytest, one empty test: {with_s * 1000:.0f} ms with the plugin, "
        f"{without_s * 1000:.0f} ms without: +{(with_s - without_s) * 1000:.0f} ms, "
        f"ratio {with_s / without_s:.3f}"
    )


def embedded(folder: Path) -> None:
    """Measure readiness of the embedded cluster and the inventory of many nodes."""
    scenario = folder / "many.yaml"
    scenario.write_text(
        f"extends: h100-8\nnodes:\n  - {{name: 'node-{{index}}', count: {NODES}, gpu: h100}}\n"
    )
    bare_s = statistics.median(seconds([sys.executable, "-c", "pass"], folder) for _ in range(RUNS))
    times = []
    for index in range(3):
        (folder / str(index)).mkdir()
        begin = time.perf_counter()
        cluster = start_embedded(
            scenario="h100-8", seed=None, folder=folder / str(index), timeout_s=30
        )
        times.append(time.perf_counter() - begin)
        cluster.stop()
    ready_s = statistics.median(times)
    print(
        f"embedded cluster with 8 nodes ready in {ready_s:.2f} s, "
        f"ratio to a bare Python start {ready_s / bare_s:.1f}"
    )
    cluster = start_embedded(scenario=str(scenario), seed=None, folder=folder, timeout_s=60)
    try:
        client = connect(kubeconfig=str(cluster.kubeconfig), context=None, namespace=None)
        begin = time.perf_counter()
        nodes = read_nodes(client)
        listed_s = time.perf_counter() - begin
        assert len(nodes) == NODES
        print(f"{NODES} nodes listed through the harness in {listed_s:.2f} s")
    finally:
        cluster.stop()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process with the client loaded: {peak_mb:.0f} MB")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        plugin_start(Path(name))
        embedded(Path(name))
