"""The canonical event model of a training run: what any framework's log is read into.

Times are integer UTC nanoseconds. A `None` time keeps the order of lines but no duration.
"""

from dataclasses import dataclass
from typing import Literal

EventKind = Literal[
    "window_open",
    "window_close",
    "proc_start",
    "load_start",
    "load_end",
    "train_ready",
    "step",
    "save_start",
    "save_unblock",
    "save_commit",
    "eval_start",
    "eval_end",
    "abort",
    "end",
    "gap",
]
TimeSource = Literal["app", "kubelet", "api", "inferred"]

KIND_RANK: dict[EventKind, int] = {
    "window_open": 0,
    "proc_start": 1,
    "load_start": 2,
    "load_end": 3,
    "train_ready": 4,
    "step": 5,
    "save_start": 6,
    "save_unblock": 7,
    "save_commit": 8,
    "eval_start": 9,
    "eval_end": 10,
    "gap": 11,
    "abort": 12,
    "end": 13,
    "window_close": 14,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEvent:
    """One thing that happened, with where its time comes from.

    `covers` and `step_time_s` belong to steps; `until_ns` to gaps; `reason` to aborts.
    """

    kind: EventKind
    t_ns: int | None
    t_source: TimeSource = "app"
    step: int | None = None
    attempt: int | None = None
    stream: str = ""  # pod, or file
    seq: int = 0  # ordinal of the line in its stream
    covers: int | None = None
    step_time_s: float | None = None
    tflops_per_gpu: float | None = None
    loss: float | None = None
    duration_s: float | None = None
    until_ns: int | None = None
    reason: str | None = None
