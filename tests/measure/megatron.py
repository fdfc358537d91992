"""Histories written as the logs that Megatron would leave, with the pod facts that a log cannot hold."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache

from pytest_cre.catalog.logprofile import LogProfile
from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.events import TrainingEvent
from pytest_cre.measure.measurement import Meter
from pytest_cre.measure.model import TrainingMeasurement
from pytest_cre.measure.surroundings import Surroundings
from tests.measure.histories import SECOND, ns

EPOCH_NS = int(datetime(2026, 1, 5, tzinfo=UTC).timestamp()) * SECOND
FACTS = ("window_open", "window_close", "proc_start", "abort", "end")


@lru_cache
def _day(day: int) -> str:
    return f"{datetime.fromtimestamp(day * 86400, UTC):%Y-%m-%d}"


def clock(t_ns: int) -> str:
    """Return a time as Megatron prints it, in UTC."""
    whole, rest_ns = divmod(t_ns, SECOND)
    day, second = divmod(whole, 86400)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return f"{_day(day)} {hour:02d}:{minute:02d}:{second:02d}.{rest_ns // 1000:06d}"


def step_line(number: int, t_ns: int, lasted_ns: float, *, total: int = 999_999) -> str:
    return (
        f" [{clock(t_ns)}] iteration {number:8d}/{total:8d} | consumed samples: {number * 768:12d} |"
        f" elapsed time per iteration (ms): {lasted_ns / 1e6:.1f} |"
        f" throughput per GPU (TFLOP/s/GPU): 400.0 | learning rate: 2.000000E-07 |"
        f" global batch size:   768 | lm loss: 1.218497E+01 |"
        f" number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def line_of(event: TrainingEvent, t_ns: int, lasted_ns: float) -> str:
    step = event.step
    match event.kind:
        case "step":
            return step_line(step or 0, t_ns, lasted_ns)
        case "proc_start":
            return "using world size: 16, data-parallel size: 16, context-parallel size: 1, tensor-model-parallel size: 1"
        case "load_start":
            return " loading checkpoint from /checkpoints"
        case "load_end" if step == 0:
            return "WARNING: will not load any checkpoints and will start from random"
        case "load_end":
            return f"  successfully loaded checkpoint from /checkpoints [ t 1/2, p 1/1 ] at iteration {step}"
        case "save_start":
            return f" [{clock(t_ns)}] saving checkpoint at iteration {step:7d} to /checkpoints in torch_dist format"
        case "save_unblock":
            return f" [{clock(t_ns)}] scheduled an async checkpoint save at iteration {step:7d} to /checkpoints"
        case "save_commit":
            return f" [{clock(t_ns)}] successfully saved checkpoint from iteration {step:7d} to /checkpoints"
        case "eval_start":
            return "Evaluating on 1280 samples"
        case "eval_end":
            return " validation loss at iteration 100 | lm loss value: 1.0E+00 | lm loss PPL: 2.7E+00 |"
    raise AssertionError(event.kind)


def lives_of(events: Sequence[TrainingEvent]) -> list[list[TrainingEvent]]:
    """Return the events of each attempt; each begins with its process start."""
    lives: list[list[TrainingEvent]] = []
    for event in events:
        if event.kind == "proc_start":
            lives.append([])
        if lives and event.kind not in ("window_open", "window_close"):
            lives[-1].append(event)
    return lives


def logs_of(
    events: Sequence[TrainingEvent],
    *,
    zone_s: float = 0,
    written: Callable[[str, str], str] = "{0}000Z {1}\n".format,
) -> list[bytes]:
    """Return the log of each attempt.

    The program's clock is `zone_s` ahead of UTC; `written` puts a line together from the kubelet's time, in
    microseconds and without a zone, and the text.
    """
    logs, ahead_ns = [], ns(zone_s)
    for life in lives_of(events):
        lines: list[str] = []
        before: tuple[int, int] | None = None  # of the line before: step and time
        silent = {
            (e.step, e.t_ns) for e in life if e.kind == "save_commit"
        }  # a synchronous save prints one line at its end
        for event in sorted(life, key=lambda e: e.t_ns or 0):
            if event.kind in FACTS[:2] + FACTS[3:] or (
                event.kind == "save_unblock" and (event.step, event.t_ns) in silent
            ):
                continue
            t_ns = EPOCH_NS + (event.t_ns or 0)
            lasted_ns = 1e9
            if event.kind == "step" and before is not None:
                lasted_ns = (t_ns - before[1]) / max(1, (event.step or 0) - before[0])
            if event.step is not None and event.kind != "save_start":
                before = (event.step, t_ns)
            elif before is not None:
                before = (before[0], t_ns)
            text = line_of(event, t_ns + ahead_ns, lasted_ns)
            lines.append(written(clock(t_ns).replace(" ", "T"), text))
        logs.append("".join(lines).encode())
    return logs


def read_back(
    events: Sequence[TrainingEvent],
    params: LedgerParams,
    *,
    logs: Sequence[bytes] | None = None,
    profile: LogProfile | None = None,
) -> TrainingMeasurement:
    """Write events as logs, one pod an attempt, and measure those beside the pods' facts.

    With `logs`, those are measured, one an attempt.
    """
    meter = Meter(profile)
    pods = [f"train-{at}" for at, _ in enumerate(lives_of(events))]
    for attempt, (pod, log) in enumerate(zip(pods, logs or logs_of(events), strict=True)):
        reader = meter.open(pod, attempt=attempt)
        reader.feed(log)
        reader.close()
    facts = [
        replace(e, t_ns=EPOCH_NS + (e.t_ns or 0), t_source="api", stream=pod, attempt=attempt)
        for attempt, (pod, life) in enumerate(zip(pods, lives_of(events), strict=True))
        for e in life
        if e.kind in FACTS
    ]
    opens = [e.t_ns for e in events if e.kind == "window_open"]
    ends = [e.t_ns for e in events if e.kind in ("abort", "end")]
    measured = meter.result(
        Surroundings(
            window_start_ns=EPOCH_NS + (opens[0] or 0),
            window_end_ns=EPOCH_NS + (ends[-1] or 0),
            succeeded=any(e.kind == "end" for e in events),
            params=params,
            events=tuple(facts),
            started_streams=frozenset(pods),
            attempts={pod: attempt for attempt, pod in enumerate(pods)},
        )
    )
    assert measured.training is not None
    return measured.training


def seconds(measured: TrainingMeasurement) -> dict[str, float]:
    """Return the ledger without what is 0."""
    return {name: lasted for name, lasted in measured.ledger_s.items() if lasted}


__all__ = ["EPOCH_NS", "clock", "logs_of", "ns", "read_back", "seconds", "step_line"]
