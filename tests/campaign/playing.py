"""One schedule played by the real workflow, and held against the rules."""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

from pytest_cre.assessment import Assessor
from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.catalog.options import resolve_options
from pytest_cre.cluster.client import connect
from pytest_cre.cluster.inventory import read_nodes
from pytest_cre.cluster.objects import (
    CONFIG_MAP,
    JOB,
    JOB_SET,
    LEASE,
    MPI_JOB,
    POD,
    SERVICE,
    TRAIN_JOB,
)
from pytest_cre.cluster.retry import RetryPolicy
from pytest_cre.errors import ClusterProblem
from pytest_cre.evidence.model import WorkflowEvidence
from pytest_cre.evidence.store import masked, read_workflow, write_workflow
from pytest_cre.judge.verdict import ItemVerdict
from pytest_cre.plan.selection import select_nodes
from pytest_cre.plan.workflow import plan_workflow
from pytest_cre.run.cleanup import sweep
from pytest_cre.run.clocks import RunTiming
from pytest_cre.run.leases import held_lease
from pytest_cre.run.ledger import Ledger
from pytest_cre.run.owner import create_owner
from pytest_cre.run.workflow import run_workflow
from tests.campaign.clusters import Cluster, Clusters
from tests.campaign.kinds import KINDS
from tests.campaign.rules import false_blame, false_logs, false_passes
from tests.campaign.schedules import Schedule

SCRIPTS = Path(__file__).parents[2] / "pytest_cre" / "workloads"
RUN_TIMEOUT_S = 14.0
START_TIMEOUT_S = 10.0
LONGEST_S = 90.0
TIMING = RunTiming(
    poll_s=0.3,
    bad_start_s=0.3,
    node_lost_s=0.5,
    spoiled_s=1.0,
    pods_end_s=4.0,
    drain_s=8.0,
    gone_s=16.0,
    stall_check_s=0.5,
)


@dataclass(kw_only=True)
class Outcome:
    """What came of a schedule. `broken`: the rules that it broke, in words."""

    schedule: Schedule
    code: str = "error"
    text: str = ""
    took_s: float = 0.0
    fired: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


@cache
def catalog():
    """Return the shipped catalog with deadlines of seconds."""
    shipped = load_catalog(suites=(shipped_suites(),), profiles=(shipped_profiles(),))
    entries = {
        name: replace(entry, timeout_s=RUN_TIMEOUT_S, start_timeout_s=START_TIMEOUT_S)
        for name, entry in shipped.entries.items()
    }
    return replace(shipped, entries=entries)


def play(clusters: Clusters, schedule: Schedule, folder: Path) -> Outcome:
    """Run one schedule on a cluster of its own and look at what it left."""
    folder.mkdir()
    path = folder / "scenario.yaml"
    path.write_text(schedule.scenario)
    outcome = Outcome(schedule=schedule)
    with clusters.running(path, schedule.seed, folder) as cluster:
        began_s = time.monotonic()
        try:
            _run(cluster, schedule, folder, outcome)
        except ClusterProblem as problem:
            outcome.text = str(problem)  # an error of the item, told in one line
        outcome.took_s = time.monotonic() - began_s
        _check_nothing_left(cluster, schedule, folder, outcome)
        _count(cluster, outcome)
    if outcome.took_s > LONGEST_S:
        outcome.broken.append(f"took {outcome.took_s:.0f} s")
    return outcome


def _run(cluster: Cluster, schedule: Schedule, folder: Path, outcome: Outcome) -> None:
    run_id = f"c{schedule.number}"
    client = connect(kubeconfig=str(cluster.kubeconfig), context=None, namespace=None)
    client = client.with_retry(RetryPolicy(budget_s=12.0, longest_pause_s=1.0))
    ledger = Ledger(folder / f"{run_id}.ledger.jsonl", run_id)
    stop = threading.Event()
    try:
        selection = select_nodes(
            read_nodes(client), catalog().architectures, names=sorted(cluster.world.nodes)
        )
        entry = catalog().entries[schedule.entry]
        plan = plan_workflow(
            entry,
            schedule.scale,
            selection,
            catalog().architectures[selection.architecture],
            served=client.served_workloads(),
            run_id=run_id,
            owner=create_owner(client, ledger),
            namespace=client.namespace,
            options=resolve_options(entry, schedule.options),
            asked_kind=schedule.workload,
            scripts={script: (SCRIPTS / script).read_text() for script in entry.scripts},
        )
        with held_lease(client, run_id, "campaign", stop=stop, on_lost=stop.set) as lease:
            evidence = run_workflow(plan, client, ledger=ledger, stop=stop, timing=TIMING)
        swept = sweep(client, run_id, [ledger.path], patience_s=lambda: 20.0)
    finally:
        ledger.close()
    write_workflow(folder / "evidence", evidence)
    if read_workflow(folder / "evidence") != masked(evidence):
        outcome.broken.append("the evidence on disk is not what was seen")
    limits = {node.name: node.simulated_limits for node in selection.nodes}
    assessor = Assessor(
        catalog(), simulated_limits=limits, missing_limit="skip", logs_place=str(folder)
    )
    verdict = _judged(assessor, evidence)
    outcome.code, outcome.text = verdict.code, assessor.text_of(verdict, evidence)
    if lease.loss is not None and verdict.code == "pass":
        outcome.code = "error"  # as a certification does
    if swept.leftovers or evidence.leftovers:
        outcome.code = "error"
    if verdict.code != "pass" and not outcome.text:
        outcome.broken.append(f"{verdict.code} without a word")
    outcome.broken += false_logs(cluster, evidence)
    outcome.broken += false_blame(cluster, evidence, verdict)
    outcome.broken += false_passes(cluster, evidence, verdict, partial(_judged, assessor))


def _judged(assessor: Assessor, evidence: WorkflowEvidence) -> ItemVerdict:
    measurements = assessor.measure(evidence)
    return assessor.judge(evidence, measurements, assessor.limits(evidence, measurements))


def _check_nothing_left(
    cluster: Cluster, schedule: Schedule, folder: Path, outcome: Outcome
) -> None:
    """Once all is well again, nothing is there that the run did not name as left."""
    cluster.api_faults.is_over = True
    client = connect(kubeconfig=str(cluster.kubeconfig), context=None, namespace=None)
    run_id = f"c{schedule.number}"
    if outcome.code == "error":
        sweep(client, run_id, [folder / f"{run_id}.ledger.jsonl"], patience_s=lambda: 20.0)
    operated = [kind for kind in (JOB_SET, MPI_JOB, TRAIN_JOB) if client.serves(kind)]
    left = [
        f"{kind.kind}/{item['metadata']['name']}"
        for kind in (JOB, POD, SERVICE, CONFIG_MAP, LEASE, *operated)
        for item in client.list(kind, label_selector=f"cre.pytest.org/run={run_id}").items
    ]
    if left:
        outcome.broken.append(f"left behind: {', '.join(left)}")


def _count(cluster: Cluster, outcome: Outcome) -> None:
    """Count by kind; where two on nodes share an action, each that was planted and came."""
    came = Counter(action for action, _ in cluster.world.faults.hits)
    planted = iter(cluster.api_faults.planted)
    for name in outcome.schedule.kinds:
        kind = KINDS[name]
        outcome.fired[name] += came[kind.action] if kind.where == "faults" else next(planted).hits
