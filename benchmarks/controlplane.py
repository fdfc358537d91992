"""What a genuine control plane costs, beside the embedded cluster in the same run.

    python benchmarks/controlplane.py [DIR]

DIR holds the programs; without it, those that `pytest-cre controlplane build` made. Prints time to
ready, memory of everything, and the time until 500 simulated nodes are registered; exit code 1 when
a budget is missed.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pytest_cre.cluster.local import LocalCluster, start_controlplane, start_embedded
from pytest_cre.controlplane.recipe import built_folder, check_programs, read_recipe

RUNS = 3
NODES = 500
READY_BUDGET_S = 6.0
MEMORY_BUDGET_MB = 1500.0
NODES_BUDGET_S = 20.0


def start(kind: str, scenario: str, folder: Path, programs: Path) -> LocalCluster:
    """Start one of the two kinds of local cluster."""
    if kind == "embedded":
        return start_embedded(scenario=scenario, seed=None, folder=folder, timeout_s=120)
    return start_controlplane(
        binaries=programs,
        scenario=scenario,
        seed=None,
        namespace="default",
        folder=folder,
        timeout_s=120,
    )


def timed(kind: str, scenario: str, programs: Path) -> tuple[float, float]:
    """Return seconds until all nodes are ready, and the memory of all its processes in MB."""
    with tempfile.TemporaryDirectory() as name:
        begin = time.perf_counter()
        cluster = start(kind, scenario, Path(name), programs)
        try:
            ready_s = time.perf_counter() - begin
            return ready_s, sum(map(resident_mb, family(cluster.pid)))
        finally:
            cluster.stop()


def family(pid: int) -> Iterator[int]:
    """Yield a process and all that descend from it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from family(int(child))


def resident_mb(pid: int) -> float:
    """Return the memory that a process holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def line(what: str, genuine: float, embedded: float, unit: str, budget: float) -> bool:
    """Print one figure with its baseline; return whether it is within the budget."""
    is_met = genuine <= budget
    print(
        f"{what}: {genuine:.2f} {unit}, embedded cluster {embedded:.2f} {unit}, "
        f"ratio {genuine / embedded:.1f}; budget {budget:g} {unit}: {'met' if is_met else 'MISSED'}"
    )
    return is_met


def main() -> int:
    """Measure, print, and return 1 where a budget is missed."""
    given = sys.argv[1] if sys.argv[1:] else None
    programs = Path(given) if given else built_folder(read_recipe(), os.environ)
    check_programs(programs)
    runs = {
        kind: [timed(kind, "h100-8", programs) for _ in range(RUNS)]
        for kind in ("controlplane", "embedded")
    }
    ready_s = {kind: statistics.median(run[0] for run in each) for kind, each in runs.items()}
    memory_mb = {kind: max(run[1] for run in each) for kind, each in runs.items()}
    with tempfile.TemporaryDirectory() as name:
        scenario = Path(name) / "many.yaml"
        nodes = f"nodes:\n- {{name: 'node-{{index}}', count: {NODES}, gpu: h100}}\n"
        scenario.write_text(f"extends: h100-8\n{nodes}")
        many = {kind: timed(kind, str(scenario), programs) for kind in runs}
    # What remains after a start with 8 nodes is what the nodes cost.
    nodes_s = {kind: max(many[kind][0] - ready_s[kind], 0.01) for kind in runs}
    return (
        0
        if all(
            [
                line(
                    "ready, operators and 8 nodes",
                    ready_s["controlplane"],
                    ready_s["embedded"],
                    "s",
                    READY_BUDGET_S,
                ),
                line(
                    "memory of everything",
                    memory_mb["controlplane"],
                    memory_mb["embedded"],
                    "MB",
                    MEMORY_BUDGET_MB,
                ),
                line(
                    f"{NODES} nodes registered",
                    nodes_s["controlplane"],
                    nodes_s["embedded"],
                    "s",
                    NODES_BUDGET_S,
                ),
                line(
                    f"memory with {NODES} nodes",
                    many["controlplane"][1],
                    many["embedded"][1],
                    "MB",
                    MEMORY_BUDGET_MB,
                ),
            ]
        )
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
