"""One group of nodes: create its objects, live through its workload's lives, delete it all."""

from collections.abc import Mapping
from dataclasses import replace

from pytest_cre.cluster.workloads import workload_of
from pytest_cre.errors import ClusterProblem, UnmetNeed
from pytest_cre.evidence.model import GroupEvidence, PodFacts, Problem, Restart
from pytest_cre.plan.model import GroupPlan, WorkflowPlan
from pytest_cre.run.clocks import INTERRUPTED_BUDGET_S, phase_times, until_stopped
from pytest_cre.run.created import CreatedObjects
from pytest_cre.run.diagnosis import OF_LOGS, may_resume
from pytest_cre.run.facts import event_facts
from pytest_cre.run.health import NodeHealth
from pytest_cre.run.life import SELECTOR, Life
from pytest_cre.run.podlogs import ReadLog, sorted_streams
from pytest_cre.run.progress import GroupProgress, Phase
from pytest_cre.run.seenpods import order
from pytest_cre.run.world import World

_TAIL_BYTES = 1 << 18  # of each log are enough to see whether it moves


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
        self._client = world.client.with_retry(until_stopped(world.client.retry, world.stop))
        self._workload = workload_of(plan.kind)
        self._selector = SELECTOR.format(group.job_name)
        self._created = CreatedObjects(world.ledger)
        self._health = NodeHealth(group.group.nodes, world.health_rule)
        self._lives: list[Life] = []
        self._restarts: list[Restart] = []
        self._problems: list[Problem] = []
        self._told: tuple[tuple[Phase, int, int], float] | None = None
        self._recorded_s: float | None = None

    def run(self) -> tuple[GroupEvidence, tuple[str, ...]]:
        """Go through all phases; the clean-up comes whatever happened before."""
        try:
            self._attempt()
            evidence = self._evidence()
            if self._world.keep(evidence):
                return evidence, ()
        except BaseException:
            self._abandon()
            self._remove()
            raise
        leftovers = self._remove()
        self._tell("done")
        return evidence, leftovers

    def _attempt(self) -> None:
        try:
            self._tell("creating")
            if not self._world.is_over:
                self._health.look_again(self._client)  # as they are before they are used
            if self._create_surroundings():
                while self._is_to_go_on(self._live()):
                    pass
        except ClusterProblem as problem:
            code = "interrupted" if self._world.is_over else "api-error"
            self._problems.append(Problem(code=code, message=str(problem)))
        self._abandon()

    def _abandon(self) -> None:
        for life in self._lives[-1:]:
            life.abandon()

    def _create_surroundings(self) -> bool:
        """Create every object but the workload; return False after an interrupt."""
        for manifest in self._group.manifests[:-1]:
            if self._world.is_over:
                break
            self._created.create(self._client, manifest)
        if self._world.is_over:
            self._problems.append(Problem(code="interrupted", message=self._world.over_words))
            return False
        return True

    def _live(self) -> Life:
        """Create the workload and see one life of it through."""
        entry = self._plan.entry
        life = Life(
            self._group,
            self._workload,
            self._world,
            self._client,
            self._health,
            first_attempt=self._restarts[-1].last_attempt + 1 if self._restarts else 0,
            start_timeout_s=entry.start_timeout_s,
            run_timeout_s=max(0.0, entry.timeout_s - sum(each.ran_s for each in self._lives)),
            tell=self._tell,
            on_look=self._record,
            looks_stalled=self._looks_stalled,
        )
        self._lives.append(life)
        life.run(self._group.manifests[-1], self._created)
        return life

    def _is_to_go_on(self, life: Life) -> bool:
        """Return whether the workload is to live again, from a checkpoint; it is gone then."""
        most, ended, resume_step = self._group.max_restarts, life.job, self._world.resume_step
        can_resume = may_resume(life.problems) and not self._health.problems
        if not most or resume_step is None or ended is None or not can_resume:
            return False
        life.cut()
        try:
            if len(self._restarts) >= most:
                times = "once" if most == 1 else f"{most} times"
                raise UnmetNeed(f"it was restarted {times} already (maxRestarts)")
            step = resume_step(self._evidence(), self._group)
            self._tell("restarting", detail=f"from the checkpoint of step {step}")
            if not self._created.end_workload(
                self._client,
                self._selector,
                patience_s=self._patience_s,
                clock=self._timing.clock,
            ):
                raise UnmetNeed(f"its pods are not gone after {self._patience_s():g} s")
        except UnmetNeed as need:
            life.problems.append(Problem(code="not-restarted", message=f"not restarted: {need}"))
            return False
        life.see_end()
        if self._world.is_over:
            life.problems.append(Problem(code="interrupted", message=self._world.over_words))
            return False
        self._restarts.append(
            Restart(
                job=ended,
                problems=tuple(each for each in life.problems if each.code not in OF_LOGS),
                step=step,
                last_attempt=max((pod.attempt for pod in self._pods), default=0),
            )
        )
        life.problems = [each for each in life.problems if each.code in OF_LOGS]
        return True

    def _record(self) -> None:
        """Put what is known of the attempt where a kill -9 does not reach it, now and then."""
        record, now_s = self._world.record, self._timing.clock()
        is_due = self._recorded_s is None or now_s - self._recorded_s >= self._timing.record_s
        if record is not None and is_due:
            self._recorded_s = now_s
            read = [ReadLog(log) for life in self._lives[:-1] for log in life.streams]
            record(self._evidence(has_logs=False), [*read, *self._lives[-1].logs.growing()])

    def _looks_stalled(self) -> bool:
        """Ask whether the present life of the workload makes no progress any more."""
        is_stalled, life = self._world.is_stalled, self._lives[-1]
        if is_stalled is None:
            return False
        evidence = replace(self._evidence(has_logs=False), pods=life.pods, restarts=())
        return is_stalled(replace(evidence, logs=life.logs.so_far(_TAIL_BYTES)))

    @property
    def _pods(self) -> tuple[PodFacts, ...]:
        return tuple(sorted((pod for life in self._lives for pod in life.pods), key=order))

    def _evidence(self, *, has_logs: bool = True) -> GroupEvidence:
        lives = self._lives
        job = lives[-1].job if lives else None
        first = self._restarts[0].job if self._restarts else job
        scheduled = {uid: time for life in lives for uid, time in life.scheduled_ns.items()}
        times = phase_times(
            replace(job, created_ns=first.created_ns) if job and first else job,
            self._pods,
            scheduled,
            len(self._group.group.nodes),
        )
        logs = [log for life in lives for log in life.streams] if has_logs else []
        return replace(
            evidence_of(self._plan, self._group),
            job=job,
            pods=self._pods,
            logs=sorted_streams(logs),
            problems=(
                *(each for life in lives for each in life.problems),
                *self._problems,
                *self._health.problems,
            ),
            events=self._events(),
            nodes_before=self._health.before,
            nodes_after=self._health.after,
            queue_s=times.queue_s,
            start_s=times.start_s,
            run_s=times.run_s,
            restarts=tuple(self._restarts),
        )

    def _events(self) -> tuple[Mapping[str, str], ...]:
        about = {uid for life in self._lives for uid in life.uids}
        return event_facts(self._world.view.events(), about)

    def _remove(self) -> tuple[str, ...]:
        self._tell("cleaning")
        client = self._client
        if self._world.is_over:
            # The patient one would give up at once now: its retries end with the interrupt.
            policy = replace(self._world.client.retry, budget_s=INTERRUPTED_BUDGET_S)
            client = self._world.client.with_retry(policy)
        return self._created.remove(
            client, self._selector, patience_s=self._patience_s, clock=self._timing.clock
        )

    def _patience_s(self) -> float:
        """Return how long to wait for deleted pods to be gone."""
        return self._timing.interrupted_s if self._world.is_over else self._timing.gone_s

    def _tell(self, phase: Phase, *, remaining_s: float | None = None, detail: str = "") -> None:
        """Tell a new phase or number of running pods at once, a longer log soon, all now and then."""
        now_s = self._timing.clock()
        running = self._lives[-1].pods_running if self._lives else 0
        news = (phase, running, sum(life.logs.size_bytes for life in self._lives))
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
