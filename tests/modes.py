"""The 36 ways in which training logs mislead, each with the ledger that is right.

`python -m tests.modes` prints them. `tests/measure/test_modes.py` holds each to its seconds.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from itertools import count

from pytest_cre.catalog.logprofile import EventPattern, LogProfile
from pytest_cre.evidence.model import JobFacts
from pytest_cre.measure.account import LedgerParams, TrainingAccount
from pytest_cre.measure.events import TrainingEvent
from pytest_cre.measure.goodput import account
from pytest_cre.measure.lifecycle import goodput_status, measure_job
from pytest_cre.measure.model import TrainingMeasurement
from tests.measure.histories import SECOND, events_of, ledger_s, measured, ns
from tests.measure.megatron import EPOCH_NS, clock, logs_of, read_back, step_line

Ledger = Mapping[str, float]

CRASH_AT_150 = "open; start; ready 0; run 100; save 10; run 50; crash; pass 40; start; "
RESUMED = {"useful": 200, "rework": 50, "checkpoint_blocking": 20, "reschedule": 40, "init": 20}
FINISH = "run 100; save 10; end"
CLEAN = "open; start; ready 0; run 100; save 10; run 100; save 10; end"


Run = TrainingAccount | TrainingMeasurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One mode: what happens, the account of it, and its ledger in seconds written down by hand."""

    number: int
    name: str
    run: Callable[[], Run]
    ledger_s: Ledger
    flags: tuple[str, ...] = ()
    figures: Mapping[str, float | None] = field(
        default_factory=dict
    )  # by attribute, such as ratios.ledger


MODES: list[Mode] = []


def mode(
    number: int,
    name: str,
    *,
    flags: tuple[str, ...] = (),
    figures: Mapping[str, float | None] | None = None,
    **seconds: float,
):
    """Register a mode."""

    def register(run: Callable[[], Run]) -> Callable[[], Run]:
        MODES.append(
            Mode(
                number=number,
                name=name,
                run=run,
                ledger_s=seconds,
                flags=flags,
                figures=figures or {},
            )
        )
        return run

    return register


def accounted(events: list[TrainingEvent], **params: object) -> TrainingAccount:
    return account(events, LedgerParams(**{"reference_step_s": 1.0, **params}))


def seconds(run: Run) -> Ledger:
    """Return the ledger without what is 0."""
    if isinstance(run, TrainingAccount):
        return ledger_s(run)
    return {name: lasted for name, lasted in run.ledger_s.items() if lasted}


def figure(run: Run, path: str) -> float | None:
    """Return a figure beside the ledger."""
    name, _, key = path.partition(".")
    value = getattr(run, name)
    return value[key] if key else value


def in_streams(events: list[TrainingEvent], streams: Mapping[str, str]) -> list[TrainingEvent]:
    """Return events with the pod that each kind comes from."""
    return [replace(event, stream=streams.get(event.kind, "")) for event in events]


def job(uid: str = "uid-1", *, started_s: float = 0, ended_s: float | None = None) -> JobFacts:
    """Return a Job that runs, or that succeeded at `ended_s`."""
    return JobFacts(
        kind="Job",
        name="train",
        uid=uid,
        terminal="none" if ended_s is None else "succeeded",
        started_ns=ns(started_s),
        terminal_ns=None if ended_s is None else ns(ended_s),
    )


@mode(3, "copies of a line from every rank", useful=200, checkpoint_blocking=20)
def copies_of_every_rank() -> TrainingAccount:
    events = events_of(CLEAN)
    copies = [
        replace(event, stream=f"rank-{rank}", t_ns=event.t_ns + rank * SECOND // 20)
        for event in events
        for rank in (1, 2, 3)
        if event.kind == "step"
    ]
    return accounted([*events, *copies])


@mode(4, "steps and checkpoints in different pods", **RESUMED)
def steps_and_checkpoints_in_different_pods() -> TrainingAccount:
    events = events_of(CRASH_AT_150 + "pass 20; ready 100; " + FINISH)
    pods = {"step": "last", "save_start": "first", "save_unblock": "first", "save_commit": "first"}
    return accounted(list(reversed(in_streams(events, pods))))


@mode(5, "the counter starts again at 1 in each process", **RESUMED)
def counter_is_local() -> TrainingAccount:
    return measured(CRASH_AT_150 + "pass 20; ready 100; at 0; " + FINISH, step_counter="local")


@mode(
    6,
    "a line only every 50 steps",
    useful=300,
    rework=80,
    hang=20,
    checkpoint_blocking=30,
    reschedule=40,
    init=20,
)
def line_every_fifty_steps() -> TrainingAccount:
    # 70 s of silence before the crash: 50 s may be steps without a line. Of the line for 201 to 250, 20 survive.
    return measured(
        "open; start; ready 0; 2 * (run 100 every 50; save 10); run 80 every 50; pass 40; crash;"
        "pass 40; start; pass 20; ready 220; run 80 every 50; save 10; end",
        log_interval=50,
    )


@mode(
    7,
    "an asynchronous save that never became durable",
    flags=("save_unconfirmed",),
    useful=100,
    rework=120,
    checkpoint_blocking=4,
)
def save_never_committed() -> TrainingAccount:
    return measured("open; start; ready 0; run 100; async 2 32; run 100; async 2; run 20; crash")


@mode(8, "a clock that goes back", flags=("clamped",), useful=195, checkpoint_blocking=20)
def clock_goes_back() -> TrainingAccount:
    events = [replace(e, stream="pod", seq=at) for at, e in enumerate(events_of(CLEAN), start=1)]
    return accounted([_set_back(e) if e.t_ns > ns(160) else e for e in events])


def _set_back(event: TrainingEvent) -> TrainingEvent:
    return replace(event, t_ns=event.t_ns - ns(5))


@mode(
    11,
    "lines lost to log rotation",
    flags=("log_gap",),
    useful=200,
    checkpoint_blocking=10,
    other=80,
)
def log_gap() -> TrainingAccount:
    # 20 steps were done in 100 s without a line: they prove 20 s of progress and nothing about the rest.
    script = "open; start; ready 0; run 100; at 120; pass 100; run 80; save 10; end"
    gap = TrainingEvent(kind="gap", t_ns=ns(100), until_ns=ns(200), reason="rotated")
    return accounted([*events_of(script), gap])


@mode(12, "lines read twice", **RESUMED)
def lines_read_twice() -> TrainingAccount:
    events = events_of(CRASH_AT_150 + "pass 20; ready 100; " + FINISH)
    return accounted([event for event in events for _ in range(2)])


@mode(
    13,
    "a container restarted in place, with times in whole seconds",
    useful=200,
    rework=50,
    checkpoint_blocking=20,
    reschedule=39.6,
    init=20.8,
)
def restarted_in_place() -> TrainingAccount:
    events = events_of(CRASH_AT_150 + "pass 20; ready 100; " + FINISH)
    facts = ("window_open", "proc_start", "abort")
    return accounted(
        [
            replace(e, t_source="api", stream="pod")
            if e.kind in facts
            else replace(e, t_ns=e.t_ns + ns(0.4), stream="pod")
            for e in events
        ]
    )


@mode(
    14,
    "a pod deleted while it hung: no exit time",
    flags=("exit_unknown",),
    useful=200,
    rework=50,
    checkpoint_blocking=20,
    reschedule=640,
    init=20,
)
def no_exit_time() -> TrainingAccount:
    return measured(
        "open; start; ready 0; run 100; save 10; run 50; pass 640; start; pass 20; ready 100;"
        + FINISH
    )


@mode(15, "no line for the load", flags=("resume_inferred",), **RESUMED)
def no_line_for_the_load() -> TrainingAccount:
    return measured(CRASH_AT_150 + "pass 20; at 100; " + FINISH)


@mode(
    16,
    "resumed from an older checkpoint than the last one saved",
    useful=300,
    rework=150,
    checkpoint_blocking=30,
    reschedule=40,
    init=20,
)
def older_checkpoint() -> TrainingAccount:
    return measured(
        "open; start; ready 0; 2 * (run 100; save 10); run 50; crash; pass 40; start; pass 20;"
        "ready 100; run 200; save 10; end"
    )


@mode(17, "a crash that lost nothing", useful=300, checkpoint_blocking=30, reschedule=40, load=20)
def crash_without_loss() -> TrainingAccount:
    return measured(
        "open; start; ready 0; 2 * (run 100; save 10); crash; pass 40; start; load 20 200; "
        + FINISH
    )


@mode(
    18,
    "a crash before the first save",
    useful=100,
    rework=50,
    checkpoint_blocking=10,
    reschedule=40,
    init=20,
)
def crash_before_first_save() -> TrainingAccount:
    return measured(
        "open; start; ready 0; run 50; crash; pass 40; start; pass 20; ready 0; " + FINISH
    )


@mode(
    19,
    "three crashes on one checkpoint",
    useful=200,
    rework=90,
    checkpoint_blocking=20,
    reschedule=30,
    init=30,
)
def crash_loop() -> TrainingAccount:
    return measured(
        "open; start; ready 0; run 100; save 10; 3 * (run 30; crash; pass 10; start; pass 10; ready 100);"
        + FINISH
    )


@mode(20, "a hang, seen while it lasts", useful=150, rework=1, hang=600, checkpoint_blocking=10)
def hang() -> TrainingAccount:
    return measured("open; start; ready 0; run 100; save 10; run 50; pass 601; close")


@mode(21, "a hang that recovers", useful=200, straggler=300, checkpoint_blocking=10)
def stall() -> TrainingAccount:
    return measured("open; start; ready 0; run 100; run 1 x 301; run 99; save 10; end")


@mode(22, "a hang in the load", useful=100, init=620, reschedule=40, checkpoint_blocking=10)
def hang_in_load() -> TrainingAccount:
    return measured(
        "open; start; pass 20; loading; pass 580; crash; pass 40; start; pass 20; ready 0; "
        + FINISH
    )


@mode(23, "a slow first step", useful=200, warmup=30, checkpoint_blocking=10)
def slow_first_step() -> TrainingAccount:
    return measured("open; start; ready 0; run 1 x 31; run 199; save 10; end")


@mode(24, "a run that is slow from start to end", useful=100, warmup=0.25, straggler=24.75)
def slow_throughout() -> TrainingAccount:
    return measured("open; start; ready 0; run 100 x 1.25; end")


@mode(25, "idle time after the last step", useful=100, other=30)
def idle_tail() -> TrainingAccount:
    return measured("open; start; ready 0; run 100; pass 30; end")


@mode(26, "the last line comes in the second that the Job ended in", useful=99.3, init=0.7)
def last_line_in_the_last_second() -> TrainingAccount:
    events = [
        replace(e, t_ns=e.t_ns + ns(0.7)) if e.kind != "proc_start" else e
        for e in events_of("start; ready 0; run 100")
    ]
    return measure_job(job(ended_s=100), events, LedgerParams(reference_step_s=1), now_ns=ns(105))


@mode(27, "measured long after the Job ended", useful=200, checkpoint_blocking=20, other=10)
def measured_later() -> TrainingAccount:
    events = events_of(CLEAN.removesuffix("end"))
    return measure_job(job(ended_s=230), events, LedgerParams(reference_step_s=1), now_ns=ns(1e6))


@mode(
    28,
    "nothing matched but the start",
    flags=("exit_unknown",),
    figures={"ratios.ledger": None},
    init=50,
)
def nothing_matched() -> TrainingAccount:
    return measured("start; pass 50; loading")


@mode(33, "a Job name used again", useful=50, init=10)
def job_name_used_again() -> TrainingAccount:
    params = LedgerParams(reference_step_s=1)
    first, second = job("uid-1", ended_s=220), job("uid-2", started_s=500, ended_s=560)
    runs = {
        "uid-1": events_of(CLEAN),
        "uid-2": events_of("pass 500; start; pass 10; ready 0; run 50"),
    }
    earlier = goodput_status(first, runs["uid-1"], params, now_ns=ns(400))
    status = goodput_status(second, runs["uid-2"], params, now_ns=ns(900), previous=earlier)
    told = {"uid-1": first, "uid-2": second}[status.job_uid]
    return measure_job(told, runs[status.job_uid], params, now_ns=ns(900))


@mode(
    34,
    "half the GPUs after the restart",
    flags=("gpus_changed",),
    figures={"gpu_hours.useful": (100 * 8 + 100 * 4) / 3600, "gpu_hours.rework": 50 * 8 / 3600},
    **RESUMED,
)
def fewer_gpus() -> TrainingAccount:
    gpus = iter((8, 4))
    events = [
        replace(event, gpus=next(gpus)) if event.kind == "proc_start" else event
        for event in events_of(CRASH_AT_150 + "pass 20; ready 100; " + FINISH)
    ]
    return accounted(events)


@mode(
    35,
    "iterations without an update",
    flags=("skipped_steps",),
    figures={"skipped_steps": 5},
    useful=200,
    checkpoint_blocking=20,
)
def skipped_iterations() -> TrainingAccount:
    events = events_of(CLEAN)
    return accounted(
        [replace(e, skipped=1) if e.kind == "step" and e.step > 195 else e for e in events]
    )


@mode(
    36,
    "the save of the last step is never confirmed",
    flags=("last_steps_not_durable", "save_unconfirmed"),
    figures={"ratios.ledger": 200 / 212, "ratios.strict_durable": 100 / 212},
    useful=200,
    checkpoint_blocking=12,
)
def last_save_unconfirmed() -> TrainingAccount:
    return measured("open; start; ready 0; run 100; save 10; run 100; async 2; end")


RESUMED_EVENTS = CRASH_AT_150 + "pass 20; ready 100; " + FINISH
STEPS_OF_MAXTEXT = "open; start; pass 10; run 50; end"
PARAMS = LedgerParams(reference_step_s=1, log_interval=1)


def maxtext(*, flushed_every: int = 1) -> bytes:
    """Return 50 steps of 1 s from second 10 on, whose lines carry no time of their own."""
    began = clock(EPOCH_NS).replace(" ", "T")
    lines = [f"{began}000Z System Information: Jax Version: 0.7.2\n"]
    for step in range(1, 51):
        flushed = -(-step // flushed_every) * flushed_every
        stamp = clock(EPOCH_NS + ns(10 + flushed)).replace(" ", "T")
        lines.append(
            f"{stamp}000Z completed step: {step - 1}, seconds: 1.000, TFLOP/s/device: 400.0, loss: 9.0\n"
        )
    return "".join(lines).encode()


def from_log(
    script: str, logs: list[bytes] | None = None, **more: LogProfile
) -> TrainingMeasurement:
    return read_back(events_of(script), PARAMS, logs=logs, **more)


@mode(1, "no times in the text", init=10, useful=50)
def no_times_in_the_text() -> TrainingMeasurement:
    return from_log(STEPS_OF_MAXTEXT, [maxtext()])


@mode(2, "output that waits in a buffer", flags=("buffered",), init=10, useful=50)
def buffered_output() -> TrainingMeasurement:
    return from_log(STEPS_OF_MAXTEXT, [maxtext(flushed_every=10)])


@mode(9, "local times in the text, UTC before it", **RESUMED)
def local_times() -> TrainingMeasurement:
    return from_log(RESUMED_EVENTS, logs_of(events_of(RESUMED_EVENTS), zone_s=-8 * 3600))


@mode(10, "times with and without fractions, offsets and digits of any number", **RESUMED)
def many_dialects_of_time() -> TrainingMeasurement:
    numbers = count()

    def written(stamp: str, text: str) -> str:
        form = next(numbers) % 4
        at = datetime.fromisoformat(stamp + "+00:00")
        if text.startswith(" ["):  # written down late; the text has the right time
            at += timedelta(seconds=0.4)
            fraction = ("", ".0", ",000", ".000000")[form]
            text = text.replace(".000000]", f"{fraction}]", 1)
        zone = timezone(timedelta(hours=(0, 5.5, -7, 0)[form]))
        shown = at.astimezone(zone).isoformat(
            timespec=("auto", "milliseconds", "auto", "microseconds")[form]
        )
        return f"{shown.replace('+00:00', 'Z')} {text}\n"

    return from_log(RESUMED_EVENTS, logs_of(events_of(RESUMED_EVENTS), written=written))


NOISE = (
    "args: log_format: 'iteration %d/%d | elapsed time per iteration (ms): %f'",
    "# saving checkpoint at iteration {iteration} to {path}",
    "  next: saving checkpoint once loading is done",
    '  File "train.py", line 40, in log_iteration',
)


@mode(29, "text that looks like progress", **RESUMED)
def text_that_looks_like_progress() -> TrainingMeasurement:
    numbers = count()

    def written(stamp: str, text: str) -> str:
        return f"{stamp}Z {NOISE[next(numbers) % len(NOISE)]}\n{stamp}Z {text}\n"

    return from_log(RESUMED_EVENTS, logs_of(events_of(RESUMED_EVENTS), written=written))


@mode(30, "colour codes", **RESUMED)
def colour_codes() -> TrainingMeasurement:
    def written(stamp: str, text: str) -> str:
        return f"{stamp}Z \x1b[32m{text.replace('iteration', chr(27) + '[1miteration' + chr(27) + '[0m')}\x1b[0m\n"

    return from_log(RESUMED_EVENTS, logs_of(events_of(RESUMED_EVENTS), written=written))


@mode(31, "very long lines, NUL and broken UTF-8", **RESUMED)
def broken_bytes() -> TrainingMeasurement:
    # A line of 3 MB is no line, even if a step stands at its end.
    long = b"2026-01-05T00:00:00Z " + b"x" * 3_000_000 + step_line(100, EPOCH_NS, 1e9).encode()
    noise = long + b"\n\x00\x00\xff\xfe iteration \xc3(\n"
    logs = [
        noise + log.replace(b"Z  [", b"Z \x00\xff [").replace(b"\n", b" \xc3\x28\n")
        for log in logs_of(events_of(RESUMED_EVENTS))
    ]
    return from_log(RESUMED_EVENTS, logs)


@mode(32, "a pattern that would never end elsewhere", **RESUMED)
def endless_pattern() -> TrainingMeasurement:
    pattern = r"(?:(?:\S+)*\s*)*\| elapsed time per iteration \(ms\): (?P<elapsedTime>[\d.]+)"
    step = EventPattern(
        regex=rf"iteration\s+(?P<iteration>\d+)/{pattern}", units={"elapsedTime": "ms"}
    )
    profile = LogProfile(name="endless", patterns={"trainingStep": step})
    trap = b"2026-01-05T00:00:00Z iteration 7/ " + b"a" * 50_000 + b"\n"
    logs = [trap + log for log in logs_of(events_of(RESUMED_EVENTS))]
    return from_log(RESUMED_EVENTS, logs, profile=profile)


def main() -> None:
    """Print every mode with its flags and the seconds of its ledger."""
    write = sys.stdout.write
    for mode in sorted(MODES, key=lambda mode: mode.number):
        run = mode.run()
        ledger = "  ".join(f"{name} {lasted:g}" for name, lasted in seconds(run).items())
        flags = f"  [{', '.join(run.flags)}]" if run.flags else ""
        write(f"{mode.number:2d}  {mode.name}\n    {ledger}{flags}\n")


if __name__ == "__main__":
    main()
