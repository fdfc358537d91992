"""Every group of an item, concurrently where they share no node."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_cre.cluster.workloads import workload_of
from pytest_cre.evidence.model import GroupEvidence, Problem, WorkflowEvidence
from pytest_cre.plan.model import ENTRY_LABEL, RUN_LABEL, GroupPlan, WorkflowPlan
from pytest_cre.plan.workflow import disjoint
from pytest_cre.run.clocks import RunTiming
from pytest_cre.run.health import compile_rule
from pytest_cre.run.job import evidence_of, run_group
from pytest_cre.run.ledger import Ledger
from pytest_cre.run.progress import GroupProgress
from pytest_cre.run.view import ClusterView
from pytest_cre.run.world import World

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client
    from pytest_cre.evidence.journal import GrowingLog

MAX_CONCURRENT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    group: GroupPlan
    evidence: GroupEvidence | None
    leftovers: tuple[str, ...] = ()
    bug: BaseException | None = None


def run_workflow(
    plan: WorkflowPlan,
    client: "Client",
    *,
    ledger: Ledger,
    stop: threading.Event,
    on_progress: Callable[[GroupProgress], None] = lambda _: None,
    is_stalled: Callable[[GroupEvidence], bool] | None = None,
    resume_step: Callable[[GroupEvidence, GroupPlan], int] | None = None,
    wants_more: Callable[[GroupEvidence], Sequence[GroupPlan]] | None = None,
    keep: Callable[[GroupEvidence], bool] = lambda _: False,
    record: "Callable[[GroupEvidence, Sequence[GrowingLog]], None] | None" = None,
    left_s: float | None = None,
    max_concurrent: int = MAX_CONCURRENT,
    timing: RunTiming | None = None,
) -> WorkflowEvidence:
    """Run an item to its end and return everything seen; its objects are gone afterwards.

    - `stop`: once set, every group ends with the problem `interrupted` and is cleaned up quickly.
    - `on_progress` is called from the groups' threads and must be quick.
    - `is_stalled` is asked now and then with a running group's evidence so far.
    - `resume_step` is asked when a workload that may be restarted has ended early. It returns the
      step of the newest checkpoint, or raises `UnmetNeed` where the workload is not to be restarted.
    - `wants_more` is given the evidence of each group that ended, one at a time, and returns
      the plans of what is to run next: another attempt on that group, or other groups.
    - `left_s` is what is left of the whole run; after it every group ends as by `stop`.
    - `record` is given a running group's evidence and growing logs now and then.
    - `keep` says which group's objects stay in the cluster; they are not leftovers.

    Trouble with the API is a problem in the evidence. Raises only `EvidenceProblem` when the
    ledger cannot be written, for then nothing may be created.
    """
    finished: list[_Done] = []
    never_ran = list(plan.groups)
    planned = list(plan.groups)
    timing = timing or RunTiming()
    over_words = "the run was interrupted"
    if plan.groups:
        selector = f"{RUN_LABEL}={ledger.run_id},{ENTRY_LABEL}={plan.entry.label_value}"
        with ClusterView(client, workload_of(plan.kind).kind, selector) as view:
            world = World(
                client=client,
                view=view,
                ledger=ledger,
                stop=stop,
                on_progress=on_progress,
                is_stalled=is_stalled,
                resume_step=resume_step,
                keep=keep,
                health_rule=compile_rule(plan.entry.node_health),
                record=record,
                until_s=None if left_s is None else timing.clock() + left_s,
                timing=timing,
            )
            finished, never_ran = _run_groups(plan, world, wants_more, max_concurrent, planned)
            over_words = world.over_words
    for result in finished:
        if result.bug is not None:
            raise result.bug
    evidences = [result.evidence for result in finished if result.evidence is not None]
    evidences += [_never_ran(plan, group, over_words) for group in never_ran]
    return WorkflowEvidence(
        entry=plan.entry.name,
        scale=plan.scale,
        groups=tuple(sorted(evidences, key=_order_in(planned))),
        excluded=plan.excluded,
        problems=plan.problems,
        leftovers=tuple(sorted(name for result in finished for name in result.leftovers)),
        kind=plan.kind,
        kind_reason=plan.kind_reason,
        diagnosis=plan.diagnosis,
    )


def _run_groups(
    plan: WorkflowPlan,
    world: World,
    wants_more: Callable[[GroupEvidence], Sequence[GroupPlan]] | None,
    max_concurrent: int,
    planned: list[GroupPlan],
) -> tuple[list[_Done], list[GroupPlan]]:
    """Run every group; return what became of them, and those that an interrupt kept from it.

    Groups that are planned meanwhile are added to `planned`.
    """
    done: queue.SimpleQueue[_Done] = queue.SimpleQueue()
    finished: list[_Done] = []
    pending = deque(plan.groups)
    running: list[GroupPlan] = []
    try:
        while True:
            for group in _startable(pending, running, max_concurrent, world):
                pending.remove(group)
                running.append(group)
                _start(plan, group, world, done)
            if not running:
                return finished, list(pending)
            result = done.get()
            running.remove(result.group)
            finished.append(result)
            further = _further(result, wants_more, world)
            planned += further
            pending.extendleft(reversed(further))
    except BaseException:
        world.stop.set()
        for _ in running:
            done.get()
        raise


def _startable(
    pending: "deque[GroupPlan]", running: list[GroupPlan], most: int, world: World
) -> list[GroupPlan]:
    """Return the pending groups that share no node with a running one or with each other."""
    chosen: list[GroupPlan] = []
    if world.is_over:
        return chosen
    for group in pending:
        if len(running) + len(chosen) >= most:
            break
        if all(disjoint(group.group, other.group) for other in (*running, *chosen)):
            chosen.append(group)
    return chosen


def _start(
    plan: WorkflowPlan, group: GroupPlan, world: World, done: "queue.SimpleQueue[_Done]"
) -> None:
    def work() -> None:
        try:
            evidence, leftovers = run_group(plan, group, world)
            done.put(_Done(group=group, evidence=evidence, leftovers=leftovers))
        except BaseException as bug:  # noqa: BLE001 - raised again by the caller's thread
            world.stop.set()  # the other groups clean up first
            done.put(_Done(group=group, evidence=None, bug=bug))

    name = f"cre-{group.group.name}"
    threading.Thread(target=work, name=name, daemon=True).start()


def _further(
    result: _Done,
    wants_more: Callable[[GroupEvidence], Sequence[GroupPlan]] | None,
    world: World,
) -> Sequence[GroupPlan]:
    # Pods that could not be deleted hold their GPUs: whatever ran beside them would mean nothing.
    is_barred = world.is_over or bool(result.leftovers)
    if wants_more is None or result.evidence is None or is_barred:
        return ()
    return wants_more(result.evidence)


def _never_ran(plan: WorkflowPlan, group: GroupPlan, why: str) -> GroupEvidence:
    problem = Problem(code="interrupted", message=f"{why} before it started")
    return replace(evidence_of(plan, group), problems=(problem,))


def _order_in(planned: Sequence[GroupPlan]) -> Callable[[GroupEvidence], tuple[int, int]]:
    """Return what sorts evidence as its groups were planned: which one ends first is chance."""
    names = dict.fromkeys(group.group.name for group in planned)
    order = {name: index for index, name in enumerate(names)}
    return lambda evidence: (order[evidence.group], evidence.attempt)
