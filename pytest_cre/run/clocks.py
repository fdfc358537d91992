"""Deadlines of a run, and how long its parts took by the cluster's own clock."""

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_cre.cluster.objects import parse_time_ns, status_of
from pytest_cre.cluster.retry import RetryPolicy
from pytest_cre.evidence.model import JobFacts, PodFacts

INTERRUPTED_BUDGET_S = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTiming:
    """How patient a run is. Start and run deadlines are the entry's own."""

    poll_s: float = 1.0  # the Job is read this often though no watch reports a change
    learn_s: float = 15.0  # for a controller to learn of what was created before its workload
    bad_start_s: float = 10.0  # an image or configuration error must last this long to count
    node_lost_s: float = 15.0  # so must a node that is not ready
    spoiled_s: float = 20.0  # after a pod or node was lost, for the Job to come to its own end
    pods_end_s: float = 60.0  # after the Job's end, for its pods to end too
    drain_s: float = 30.0  # for the last log lines
    secure_s: float = 5.0  # for those of pods that end because another one has failed
    gone_s: float = 60.0  # after the delete, for the pods to be gone
    interrupted_s: float = 4.0  # instead of the last three after Ctrl-C
    stall_check_s: float = 5.0
    progress_s: float = 10.0  # a phase is told again this often
    record_s: float = 5.0  # evidence so far is put on disk this often
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTimes:
    """Seconds between times of the cluster; None where one of them is not known."""

    queue_s: float | None = None  # creation until every pod was scheduled
    start_s: float | None = None  # until every container ran
    run_s: float | None = None  # until the Job's terminal condition


def phase_times(
    job: JobFacts | None, pods: Iterable[PodFacts], scheduled_ns: Mapping[str, int], count: int
) -> PhaseTimes:
    """Return the phases of a workload on `count` nodes.

    Only the first pod of each place counts: a replacement is not part of the start. A launcher
    stands beside the pods that take the nodes' GPUs, and is created when those run. `scheduled_ns`
    holds the time of each scheduled pod by UID.
    """
    first = [pod for pod in pods if pod.attempt == 0]
    on_gpus = [pod for pod in first if pod.role != "launcher"]
    launchers = int(any(pod.role == "worker" for pod in first))
    created_ns = job.created_ns if job else None
    queued_ns = _latest((scheduled_ns.get(pod.uid) for pod in on_gpus), count)
    started_ns = _latest((pod.started_ns for pod in first), count + launchers)
    return PhaseTimes(
        queue_s=_between_s(created_ns, queued_ns),
        start_s=_between_s(queued_ns, started_ns),
        run_s=_between_s(started_ns, job.terminal_ns if job else None),
    )


def scheduled_ns(pod: Mapping[str, Any]) -> int | None:
    """Return when the pod was given a node, or None while it has none."""
    for condition in status_of(pod).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return parse_time_ns(condition.get("lastTransitionTime"))
    return None


def until_stopped(policy: RetryPolicy, stop: threading.Event) -> RetryPolicy:
    """Return the policy with retries that end as soon as `stop` is set."""

    def clock() -> float:
        return math.inf if stop.is_set() else policy.clock()

    def sleep(pause_s: float) -> None:
        stop.wait(pause_s)

    return replace(policy, clock=clock, sleep=sleep)


def _latest(times_ns: Iterable[int | None], count: int) -> int | None:
    known = [each for each in times_ns if each is not None]
    return max(known) if len(known) == count else None


def _between_s(first_ns: int | None, second_ns: int | None) -> float | None:
    if first_ns is None or second_ns is None:
        return None
    return max(0, second_ns - first_ns) / 1e9
