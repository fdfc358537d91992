"""The streams of one Job to one measurement.

Feed a `Meter`, or call `measure_streams` with what is in memory and `measure_group` with evidence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_cre.catalog.logprofile import LogProfile
from pytest_cre.evidence.model import GroupEvidence, LogStream
from pytest_cre.measure.account import LedgerParams, TrainingAccount
from pytest_cre.measure.advice import advice_of
from pytest_cre.measure.bandwidth import AssembledTable, assemble
from pytest_cre.measure.bandwidth_json import table_of
from pytest_cre.measure.events import StepRun, TrainingEvent
from pytest_cre.measure.failure import Failures
from pytest_cre.measure.goodput import account
from pytest_cre.measure.instants import SECOND_NS
from pytest_cre.measure.lifetimes import lifetimes_of
from pytest_cre.measure.merge import Merged, merge
from pytest_cre.measure.model import (
    BandwidthMeasurement,
    BandwidthRow,
    BandwidthTable,
    Dropped,
    HalfRow,
    Kind,
    Measurement,
    TrainingMeasurement,
)
from pytest_cre.measure.profile import CompiledProfile
from pytest_cre.measure.reasons import NO_DATA, status_of
from pytest_cre.measure.stream import StreamReader
from pytest_cre.measure.transport import TransportReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is known of a Job beside its logs.

    The window is when resources were held: from the first pod's start to the Job's terminal time.
    `events` come from pods, `started_streams` are those whose process start is among them, `attempts`
    names the attempt of each stream. `reasons` hold against the whole.
    """

    window_start_ns: int | None = None
    window_end_ns: int | None = None
    succeeded: bool | None = None
    ranks_planned: int | None = None
    tables_expected: int | None = None
    hosts: int | None = None
    params: LedgerParams = field(default_factory=LedgerParams)
    events: tuple[TrainingEvent, ...] = ()
    started_streams: frozenset[str] = frozenset()
    attempts: Mapping[str, int] = field(default_factory=dict)
    reasons: frozenset[str] = frozenset()


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
            kind = "bandwidth" if self._profile.reads_bandwidth else "training"
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
            self._streams, attempts=around.attempts, started_streams=around.started_streams
        )
        kind = self._kind(rows, merged, around)
        if kind == "bandwidth" and (tables or failures.worst or self._profile):
            return self._bandwidth(tables, failures, around)
        if kind == "training":
            return self._training(merged, around)
        return Measurement(
            kind="none",
            profile=self._profile.name if self._profile else None,
            status="no-data",
            reasons=(NO_DATA,),
            dropped=self._dropped(),
        )

    def _kind(self, rows: int, merged: Merged, around: Surroundings) -> Kind:
        if self._profile is not None:
            return "bandwidth" if self._profile.reads_bandwidth else "training"
        if rows or len(merged.steps):
            return "bandwidth" if rows >= len(merged.steps) else "training"
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
        newest = max((each.attempt for each in self._streams), default=0)
        last = [each for each in self._streams if each.attempt == newest]
        restarts = max((each.restart_count for each in last), default=0)
        last = [each for each in last if each.restart_count == restarts or not restarts]
        tables = assemble([each.tables.lines for each in last if each.tables is not None])
        for each in last:
            if each.documents is not None:
                tables.extend(table_of(document) for document in each.documents.documents)
        if not any(each.table.rows for each in tables):
            rows = [row for each in last for row in each.profile_rows]
            tables = [_profile_table(rows), *tables] if rows else tables
        failures = Failures()
        for each in last:
            failures.join(each.failures)
        return tables, failures

    def _bandwidth(
        self, tables: Sequence[AssembledTable], failures: Failures, around: Surroundings
    ) -> Measurement:
        found = [each.table for each in tables]
        reasons = set(around.reasons)
        for each in tables:
            reasons |= each.reasons
        if not found:
            reasons.add(NO_DATA)
        if _are_too_many(found, around.tables_expected):
            reasons.add("several-tables")
        if around.ranks_planned is not None and any(
            table.ranks is not None and table.ranks < around.ranks_planned for table in found
        ):
            reasons.add("fewer-ranks")
        known = [each.hosts for each in tables if each.hosts is not None]
        hosts = around.hosts if around.hosts is not None else max(known, default=None)
        if self._transport.fell_back_to_socket(hosts=hosts):
            reasons.add("socket-fallback")
        worst, data_errors = failures.worst, _data_errors(found)
        # A test reports its own wrong values as a failure; the rows say more.
        if worst is not None and worst.kind == "test" and data_errors is not None:
            worst = None
        if worst is not None:
            reasons.add("failure")
        has_data = any(table.rows for table in found)
        profile = self._profile.name if self._profile else "nccl-bandwidth"
        return Measurement(
            kind="bandwidth",
            profile=profile,
            status=status_of(reasons, has_data=has_data),
            reasons=tuple(sorted(reasons)),
            bandwidth=BandwidthMeasurement(
                tables=tuple(found),
                max_out_of_place_gbs=_largest(found, "out_of_place"),
                max_in_place_gbs=_largest(found, "in_place"),
                transport=self._transport.networks,
                failure=worst.text if worst is not None else data_errors,
                paths=self._transport.paths,
            ),
            dropped=self._dropped(),
        )

    def _training(self, merged: Merged, around: Surroundings) -> Measurement:
        params = replace(
            around.params,
            succeeded=around.succeeded,
            log_interval=around.params.log_interval or self._log_interval(),
            warmup_steps=max(around.params.warmup_steps, self._warmup(), merged.warmup_steps),
        )
        events: list[TrainingEvent | StepRun] = [*merged.events, *around.events]
        for kind, t_ns in (
            ("window_open", around.window_start_ns),
            ("window_close", around.window_end_ns),
        ):
            if t_ns is not None:
                events.append(
                    TrainingEvent(
                        kind="window_open" if kind == "window_open" else "window_close",
                        t_ns=t_ns,
                        t_source="api",
                    )
                )
        accounted = account(events, params)
        worst = merged.failures.worst if around.succeeded is not True else None
        reasons = set(around.reasons)
        if worst is not None:
            reasons.add("failure")
        if accounted.is_provisional and worst is None:
            reasons.add("no-end")
        has_steps = len(merged.steps) > 0
        if not has_steps:
            reasons.add("no-steps")
        flags = merged.flags | set(accounted.flags)
        if "log-gap" in reasons:
            flags.add("log_gap")
        has_window = accounted.ratios["ledger"] is not None
        has_data = has_steps or has_window
        if not has_data:
            reasons.add(NO_DATA)
        return Measurement(
            kind="training",
            profile=self._profile.name if self._profile else merged.profile,
            status=status_of(reasons, has_data=has_data),
            reasons=tuple(sorted(reasons)),
            training=_training_of(merged, accounted, worst.text if worst else None, flags),
            dropped=self._dropped(),
        )

    def _log_interval(self) -> int | None:
        return self._profile.log_interval or None if self._profile else None

    def _warmup(self) -> int:
        return self._profile.warmup_steps if self._profile else 0

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
    meter, attempts = _read(evidence.logs, profile)
    job = evidence.job
    lifetimes = lifetimes_of(evidence.pods, meter.streams, attempts)
    reasons = set()
    if any(log.has_gap for log in evidence.logs):
        reasons.add("log-gap")
    if any(not log.is_complete for log in evidence.logs):
        reasons.add("log-incomplete")
    if job is None or job.terminal == "none":
        reasons.add("job-unfinished")
    elif job.terminal == "failed":
        reasons.add("job-failed")
    started = [e.t_ns for e in lifetimes.events if e.kind == "proc_start" and e.t_ns is not None]
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


def _are_too_many(found: Sequence[BandwidthTable], expected: int | None) -> bool:
    """Return whether there are more tables than expected, or the same test twice where nobody said."""
    if expected is not None:
        return len(found) > expected
    tests = [table.test for table in found]
    return len(tests) > len(set(tests))


def _profile_table(found: Sequence[tuple[int, float, float]]) -> AssembledTable:
    """Return a table of what a profile's own row pattern took; it knows one half and no footer."""
    rows = [
        BandwidthRow(
            size_bytes=size,
            count=0,
            dtype="",
            redop=None,
            root=None,
            out_of_place=HalfRow(time_us=None, algbw_gbs=algbw, busbw_gbs=busbw, wrong=None),
            in_place=None,
        )
        for size, algbw, busbw in found
    ]
    return AssembledTable(
        table=BandwidthTable(
            test=None,
            rows=tuple(rows),
            avg_busbw_gbs=None,
            out_of_bounds=None,
            is_complete=True,
            ranks=None,
            nccl_version=None,
            tool_version=None,
        ),
        reasons=frozenset(),
        has_header=True,
    )


def _data_errors(found: Sequence[BandwidthTable]) -> str | None:
    """Return which values were wrong, or None."""
    words = []
    for table in found:
        for row in table.rows:
            halves = ((row.out_of_place, "out-of-place"), (row.in_place, "in-place"))
            told = [f"{half.wrong} {name}" for half, name in halves if half and half.wrong]
            if told:
                words.append(f"{' and '.join(told)} at {row.size_bytes} B")
        if table.out_of_bounds is not None and not table.out_of_bounds.is_ok:
            words.append(f"{table.out_of_bounds.count} values out of bounds")
    return f"wrong values: {'; '.join(words[:4])}" if words else None


def _largest(found: Sequence[BandwidthTable], half: str) -> float | None:
    values = [
        value.busbw_gbs
        for table in found
        for row in table.rows
        if (value := getattr(row, half)) is not None and value.busbw_gbs is not None
    ]
    return max(values, default=None)


def _training_of(
    merged: Merged, accounted: TrainingAccount, failure: str | None, flags: set[str]
) -> TrainingMeasurement:
    advice = advice_of(accounted)
    return TrainingMeasurement(
        framework=merged.framework,
        steps=merged.steps,
        checkpoints=merged.checkpoints,
        attempts=max(len(accounted.attempts), int(len(merged.steps) > 0)),
        failure=failure,
        summary=accounted.summary,
        ledger_s={name: t_ns / SECOND_NS for name, t_ns in accounted.ledger_ns.items()},
        window_s=accounted.window_ns / SECOND_NS,
        ratios=accounted.ratios,
        flags=tuple(sorted(flags)),
        skews_s=merged.skews_s,
        reference_step_s=accounted.reference_step_s,
        gpu_hours=accounted.gpu_hours,
        advice=advice.line() if advice else None,
    )
