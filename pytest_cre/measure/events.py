"""The canonical event model of a training run: what any framework's log is read into.

Times are integer UTC nanoseconds. A `None` time keeps the order of lines but no duration.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from array import array

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
# What comes before the first step of an attempt.
BEGINNINGS: tuple[EventKind, ...] = ("proc_start", "load_start", "load_end", "train_ready")
SAVING: tuple[EventKind, ...] = ("save_start", "save_unblock", "save_commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEvent:
    """One thing that happened, with where its time comes from.

    `covers`, `step_time_s`, `samples` (consumed so far) and `skipped` (iterations without an update,
    counted on this line) belong to steps; `until_ns` to gaps; `reason` to aborts; `gpus` to
    window_open and proc_start: the number held from then on.
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
    samples: int | None = None
    skipped: int | None = None
    gpus: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRun:
    """Step lines of one stream, a column each: what as many TrainingEvents of kind step say, in 32 bytes a step.

    `numbers` rise strictly and `times_ns` never fall, both `array("q")`; in the others, `array("d")`, NaN
    stands for what was not printed. `skipped` is the sum over the lines, `samples` the last number printed.
    """

    numbers: "array[int]"
    times_ns: "array[int]"
    step_times_s: "array[float]"
    tflops: "array[float]"
    stream: str = ""
    attempt: int | None = None
    seq: int = 0  # of the first line
    t_source: TimeSource = "app"
    skipped: int = 0
    samples: int | None = None
    covers: int | None = None  # of the first line

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[TrainingEvent]:
        """Yield the steps one by one; the last one carries the counts."""
        last = len(self.numbers) - 1
        for at, number in enumerate(self.numbers):
            step_time_s, tflops = self.step_times_s[at], self.tflops[at]
            yield TrainingEvent(
                kind="step",
                t_ns=self.times_ns[at],
                t_source=self.t_source,
                step=number,
                attempt=self.attempt,
                stream=self.stream,
                seq=self.seq + at if self.seq else 0,
                covers=None if at else self.covers,
                step_time_s=None if isnan(step_time_s) else step_time_s,
                tflops_per_gpu=None if isnan(tflops) else tflops,
                samples=self.samples if at == last else None,
                skipped=self.skipped if at == last else None,
            )

    def part(self, first: int, end: int) -> "StepRun":
        """Return the lines from index `first` up to, not including, `end`."""
        is_last = end >= len(self.numbers)
        return StepRun(
            numbers=self.numbers[first:end],
            times_ns=self.times_ns[first:end],
            step_times_s=self.step_times_s[first:end],
            tflops=self.tflops[first:end],
            stream=self.stream,
            attempt=self.attempt,
            seq=self.seq + first if self.seq else 0,
            t_source=self.t_source,
            skipped=self.skipped if is_last else 0,
            samples=self.samples if is_last else None,
            covers=None if first else self.covers,
        )
