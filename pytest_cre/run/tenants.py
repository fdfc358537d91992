"""Other users of the nodes: who is there to stay, and who will be gone in a moment."""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_cre.cluster.gpuholders import read_gpu_holders
from pytest_cre.evidence.model import GpuHolder, NodeFacts
from pytest_cre.plan.tenants import busy_words
from pytest_cre.run.leases import leasing_run

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

PATIENCE_S = 30.0
POLL_S = 2.0


def lasting_holders(
    client: "Client", nodes: Collection[str], run_id: str
) -> Mapping[str, tuple[GpuHolder, ...]]:
    """Return, by node, the pods that will still hold GPUs when it is our turn.

    Not those of our own run, nor of the one that has the namespace's lease: we wait for that, and
    look again. Raises `ClusterProblem`.
    """
    held = read_gpu_holders(client, nodes)
    passing = {run_id}
    place = f"{client.namespace}/"
    here = {
        each.run_id for holders in held.values() for each in holders if each.pod.startswith(place)
    }
    if here - {None, run_id}:
        passing.add(leasing_run(client) or run_id)
    staying = {
        node: tuple(
            each for each in holders if each.run_id not in passing or not each.pod.startswith(place)
        )
        for node, holders in held.items()
    }
    return {node: holders for node, holders in staying.items() if holders}


def await_free(
    client: "Client",
    nodes: Sequence[NodeFacts],
    *,
    stop: threading.Event,
    on_wait: Callable[[str], None],
    patience_s: float = PATIENCE_S,
    poll_s: float = POLL_S,
    clock: Callable[[], float] = time.monotonic,
) -> Mapping[str, tuple[GpuHolder, ...]]:
    """Return, by node, the pods that hold GPUs and do not let go in time, of whatever run.

    `on_wait` is told once whom we wait for. `stop` ends the waiting. Raises `ClusterProblem`.
    """
    facts = {node.name: node for node in nodes}
    held = read_gpu_holders(client, facts) if facts else {}
    if not held:
        return held
    node, holders = next(iter(held.items()))
    others = f", and {len(held) - 1} more nodes" if len(held) > 1 else ""
    on_wait(
        f"waiting at most {patience_s:g} s: node {node}: {busy_words(facts[node], holders)}{others}"
    )
    deadline_s = clock() + patience_s
    while held and clock() < deadline_s and not stop.wait(poll_s):
        held = read_gpu_holders(client, held)
    return held
