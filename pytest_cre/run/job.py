"""One group of nodes: create its Job, watch it to its end, keep what was seen, delete it."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_cre.cluster.client import ApiProblem
from pytest_cre.cluster.objects import NODE, POD, metadata_of
from pytest_cre.cluster.workloads import workload_of
from pytest_cre.errors import ClusterProblem
from pytest_cre.evidence.model import GroupEvidence, JobFacts, LogStream, Problem
from pytest_cre.plan.model import GroupPlan, WorkflowPlan
from pytest_cre.plan.render import JOB_LABEL
from pytest_cre.run.clocks import INTERRUPTED_BUDGET_S, RunTiming, phase_times, until_stopped
from pytest_cre.run.created import CreatedObjects
from pytest_cre.run.deadlines import Watchdog
from pytest_cre.run.diagnosis import end_problems, explained
from pytest_cre.run.facts import event_facts
from pytest_cre.run.health import NodeHealth
from pytest_cre.run.kin import Kin
from pytest_cre.run.ledger import Ledger
from pytest_cre.run.podlogs import PodLogs
from pytest_cre.run.progress import GroupProgress, Phase
from pytest_cre.run.seenpods import SeenPods

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client
    from pytest_cre.evidence.journal import GrowingLog
    from pytest_cre.formats.cel import Predicate
    from pytest_cre.run.view import ClusterView

_TAIL_BYTES = 1 << 18  # of each log are enough to see whether it moves
_FEW_NODES = 8  # are asked for one by one; of more the whole list is read
_SLICE_S = 0.25  # how late an interrupt may be noticed


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
    until_s: float | None  # when the whole run's deadline passes, by the clock of `timing`
    health_rule: "Predicate"  # true for a node that has failed
    record: "Callable[[GroupEvidence, Sequence[GrowingLog]], None] | None"
    timing: RunTiming

    @property
    def is_over(self) -> bool:
        """Return whether everything is to end now: an interrupt, or the run's deadline."""
        is_late = self.until_s is not None and self.timing.clock() >= self.until_s
        return is_late or self.stop.is_set()

    @property
    def over_words(self) -> str:
        """Return why everything is to end."""
        if self.stop.is_set():
            return "the run was interrupted"
        return "the run's deadline has passed (--cre-deadline)"


def run_group(
    plan: WorkflowPlan, group: GroupPlan, world: World
) -> tuple[GroupEvidence, tuple[str, ...]]:
    """Run one attempt on one group; return its evidence and the objects left behind.

    Trouble with the cluster's API becomes a problem `api-error`; whatever was created is deleted.
    """
    return _GroupRun(plan, group, world).run()


def evidence_of(plan: WorkflowPlan, group: GroupPlan) -> GroupEvidence:
    """Return the evidence of a group of which nothing has been seen."""
    return GroupEvidence(
        entry=plan.entry.name,
        scale=plan.scale,
        group=group.group.name,
        attempt=group.attempt,
        nodes=group.group.nodes,
        gpus_per_node=group.gpus_per_node,
        ranks_planned=group.ranks_planned,
        architecture=plan.architecture,
        is_simulated=plan.is_simulated,
        job=None,
        kind=plan.kind,
        manifests=group.manifests,
        options=dict(plan.options),
        platform=group.platform,
        fabrics=group.fabrics,
        overrides=group.overrides,
    )


class _GroupRun:
    """The state of one attempt, in one thread."""

    def __init__(self, plan: WorkflowPlan, group: GroupPlan, world: World) -> None:
        self._plan = plan
        self._group = group
        self._world = world
        self._timing = world.timing
        self._view = world.view
        self._client = world.client.with_retry(until_stopped(world.client.retry, world.stop))
        self._workload = workload_of(plan.kind)
        self._selector = f"{JOB_LABEL}={group.job_name}"
        self._created = CreatedObjects(world.ledger)
        self._kin = Kin(self._client)
        self._pods = SeenPods(self._workload)
        self._health = NodeHealth(group.group.nodes, world.health_rule)
        self._logs = PodLogs(self._client, self._workload.main_container, world.timing.clock)
        self._streams: tuple[LogStream, ...] = ()
        self._problems: list[Problem] = []
        self._job: JobFacts | None = None
        self._job_object: Mapping[str, Any] | None = None
        self._told: tuple[tuple[Phase, int, int], float] | None = None
        self._recorded_s: float | None = None
        self._early_s: float | None = None  # since when the workload is refused

    def run(self) -> tuple[GroupEvidence, tuple[str, ...]]:
        """Go through all phases; the clean-up comes whatever happened before."""
        try:
            self._attempt()
            evidence = self._evidence()
            if self._world.keep(evidence):
                return evidence, ()
        except BaseException:
            self._logs.abandon()
            self._remove()
            raise
        leftovers = self._remove()
        self._tell("done")
        return evidence, leftovers

    def _attempt(self) -> None:
        try:
            self._tell("creating")
            if not self._is_interrupted:
                self._look_again_at_nodes()  # as they are before they are used
            uid = self._create()
            if uid is not None:
                self._watch(uid)
            if self._job is not None and self._job.terminal != "none" and not self._is_interrupted:
                self._drain(self._job)
            else:
                self._streams = self._logs.abandon()
        except ClusterProblem as problem:
            code = "interrupted" if self._is_interrupted else "api-error"
            self._problems.append(Problem(code=code, message=str(problem)))
            self._streams = self._logs.abandon()

    def _create(self) -> str | None:
        """Create every object; return the workload's UID, None after an interrupt."""
        uid = None
        for manifest in self._group.manifests:
            if self._is_interrupted:
                self._note_interrupt()
                return None
            item = self._created.create(self._client, manifest, self._wait_if_early)
            uid = str(metadata_of(item)["uid"])
        return uid

    def _wait_if_early(self, refusal: ApiProblem) -> bool:
        """Wait a moment where the next try may be accepted; return whether there is to be one."""
        if not self._workload.is_early(str(refusal)):
            return False
        if self._early_s is None:
            self._early_s = self._timing.clock()
        if self._timing.clock() - self._early_s >= self._timing.learn_s:
            return False
        return not self._world.stop.wait(_SLICE_S)

    def _watch(self, uid: str) -> None:
        """Watch until the Job has ended or there is no use in waiting on."""
        entry = self._plan.entry
        watchdog = Watchdog(
            start_timeout_s=entry.start_timeout_s,
            run_timeout_s=entry.timeout_s,
            nodes=self._group.group.nodes,
            pods=self._workload.expected_pods(len(self._group.group.nodes)),
            timing=self._timing,
        )
        while True:
            generation = self._view.generation
            if self._is_interrupted:
                self._note_interrupt()
                return
            job = self._client.get(self._workload.kind, self._group.job_name)
            if job is None or metadata_of(job).get("uid") != uid:
                message = f"{self._workload.kind.kind} {self._group.job_name} vanished while it ran"
                self._problems.append(Problem(code="vanished", message=message))
                return
            self._job_object, self._job = job, self._workload.read_terminal(job)
            seen = self._look()
            self._record()
            if self._health.has_failed:
                return
            if self._job.terminal != "none":
                self._problems += watchdog.losses
                return
            state = watchdog.check(
                self._pods,
                self._view.nodes(),
                is_suspended=self._workload.is_suspended(job),
                is_deciding=self._workload.is_deciding(job),
            )
            if state.problems:
                self._problems += explained(state.problems, self._events())
                return
            if self._is_stalled(watchdog):
                return
            self._tell(state.phase, remaining_s=state.remaining_s, detail=state.detail)
            self._wait(generation, seen)

    def _record(self) -> None:
        """Put what is known of the attempt where a kill -9 does not reach it, now and then."""
        record, now_s = self._world.record, self._timing.clock()
        is_due = self._recorded_s is None or now_s - self._recorded_s >= self._timing.record_s
        if record is not None and is_due:
            self._recorded_s = now_s
            record(self._evidence(), self._logs.growing())

    def _is_stalled(self, watchdog: Watchdog) -> bool:
        is_stalled = self._world.is_stalled
        if is_stalled is None or not watchdog.is_stall_check_due():
            return False
        if not is_stalled(replace(self._evidence(), logs=self._logs.so_far(_TAIL_BYTES))):
            return False
        message = "stalled: the workload makes no progress any more"
        self._problems.append(Problem(code="stalled", message=message))
        return True

    def _look(self) -> object:
        """Take in what the watches show; return a mark that differs when anything has changed."""
        problem = self._view.problem
        if problem is not None:
            raise problem
        self._health.look(self._view.nodes())
        pods = self._take(self._view.pods(JOB_LABEL, self._group.job_name))
        versions = tuple(metadata_of(pod).get("resourceVersion") for pod in pods)
        return versions, self._view.job_version(self._group.job_name), self._health.has_failed

    def _take(self, pods: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
        """Take in the pods that our Job owns and follow their logs; return them."""
        if self._job_object is None:
            return ()
        own = self._kin.pods_of(self._job_object, pods)
        for pod, facts in self._pods.update(own, self._view.gone()):
            self._logs.follow(pod, facts)
        return own

    def _wait(self, generation: int, seen: object) -> None:
        """Wait for a change of our own objects, an interrupt, or until the Job is due for a read."""
        until_s = self._timing.clock() + self._timing.poll_s
        while not self._is_interrupted:
            left_s = until_s - self._timing.clock()
            if left_s <= 0:
                return
            self._view.wait(min(left_s, _SLICE_S), generation)
            generation = self._view.generation
            if self._look() != seen:
                return

    def _drain(self, job: JobFacts) -> None:
        """After the Job's end: wait for its pods' ends, read them afresh, read the logs' ends."""
        self._tell("draining")
        until_s = self._timing.clock() + self._timing.pods_end_s
        while not self._pods.have_ended and not self._is_interrupted:
            left_s = until_s - self._timing.clock()
            if left_s <= 0:
                break
            self._view.wait(min(left_s, _SLICE_S), self._view.generation)
            self._look()
        self._take(self._client.list(POD, label_selector=self._selector).items)
        self._look_again_at_nodes()
        if self._is_interrupted:
            self._note_interrupt()
            self._streams = self._logs.abandon()
            return
        if job.terminal == "failed" and self._job_object is not None:
            job = self._workload.read_terminal(self._job_object, self._kin.read_again())
            self._job = job
        self._streams, log_problems = self._logs.finish(self._timing.drain_s)
        found = [*self._problems, *self._pods.problems()]
        ended = end_problems(job, self._pods.facts, found, self._pods.killed)
        self._problems = [*ended, *log_problems]

    def _look_again_at_nodes(self) -> None:
        """Take in the nodes afresh: a watch may lag, or be silent for a minute before that is known."""
        names = self._group.group.nodes
        if len(names) <= _FEW_NODES:
            selectors = [f"metadata.name={name}" for name in names]
        else:
            selectors = [""]
        for selector in selectors:
            nodes = self._client.list(NODE, field_selector=selector).items
            self._health.look({str(metadata_of(node).get("name")): node for node in nodes})

    def _evidence(self) -> GroupEvidence:
        job = self._job
        times = phase_times(
            job, self._pods.facts, self._pods.scheduled_ns, len(self._group.group.nodes)
        )
        return replace(
            evidence_of(self._plan, self._group),
            job=job,
            pods=self._pods.facts,
            logs=self._streams,
            problems=(*self._problems, *self._health.problems),
            events=self._events(),
            nodes_before=self._health.before,
            nodes_after=self._health.after,
            queue_s=times.queue_s,
            start_s=times.start_s,
            run_s=times.run_s,
        )

    def _events(self) -> tuple[Mapping[str, str], ...]:
        about = self._pods.uids | self._kin.uids | ({self._job.uid} if self._job else set())
        return event_facts(self._view.events(), about)

    def _remove(self) -> tuple[str, ...]:
        self._tell("cleaning")
        client = self._client
        if self._is_interrupted:
            # The patient one would give up at once now: its retries end with the interrupt.
            policy = replace(self._world.client.retry, budget_s=INTERRUPTED_BUDGET_S)
            client = self._world.client.with_retry(policy)
        return self._created.remove(
            client,
            self._selector,
            patience_s=lambda: (
                self._timing.interrupted_s if self._is_interrupted else self._timing.gone_s
            ),
            clock=self._timing.clock,
        )

    @property
    def _is_interrupted(self) -> bool:
        return self._world.is_over

    def _note_interrupt(self) -> None:
        self._problems.append(Problem(code="interrupted", message=self._world.over_words))

    def _tell(self, phase: Phase, *, remaining_s: float | None = None, detail: str = "") -> None:
        """Tell a new phase or number of running pods at once, a longer log soon, all now and then."""
        now_s = self._timing.clock()
        news = (phase, self._pods.running, self._logs.size_bytes)
        if self._told is not None:
            told, told_s = self._told
            pause_s = self._timing.progress_s if news == told else self._timing.poll_s
            if news[:2] == told[:2] and now_s - told_s < pause_s:
                return
        self._told = (news, now_s)
        self._world.on_progress(
            GroupProgress(
                entry=self._plan.entry.name,
                scale=self._plan.scale,
                group=self._group.group.name,
                attempt=self._group.attempt,
                nodes=self._group.group.nodes,
                phase=phase,
                pods_running=news[1],
                remaining_s=remaining_s,
                detail=detail,
                log_bytes=news[2],
            )
        )
