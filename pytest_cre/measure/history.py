"""What was seen of a training run: its attempts, and what belongs to none of them."""

from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from math import nan

from pytest_cre.measure.events import TrainingEvent
from pytest_cre.measure.instants import SECOND_NS


@dataclass(slots=True, kw_only=True)
class StepColumns:
    """Printed steps, a column each; a missing number is NaN."""

    numbers: "array[int]" = field(default_factory=lambda: array("q"))
    times_ns: "array[int]" = field(default_factory=lambda: array("q"))
    step_times_s: "array[float]" = field(default_factory=lambda: array("d"))
    tflops: "array[float]" = field(default_factory=lambda: array("d"))

    def append(self, event: TrainingEvent, t_ns: int) -> None:
        """Take one printed step."""
        self.numbers.append(event.step or 0)
        self.times_ns.append(t_ns)
        self.step_times_s.append(nan if event.step_time_s is None else event.step_time_s)
        self.tflops.append(nan if event.tflops_per_gpu is None else event.tflops_per_gpu)


@dataclass(slots=True, kw_only=True)
class Attempt:
    """What was seen of one attempt. Steps rise strictly; times never fall."""

    first_seen_ns: int
    last_seen_ns: int
    start_ns: int | None = None
    load_start_ns: int | None = None
    load_end_ns: int | None = None
    train_ready_ns: int | None = None
    loaded_step: int | None = None
    exit_ns: int | None = None
    succeeded: bool = False
    reason: str | None = None
    steps: StepColumns = field(default_factory=StepColumns)
    first_covers: int | None = None
    saves: list[TrainingEvent] = field(default_factory=list)
    evals: list[TrainingEvent] = field(default_factory=list)
    streams: set[str] = field(default_factory=set)  # whose process start was seen
    last_by_stream: dict[str, int] = field(default_factory=dict)
    pending: list[TrainingEvent] = field(default_factory=list)  # loads seen after steps

    @property
    def has_progress(self) -> bool:
        """Return whether it got past its start-up."""
        return bool(self.steps.numbers) or self.load_end_ns is not None or bool(self.saves)

    def load(self, event: TrainingEvent, t_ns: int) -> None:
        """Take a load or ready line: the earliest start, the latest end."""
        if event.kind == "load_start":
            self.load_start_ns = least(self.load_start_ns, t_ns)
        elif event.kind == "load_end":
            self.load_end_ns = greatest(self.load_end_ns, t_ns)
            if event.step is not None:
                self.loaded_step = event.step
        else:
            self.train_ready_ns = greatest(self.train_ready_ns, t_ns)

    def is_copy(self, step: int, t_ns: int) -> bool:
        """Return whether a step line that is not ahead repeats an earlier line.

        A step cannot be done again within the time that it took at first.
        """
        numbers, times = self.steps.numbers, self.steps.times_ns
        at = bisect_left(numbers, step)
        if at == len(numbers) or numbers[at] != step:
            return False
        before = times[at - 1] if at else self.load_end_ns or self.start_ns or self.first_seen_ns
        return t_ns - times[at] <= 2 * max(0, times[at] - before)


@dataclass(slots=True, kw_only=True)
class History:
    """Attempts in order, with what belongs to none of them."""

    attempts: list[Attempt] = field(default_factory=list)
    opened_ns: int | None = None
    closed_ns: int | None = None
    gaps: list[tuple[int, int]] = field(default_factory=list)
    gpus: list[tuple[int, int]] = field(default_factory=list)  # from when, how many
    untimed: StepColumns = field(default_factory=StepColumns)
    flags: set[str] = field(default_factory=set)
    skipped_steps: int = 0
    samples: int | None = None  # consumed, as last printed
    copies: int = 0
    clamped: int = 0
    after_close: int = 0
    tolerance_ns: int = SECOND_NS

    def clamp(self, moved_ns: int) -> None:
        """Count an event that had to be moved because clocks disagree; flag more than the tolerance."""
        self.clamped += 1
        if moved_ns > self.tolerance_ns:
            self.flags.add("clamped")


def least(a: int | None, b: int | None) -> int | None:
    """Return the smaller of two times that are known."""
    return b if a is None else a if b is None else min(a, b)


def greatest(a: int | None, b: int | None) -> int | None:
    """Return the larger of two times that are known."""
    return b if a is None else a if b is None else max(a, b)
