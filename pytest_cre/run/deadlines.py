"""Whether it is of use to wait on for a Job: deadlines, bad starts, lost pods and nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_cre.cluster.objects import condition
from pytest_cre.evidence.model import Problem
from pytest_cre.run.clocks import RunTiming
from pytest_cre.run.diagnosis import BAD_START, DISRUPTED, start_problems
from pytest_cre.run.progress import Phase
from pytest_cre.run.seenpods import SeenPods


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitState:
    """Where a Job stands. `problems` are the reasons to give it up; empty: wait on."""

    phase: Phase
    problems: tuple[Problem, ...] = ()
    remaining_s: float | None = None  # until the deadline of the phase
    detail: str = ""


class Watchdog:
    """Each phase has its own deadline. Created when the workload is; `pods` are all it will have."""

    def __init__(
        self,
        *,
        start_timeout_s: float,
        run_timeout_s: float,
        nodes: Sequence[str],
        pods: int,
        timing: RunTiming,
    ) -> None:
        self._start_timeout_s = start_timeout_s
        self._run_timeout_s = run_timeout_s
        self._nodes = nodes
        self._pods = pods
        self._timing = timing
        self._began_s = timing.clock()
        self._ran_s: float | None = None
        self._bad_since_s: float | None = None
        self._lost_since_s: dict[str, float] = {}
        self._losses: dict[tuple[str, str | None], Problem] = {}
        self._spoiled_s: float | None = None
        self._stall_checked_s = self._began_s

    @property
    def losses(self) -> tuple[Problem, ...]:
        """Return the pods and nodes lost so far, each once."""
        return tuple(self._losses.values())

    @property
    def ran_s(self) -> float:
        """Return for how long all pods have run, by our own clock."""
        return self._timing.clock() - self._ran_s if self._ran_s is not None else 0.0

    def check(
        self,
        pods: SeenPods,
        nodes: Mapping[str, Mapping[str, Any]],
        *,
        is_suspended: bool,
        is_deciding: bool,
    ) -> WaitState:
        """Return where a Job that has not ended stands now.

        A suspended Job is queued: no deadline runs. One that is being decided deletes pods itself.
        """
        now_s = self._timing.clock()
        if is_suspended:
            self._began_s = now_s
            return WaitState(phase="queued", detail="suspended: waiting to be admitted")
        problems = pods.problems()
        if not is_deciding:
            self._note_losses(now_s, problems, nodes)
        if self._spoiled_s is not None and now_s - self._spoiled_s >= self._timing.spoiled_s:
            return WaitState(phase="running", problems=self.losses)
        if self._ran_s is None and pods.started >= self._pods:
            self._ran_s = now_s
        if self._ran_s is None:
            return self._starting(now_s, pods, problems)
        return self._running(now_s)

    def is_stall_check_due(self) -> bool:
        """Return whether a running Job should be looked at for progress; True once per interval."""
        now_s = self._timing.clock()
        if self._ran_s is None or now_s - self._stall_checked_s < self._timing.stall_check_s:
            return False
        self._stall_checked_s = now_s
        return True

    def _starting(self, now_s: float, pods: SeenPods, problems: Sequence[Problem]) -> WaitState:
        planned = self._pods
        phase: Phase = "starting" if pods.scheduled >= planned else "queued"
        bad = tuple(each for each in problems if each.code in BAD_START)
        if not bad:
            self._bad_since_s = None
        elif self._bad_since_s is None:
            self._bad_since_s = now_s
        is_hopeless = (
            self._bad_since_s is not None and now_s - self._bad_since_s >= self._timing.bad_start_s
        )
        remaining_s = self._began_s + self._start_timeout_s - now_s
        found: tuple[Problem, ...] = ()
        if is_hopeless or remaining_s <= 0:
            found = start_problems(
                bad if is_hopeless else problems,
                started=pods.started,
                planned=planned,
                timeout_s=self._start_timeout_s,
            )
        detail = next((each.message for each in problems), "")
        return WaitState(
            phase=phase, problems=found, remaining_s=max(0.0, remaining_s), detail=detail
        )

    def _running(self, now_s: float) -> WaitState:
        ran_s = now_s if self._ran_s is None else self._ran_s
        remaining_s = ran_s + self._run_timeout_s - now_s
        if remaining_s > 0:
            return WaitState(phase="running", remaining_s=remaining_s)
        message = f"not done within {self._run_timeout_s:g} s of the start of every pod"
        return WaitState(
            phase="running",
            problems=(*self.losses, Problem(code="run-timeout", message=message)),
        )

    def _note_losses(
        self, now_s: float, problems: Sequence[Problem], nodes: Mapping[str, Mapping[str, Any]]
    ) -> None:
        for problem in problems:
            if problem.code in DISRUPTED or problem.code == "pod-deleted":
                self._losses.setdefault((problem.code, problem.pod), problem)
        for name in self._nodes:
            why = _lost_words(nodes, name)
            if why is None:
                self._lost_since_s.pop(name, None)
            elif now_s - self._lost_since_s.setdefault(name, now_s) >= self._timing.node_lost_s:
                problem = Problem(code="node-unreachable", message=f"node {name}: {why}", node=name)
                self._losses.setdefault((problem.code, name), problem)
        if self._losses and self._spoiled_s is None:
            self._spoiled_s = now_s


def _lost_words(nodes: Mapping[str, Mapping[str, Any]], name: str) -> str | None:
    """Return why a node cannot be counted on, or None for a good one, and while none is known."""
    if not nodes:
        return None
    if name not in nodes:
        return "it is no longer in the cluster"
    if condition(nodes[name], "Ready") is None:
        return "the condition Ready is not True any more"
    return None
