"""When containers ran, as Kubernetes tells it, and as logs tell it of containers that are gone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_cre.evidence.model import PodFacts
from pytest_cre.measure.events import TrainingEvent
from pytest_cre.measure.stream import StreamReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """Starts and exits of processes; `started_streams` are the logs whose start is among them."""

    events: tuple[TrainingEvent, ...]
    started_streams: frozenset[str]


def lifetimes_of(
    pods: Sequence[PodFacts], streams: Sequence[StreamReader], attempts: Mapping[str, int]
) -> Lifetimes:
    """Return the lifetimes of all containers, each under the name of its log.

    Of a container that was restarted in place only its log is left: it lived from its first line
    to its last.
    """
    events: list[TrainingEvent] = []
    started: set[str] = set()
    newest: dict[str, StreamReader] = {}
    for stream in streams:
        pod = stream.name.partition("#")[0]
        before = newest.get(pod)
        if before is not None:
            events.extend(_from_log(before, attempts.get(before.name)))
            started.add(before.name)
        newest[pod] = stream
    for pod_facts in pods:
        stream_name = newest[pod_facts.name].name if pod_facts.name in newest else pod_facts.name
        attempt = pod_facts.attempt if attempts else None
        if pod_facts.started_ns is not None:
            started.add(stream_name)
            events.append(
                TrainingEvent(
                    kind="proc_start",
                    t_ns=pod_facts.started_ns,
                    t_source="api",
                    attempt=attempt,
                    stream=stream_name,
                )
            )
        if pod_facts.finished_ns is not None and pod_facts.exit_code is not None:
            events.append(
                TrainingEvent(
                    kind="abort" if pod_facts.exit_code else "end",
                    t_ns=pod_facts.finished_ns,
                    t_source="api",
                    attempt=attempt,
                    stream=stream_name,
                    reason=_reason(pod_facts) if pod_facts.exit_code else None,
                )
            )
    return Lifetimes(events=tuple(events), started_streams=frozenset(started))


def _reason(pod: PodFacts) -> str:
    return pod.reason or f"exit code {pod.exit_code}"


def _from_log(stream: StreamReader, attempt: int | None) -> list[TrainingEvent]:
    events = []
    first, last = stream.text.first_line.kubelet_ns, stream.text.last_line.kubelet_ns
    if first is not None:
        events.append(
            TrainingEvent(
                kind="proc_start",
                t_ns=first,
                t_source="inferred",
                attempt=attempt,
                stream=stream.name,
            )
        )
    if last is not None:
        events.append(
            TrainingEvent(
                kind="abort",
                t_ns=last,
                t_source="inferred",
                attempt=attempt,
                stream=stream.name,
                reason="container restarted",
            )
        )
    return events
