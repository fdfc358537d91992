"""One group of nodes: create its Job, watch it to its end, keep what was seen, delete it."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_cre.cluster.objects import EVENT, POD, condition, metadata_of
from pytest_cre.cluster.pods import container_state, pod_facts, pod_problem, settle
from pytest_cre.cluster.retry import RetryPolicy
from pytest_cre.cluster.workloads import workload_of
from pytest_cre.errors import ClusterProblem
from pytest_cre.evidence.model import GroupEvidence, JobFacts, LogStream, PodFacts, Problem
from pytest_cre.plan.model import RUN_LABEL, GroupPlan, WorkflowPlan
from pytest_cre.plan.render import JOB_LABEL
from pytest_cre.run.clocks import (
    INTERRUPTED_BUDGET_S,
    RunTiming,
    phase_times,
    scheduled_ns,
    until_stopped,
)
from pytest_cre.run.created import CreatedObjects
from pytest_cre.run.diagnosis import BAD_START, DISRUPTED, end_problems, start_problems
from pytest_cre.run.facts import event_facts
from pytest_cre.run.ledger import Ledger
from pytest_cre.run.podlogs import PodLogs
from pytest_cre.run.progress import GroupProgress, Phase

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client
    from pytest_cre.run.view import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the groups of a workflow share."""

    client: "Client"
    view: "ClusterView"
    ledger: Ledger
    stop: threading.Event
    on_progress: Callable[[GroupProgress], None]
    is_stalled: Callable[[GroupEvidence], bool] | None
    keep: Callable[[GroupEvidence], bool]
    timing: RunTiming = field(default_factory=RunTiming)


def run_group(plan: WorkflowPlan, group: GroupPlan, world: World) -> tuple[GroupEvidence, tuple[str, ...]]:
    """Run one attempt on one group; return its evidence and the objects left behind.

    Trouble with the cluster's API becomes a problem `api-error`; whatever was created is deleted.
    """
    return _GroupRun(plan, group, world).run()
