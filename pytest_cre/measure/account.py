"""What accounting takes and gives."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from pytest_cre.measure.formula import FormulaTerms
from pytest_cre.measure.model import TrainingSummary
from pytest_cre.measure.partition import Interval, Partition
from pytest_cre.measure.reference import ReferenceSource


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerParams:
    """What the events do not say.

    `reference_step_s` is the step time to compare with, estimated where None. `log_interval` is the number
    of steps between printed lines, inferred where None or 0. `succeeded` is the Job's outcome, None while it
    runs. `step_counter` is "local" where each process counts its steps from 1. `gpus` is the number held all
    along, `queue_s` the wait before the window. `warmup_steps` are left out of averages, in each attempt.
    `tolerance_s` is how far clocks of the API and of pods may differ unnoticed.
    Raises ValueError for a number that cannot be.
    """

    reference_step_s: float | None = None
    log_interval: int | None = None
    succeeded: bool | None = None
    step_counter: Literal["global", "local"] = "global"
    gpus: int | None = None
    peak_tflops_per_gpu: float | None = None
    warmup_steps: int = 0
    queue_s: float = 0.0
    tolerance_s: float = 1.0

    def __post_init__(self) -> None:
        for name in ("reference_step_s", "peak_tflops_per_gpu"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a number above 0, got {value}")
        for name in ("log_interval", "gpus", "warmup_steps", "queue_s", "tolerance_s"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a number of at least 0, got {value}")
        if self.step_counter not in ("global", "local"):
            raise ValueError(f"step_counter must be global or local, got {self.step_counter!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One attempt. `ready_ns` and `resume_step` are None where it never told them; `reason` while it runs."""

    number: int
    start_ns: int
    ready_ns: int | None
    resume_step: int | None
    last_step: int | None
    exit_ns: int
    reason: str | None
    executed_steps: int
    lost_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductivityGoodput:
    """Scheduling x runtime x program goodput, each a ratio with an owner of its own.

    Time with all resources of time held; time of surviving steps of that; achieved of peak FLOP/s.
    """

    scheduling: float
    runtime: float
    program: float

    @property
    def product(self) -> float:
        """Return the three multiplied."""
        return self.scheduling * self.runtime * self.program


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointing:
    """What saves cost: each mean is None where nothing allows one."""

    saves: int
    mean_blocking_s: float | None
    interval_s: float | None  # median time from one save to the next inside an attempt
    mean_restart_s: float | None  # from an exit until training was ready again


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAccount:
    """A run accounted for.

    `ledger_ns` sums to `window_ns` exactly. `ratios` are 0..1, None where undefined; the seed's formula is
    `goodput`, from `terms`. `ettr_with_queue` is the runtime ratio with the wait in the queue counted as
    held. Provisional figures may still change with later events.
    """

    start_ns: int | None
    end_ns: int | None
    window_ns: int
    ledger_ns: Mapping[str, int]
    terms: FormulaTerms
    ratios: Mapping[str, float | None]
    flags: tuple[str, ...]
    attempts: tuple[AttemptRow, ...]
    interruptions: int
    executed_steps: int
    useful_steps: int
    durable_step: int  # the largest saved at the end, 0 for none
    skipped_steps: int
    consumed_samples: int | None
    summary: TrainingSummary
    checkpointing: Checkpointing
    reference_step_s: float | None
    reference_source: ReferenceSource | None
    log_interval: int
    ettr_with_queue: float | None
    productivity: ProductivityGoodput | None
    gpu_hours: Mapping[str, float] | None  # by category, with the GPUs held at each time
    is_provisional: bool
    clamped: int  # events moved because clocks disagree
    copies: int  # repeated step lines left out
    after_close: int  # events dropped because they are later than the window's end
    line: Partition
    durable_line: Partition

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """Return category, start and end of every stretch of the window, in time order."""
        return tuple(self.line)
