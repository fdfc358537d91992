"""The streams of one Job to one measurement.

Feed a `Meter`, or call `measure_streams` with what is in memory and `measure_group` with evidence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_cre.catalog.logprofile import LogProfile
from pytest_cre.evidence.model import GroupEvidence, LogStream
from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.bandwidth import assemble
from pytest_cre.measure.bandwidth_json import table_of
from pytest_cre.measure.bandwidth_measurement import measure_bandwidth, profile_table
from pytest_cre.measure.devices import kind_of_devices, measure_devices
from pytest_cre.measure.failure import Failures
from pytest_cre.measure.lifetimes import lifetimes_of
from pytest_cre.measure.merge import Merged, merge
from pytest_cre.measure.model import (
    Dropped,
    Kind,
    Measurement,
)
from pytest_cre.measure.profile import CompiledProfile
from pytest_cre.measure.reasons import NO_DATA
from pytest_cre.measure.stream import StreamReader
from pytest_cre.measure.surroundings import Surroundings
from pytest_cre.measure.table import AssembledTable
from pytest_cre.measure.training_measurement import measure_training
from pytest_cre.measure.transport import TransportReader


class Meter:
    """Reads the streams of one Job, in blocks of any size, and measures them.

    `profile` None: the format is recognised from the text. `is_prefiltered` False reads every line,
    which is slow and gives the same.
    """

    def __init__(self, profile: LogProfile | None = None, *, is_prefiltered: bool = True) -> None:
        self._profile = profile
        self._compiled = CompiledProfile(profile) if profile else None
        self._transport = TransportReader()
        self._streams: list[StreamReader] = []
        self._is_prefiltered = is_prefiltered

    def open(self, name: str, *, attempt: int = 0, restart_count: int = 0) -> StreamReader:
        """Return a reader for one more stream; feed it, then close it. Names must differ."""
        kind: Kind = "none"
        if self._profile is not None:
            kind = self._profile.reads
        stream = StreamReader(
            name,
            kind=kind,
            transport=self._transport,
            profile=self._compiled,
            attempt=attempt,
            restart_count=restart_count,
            is_prefiltered=self._is_prefiltered,
        )
        self._streams.append(stream)
        return stream

    @property
    def streams(self) -> Sequence[StreamReader]:
        """Return the readers opened so far."""
        return self._streams

    def result(self, around: Surroundings | None = None) -> Measurement:
        """Measure what was read."""
        around = around or Surroundings()
        tables, failures = self._tables()
        rows = sum(len(each.table.rows) for each in tables)
        merged = merge(
            self._streams,
            attempts=around.attempts,
            started_streams=around.started_streams,
            near_ns=around.window_start_ns or around.window_end_ns,
        )
        kind = self._kind(rows, merged, around)
        profile = self._profile.name if self._profile else None
        worst = failures.worst
        if kind == "bandwidth" and (tables or worst or self._profile):
            measured = measure_bandwidth(
                tables, failures, self._transport, around, profile=profile or "nccl-bandwidth"
            )
        elif kind == "training":
            measured = measure_training(merged, around, self._profile)
        elif kind in ("gemm", "diagnostics"):
            measured = measure_devices(
                kind,
                self._newest(),
                profile=profile,
                reasons=around.reasons,
                gpus_planned=around.ranks_planned,
                failure=worst.text if worst else None,
            )
        else:
            measured = Measurement(
                kind="none", profile=profile, status="no-data", reasons=(NO_DATA,)
            )
        return replace(measured, dropped=self._dropped())

    def _kind(self, rows: int, merged: Merged, around: Surroundings) -> Kind:
        if self._profile is not None:
            return self._profile.reads
        if rows or len(merged.steps):
            return "bandwidth" if rows >= len(merged.steps) else "training"
        if devices := kind_of_devices(self._newest()):
            return devices
        has_window = around.window_start_ns is not None and around.window_end_ns is not None
        if merged.framework is not None and (has_window or merged.failures.worst):
            return "training"
        is_benchmark = any(
            (each.tables and each.tables.lines) or (each.documents and each.documents.documents)
            for each in self._streams
        )
        return "bandwidth" if is_benchmark else "none"

    def _tables(self) -> tuple[list[AssembledTable], Failures]:
        """Return the tables of the newest attempt, and the failures told there."""
        last = self._newest()
        tables = assemble([each.tables.lines for each in last if each.tables is not None])
        for each in last:
            if each.documents is not None:
                tables.extend(table_of(document) for document in each.documents.documents)
        if not any(each.table.rows for each in tables):
            rows = [row for each in last for row in each.profile_rows]
            tables = [profile_table(rows), *tables] if rows else tables
        failures = Failures()
        for each in last:
            failures.join(each.failures)
        return tables, failures

    def _newest(self) -> list[StreamReader]:
        """Return the streams of the newest attempt."""
        newest = max((each.attempt for each in self._streams), default=0)
        last = [each for each in self._streams if each.attempt == newest]
        restarts = max((each.restart_count for each in last), default=0)
        return [each for each in last if each.restart_count == restarts or not restarts]

    def _dropped(self) -> Dropped:
        texts = [each.text for each in self._streams]
        return Dropped(
            lines_too_long=sum(text.lines_too_long for text in texts),
            undecodable_bytes=sum(text.undecodable_bytes for text in texts),
            unmatched_lines=sum(text.unmatched_lines for text in texts),
        )


def measure_streams(
    streams: Sequence[LogStream],
    *,
    profile: LogProfile | None = None,
    profiles: Mapping[str, LogProfile] | None = None,
    window_start_ns: int | None = None,
    window_end_ns: int | None = None,
    succeeded: bool | None = None,
    ranks_planned: int | None = None,
    params: LedgerParams | None = None,
) -> Measurement:
    """Measure the streams of one Job.

    `profile` None: the format is recognised from the text, and its numbers (warm-up, log interval)
    are those of the log itself. `profiles` are not needed for that. Several streams of one pod are
    told apart by attempt and restart count.
    """
    _ = profiles
    meter, attempts = _read(streams, profile)
    return meter.result(
        Surroundings(
            window_start_ns=window_start_ns,
            window_end_ns=window_end_ns,
            succeeded=succeeded,
            ranks_planned=ranks_planned,
            params=params or LedgerParams(),
            attempts=attempts,
        )
    )


def measure_group(
    evidence: GroupEvidence,
    profile: LogProfile,
    profiles: Mapping[str, LogProfile] | None = None,
    params: LedgerParams | None = None,
) -> Measurement:
    """Measure a group from its logs and from what Kubernetes said of its Job and pods."""
    _ = profiles
    logs = [log for log in evidence.logs if not log.is_context]
    meter, attempts = _read(logs, profile)
    job = evidence.job
    workers = [pod for pod in evidence.pods if pod.role == "worker"]
    ranks = [pod for pod in evidence.pods if pod.role != "worker"]
    lifetimes = lifetimes_of(ranks, meter.streams, attempts)
    reasons = set()
    if any(log.has_gap for log in logs):
        reasons.add("log-gap")
    if any(not (log.is_complete or log.is_cut) for log in logs):
        reasons.add("log-incomplete")
    if job is None or job.terminal == "none":
        reasons.add("job-unfinished")
    elif job.terminal == "failed":
        reasons.add("job-failed")
    started = [e.t_ns for e in lifetimes.events if e.kind == "proc_start" and e.t_ns is not None]
    started += [pod.started_ns for pod in workers if pod.started_ns is not None]
    if not started and job is not None and job.started_ns is not None:
        started = [job.started_ns]
    gpus = len(evidence.nodes) * evidence.gpus_per_node
    given = params or LedgerParams()
    return meter.result(
        Surroundings(
            window_start_ns=min(started, default=None),
            window_end_ns=job.terminal_ns if job and job.terminal != "none" else None,
            succeeded={"succeeded": True, "failed": False}.get(job.terminal) if job else None,
            ranks_planned=evidence.ranks_planned,
            tables_expected=1,
            hosts=len(evidence.nodes) or None,
            params=replace(
                given,
                gpus=given.gpus if given.gpus is not None else gpus or None,
                queue_s=given.queue_s or evidence.queue_s or 0.0,
            ),
            events=lifetimes.events,
            started_streams=lifetimes.started_streams,
            attempts=attempts,
            reasons=frozenset(reasons),
        )
    )


def _read(
    streams: Sequence[LogStream], profile: LogProfile | None
) -> tuple[Meter, Mapping[str, int]]:
    """Read streams in the order of attempts; return the attempt of each where there are several."""
    meter = Meter(profile)
    attempts: dict[str, int] = {}
    for log in sorted(streams, key=lambda each: (each.attempt, each.restart_count)):
        name, copy = log.pod, 1
        while name in attempts:
            copy += 1
            name = f"{log.pod}#{copy}"
        attempts[name] = log.attempt
        reader = meter.open(name, attempt=log.attempt, restart_count=log.restart_count)
        reader.feed(log.data)
        reader.close()
    return meter, attempts if len(set(attempts.values())) > 1 else {}
