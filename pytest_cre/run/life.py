"""One life of a group's workload: created, watched to its end, its logs read."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_cre.cluster.client import ApiProblem
from pytest_cre.cluster.objects import POD, metadata_of
from pytest_cre.cluster.workloads.protocol import Workload
from pytest_cre.evidence.model import JobFacts, LogStream, PodFacts, Problem
from pytest_cre.plan.model import GroupPlan
from pytest_cre.plan.render import JOB_LABEL
from pytest_cre.run.created import CreatedObjects
from pytest_cre.run.deadlines import Watchdog
from pytest_cre.run.diagnosis import end_problems, explained
from pytest_cre.run.facts import event_facts
from pytest_cre.run.health import NodeHealth
from pytest_cre.run.kin import Kin
from pytest_cre.run.podlogs import PodLogs
from pytest_cre.run.seenpods import SeenPods
from pytest_cre.run.world import World

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

SLICE_S = 0.25  # how late an interrupt may be noticed
SELECTOR = f"{JOB_LABEL}={{}}"
Tell = Callable[..., None]


class Life:
    """One workload object and its pods. Raises `ClusterProblem` for trouble with the API.

    `tell` takes the phase and what is known of it; `on_look` is called after each look at a running
    workload; `looks_stalled` says whether it makes no progress any more. `first_attempt` is the
    attempt number of its first pods, `run_timeout_s` how long it may run.
    """

    def __init__(
        self,
        group: GroupPlan,
        workload: Workload,
        world: World,
        client: "Client",
        health: NodeHealth,
        *,
        first_attempt: int,
        start_timeout_s: float,
        run_timeout_s: float,
        tell: Tell,
        on_look: Callable[[], None],
        looks_stalled: Callable[[], bool],
    ) -> None:
        self._group = group
        self._workload = workload
        self._world = world
        self._view = world.view
        self._client = client
        self._timing = world.timing
        self._health = health
        self._start_timeout_s = start_timeout_s
        self._run_timeout_s = run_timeout_s
        self._tell = tell
        self._on_look = on_look
        self._looks_stalled = looks_stalled
        self._kin = Kin(client)
        self._seen_pods = SeenPods(workload, first_attempt=first_attempt)
        self._job_object: Mapping[str, Any] | None = None
        self._job_version: str | None = None  # as the watch had it before the last read
        self._job_due_s = 0.0  # when the Job is read again without a change
        self._early_s: float | None = None  # since when the workload is refused
        self._watchdog: Watchdog | None = None
        self._is_secured = False
        self.logs = PodLogs(client, workload.main_container, world.timing.clock)
        self.streams: tuple[LogStream, ...] = ()
        self.problems: list[Problem] = []
        self.job: JobFacts | None = None

    @property
    def pods(self) -> tuple[PodFacts, ...]:
        """Return the pods that it ever had."""
        return self._seen_pods.facts

    @property
    def pods_running(self) -> int:
        """Return how many of its containers run now."""
        return self._seen_pods.running

    @property
    def scheduled_ns(self) -> Mapping[str, int]:
        """Return when each of its pods was given a node, by UID."""
        return self._seen_pods.scheduled_ns

    @property
    def ran_s(self) -> float:
        """Return for how long all its pods have run, by our own clock."""
        return self._watchdog.ran_s if self._watchdog is not None else 0.0

    @property
    def uids(self) -> frozenset[str]:
        """Return the UIDs of it, of its pods and of what stands between."""
        own = {self.job.uid} if self.job is not None else set()
        return self._seen_pods.uids | self._kin.uids | own

    def run(self, manifest: Mapping[str, object], created: CreatedObjects) -> None:
        """Create the workload, the rest being there, and watch it to its end or until it is given up.

        A workload that came to its own end has its logs read whole; else they are still followed.
        """
        item = created.create(self._client, manifest, self._wait_if_early)
        self._watch(str(metadata_of(item)["uid"]))
        if self.job is not None and self.job.terminal != "none" and not self._world.is_over:
            self._drain(self.job)

    def abandon(self) -> None:
        """Take the logs as they are, where they were not read to their end."""
        self.streams = self.streams or self.logs.abandon()

    def cut(self) -> None:
        """Read what has been written so far, before the run itself ends the workload."""
        if not self.streams:
            self.streams, problems = self.logs.cut(self._timing.drain_s)
            self.problems += problems

    def see_end(self) -> None:
        """Take in how its pods ended, after the run itself has ended the workload."""
        until_s = self._timing.clock() + self._timing.pods_end_s
        self._look()
        while not self._seen_pods.are_gone and not self._world.is_over:
            if self._timing.clock() >= until_s:
                return
            self._view.wait(SLICE_S, self._view.generation)
            self._look()

    def _wait_if_early(self, refusal: ApiProblem) -> bool:
        """Wait a moment where the next try may be accepted; return whether there is to be one."""
        if not self._workload.is_early(str(refusal)):
            return False
        if self._early_s is None:
            self._early_s = self._timing.clock()
        if self._timing.clock() - self._early_s >= self._timing.learn_s:
            return False
        return not self._world.stop.wait(SLICE_S)

    def _watch(self, uid: str) -> None:
        """Watch until the Job has ended or there is no use in waiting on."""
        watchdog = self._watchdog = Watchdog(
            start_timeout_s=self._start_timeout_s,
            run_timeout_s=self._run_timeout_s,
            nodes=self._group.group.nodes,
            pods=self._workload.expected_pods(len(self._group.group.nodes)),
            timing=self._timing,
        )
        while True:
            generation = self._view.generation
            if self._world.is_over:
                self._note_interrupt()
                return
            job = self._read_job()
            if job is None or metadata_of(job).get("uid") != uid:
                message = f"{self._workload.kind.kind} {self._group.job_name} vanished while it ran"
                self.problems.append(Problem(code="vanished", message=message))
                return
            self._job_object, self.job = job, self._workload.read_terminal(job)
            seen = self._look()
            self._on_look()
            if self._health.has_failed:
                return
            if self.job.terminal != "none":
                self.problems += watchdog.losses
                return
            state = watchdog.check(
                self._seen_pods,
                self._view.nodes(),
                is_suspended=self._workload.is_suspended(job),
                is_deciding=self._workload.is_deciding(job),
            )
            if state.problems:
                events = event_facts(self._view.events(), self.uids)
                self.problems += explained(state.problems, events)
                return
            if watchdog.is_stall_check_due() and self._looks_stalled():
                message = "stalled: the workload makes no progress any more"
                self.problems.append(Problem(code="stalled", message=message))
                return
            self._tell(state.phase, remaining_s=state.remaining_s, detail=state.detail)
            self._wait(generation, seen)

    def _read_job(self) -> Mapping[str, Any] | None:
        """Return the Job, read anew where a watch shows a change or none was read for a while.

        Pods change much more often, and a Job of many would be read for each of them.
        """
        version, now_s = self._view.job_version(self._group.job_name), self._timing.clock()
        if version == self._job_version and now_s < self._job_due_s:
            return self._job_object
        self._job_version, self._job_due_s = version, now_s + self._timing.poll_s
        return self._client.get(self._workload.kind, self._group.job_name)

    def _look(self) -> object:
        """Take in what the watches show; return a mark that differs when anything has changed."""
        problem = self._view.problem
        if problem is not None:
            raise problem
        self._health.look(self._view.nodes())
        pods = self._take(self._view.pods(JOB_LABEL, self._group.job_name))
        if self._group.max_restarts and self._seen_pods.have_failed and not self._is_secured:
            # Its Job deletes the others, which then stay for a moment; the next life needs their logs.
            self._is_secured = True
            self.logs.secure(self._timing.secure_s)
        versions = tuple(metadata_of(pod).get("resourceVersion") for pod in pods)
        return versions, self._view.job_version(self._group.job_name), self._health.has_failed

    def _take(self, pods: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
        """Take in the pods that our Job owns and follow their logs; return them."""
        if self._job_object is None:
            return ()
        own = self._kin.pods_of(self._job_object, pods)
        for pod, facts in self._seen_pods.update(own, self._view.gone()):
            self.logs.follow(pod, facts)
        return own

    def _wait(self, generation: int, seen: object) -> None:
        """Wait for a change of our own objects, an interrupt, or until the Job is due for a read."""
        while not self._world.is_over:
            left_s = self._job_due_s - self._timing.clock()
            if left_s <= 0:
                return
            self._view.wait(min(left_s, SLICE_S), generation)
            generation = self._view.generation
            if self._look() != seen:
                return

    def _drain(self, job: JobFacts) -> None:
        """After the Job's end: wait for its pods' ends, read them afresh, read the logs' ends."""
        self._tell("draining")
        until_s = self._timing.clock() + self._timing.pods_end_s
        while not self._seen_pods.have_ended and not self._world.is_over:
            left_s = until_s - self._timing.clock()
            if left_s <= 0:
                break
            self._view.wait(min(left_s, SLICE_S), self._view.generation)
            self._look()
        selector = SELECTOR.format(self._group.job_name)
        self._take(self._client.list(POD, label_selector=selector).items)
        self._health.look_again(self._client)
        if self._world.is_over:
            self._note_interrupt()
            self.abandon()
            return
        if job.terminal == "failed" and self._job_object is not None:
            job = self._workload.read_terminal(self._job_object, self._kin.read_again())
            self.job = job
        self.streams, log_problems = self.logs.finish(self._timing.drain_s)
        pods = self._seen_pods
        found = [*self.problems, *pods.problems()]
        ended = end_problems(job, pods.facts, found, pods.killed, pods.flips)
        self.problems = [*ended, *log_problems]

    def _note_interrupt(self) -> None:
        self.problems.append(Problem(code="interrupted", message=self._world.over_words))
