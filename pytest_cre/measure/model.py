"""What is measured, in the shape of `cre.measure/1`. Absent is None, never NaN."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["bandwidth", "training", "gemm", "diagnostics", "none"]
RecordName = Literal["save_start", "save_done", "load_start", "load_done"]
Status = Literal["complete", "incomplete", "failed", "no-data"]
DiagnosticStatus = Literal["pass", "fail", "warn", "skip", "not-run"]

LEDGER_CATEGORIES = (
    "useful",
    "rework",
    "hang",
    "checkpoint_blocking",
    "schedule",
    "reschedule",
    "init",
    "load",
    "warmup",
    "straggler",
    "eval",
    "other",
)
RATIOS = ("goodput", "ledger", "runtime", "strict_durable", "throughput_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A measured input: path as given, size, digest."""

    path: str
    size_bytes: int
    sha256: str


class HalfRow(NamedTuple):
    """One half of a table row: out-of-place or in-place. `wrong` is None when not checked."""

    time_us: float | None
    algbw_gbs: float | None
    busbw_gbs: float | None
    wrong: int | None


class BandwidthRow(NamedTuple):
    """One printed row."""

    size_bytes: int
    count: int  # type: ignore[assignment]  # the number, not the method of tuples
    dtype: str
    redop: str | None
    root: int | None
    out_of_place: HalfRow | None
    in_place: HalfRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfBounds:
    """The footer's verdict on values."""

    count: int
    is_ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthTable:
    """One run of a collective benchmark."""

    test: str | None
    rows: tuple[BandwidthRow, ...]
    avg_busbw_gbs: float | None
    out_of_bounds: OutOfBounds | None
    is_complete: bool
    ranks: int | None
    nccl_version: str | None
    tool_version: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthMeasurement:
    """Every table of a log, the transport seen and the failure recognised."""

    tables: tuple[BandwidthTable, ...] = ()
    max_out_of_place_gbs: float | None = None
    max_in_place_gbs: float | None = None
    transport: tuple[str, ...] = ()
    failure: str | None = None
    paths: tuple[str, ...] = ()  # that channels took: P2P, SHM, NVLS, MNNVL, GDRDMA, COLLNET


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One printed step line; `covers` is the number of optimizer steps it stands for."""

    step: int
    time_ns: int | None
    step_time_s: float | None
    tflops_per_gpu: float | None
    loss: float | None
    covers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecord:
    """One checkpoint line."""

    event: RecordName
    step: int | None
    time_ns: int | None
    duration_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSummary:
    """Figures over the whole run; averages leave warm-up out."""

    first_step: int | None
    last_step: int | None
    highest_step: int | None
    step_records: int
    avg_step_time_s: float | None
    avg_tflops_per_gpu: float | None
    interruptions: int
    warmup_records: int = 0  # printed records that the averages leave out


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMeasurement:
    """Steps, checkpoints and the ledger of a training run."""

    framework: str | None
    steps: Sequence[StepRecord]
    checkpoints: tuple[CheckpointRecord, ...]
    attempts: int
    failure: str | None
    summary: TrainingSummary
    ledger_s: Mapping[str, float]  # by LEDGER_CATEGORIES; sums to window_s
    window_s: float | None
    ratios: Mapping[str, float | None]  # by RATIOS
    flags: tuple[str, ...] = ()
    skews_s: Mapping[str, float] = field(default_factory=dict)  # added to the clock of each pod
    reference_step_s: float | None = None  # the step time that the ledger compares with
    gpu_hours: Mapping[str, float] | None = None  # by LEDGER_CATEGORIES
    durable_step: int = 0  # of the newest checkpoint that is proven; 0 for none
    advice: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmRow:
    """One printed sample of one GPU. `wrong`: elements that were not those of the reference."""

    pod: str
    gpu: int
    sample: int
    dtype: str
    m: int | None
    n: int | None
    k: int | None
    products: int | None
    seconds: float | None
    tflops: float | None
    wrong: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmGpu:
    """One GPU over all its samples; `tflops` is that of the slowest."""

    pod: str
    gpu: int
    uuid: str | None
    bus: str | None
    name: str | None
    samples: int
    tflops: float | None
    wrong: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmMeasurement:
    """A burn-in of the GPUs of one node or several.

    `spread` is by which part the slowest GPU is below the median one. Both figures are None where rows
    are of several types or sizes.
    """

    rows: tuple[GemmRow, ...]
    gpus: tuple[GemmGpu, ...]
    gpus_planned: int | None
    min_tflops: float | None
    spread: float | None
    failure: str | None
    tool_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticResult:
    """One test on one GPU, or on another entity or the whole node (`gpu` None)."""

    pod: str
    category: str
    test: str
    gpu: int | None
    entity: str  # GPU 3, CPU 0, node
    status: DiagnosticStatus
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticGpu:
    """A GPU that a report names."""

    pod: str
    gpu: int
    serial: str | None
    device_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticMeasurement:
    """The results of DCGM's diagnostics."""

    results: tuple[DiagnosticResult, ...]
    gpus: tuple[DiagnosticGpu, ...]
    gpus_planned: int | None
    dcgm_version: str | None
    driver_version: str | None
    failure: str | None

    @property
    def failed(self) -> tuple[DiagnosticResult, ...]:
        """Return the results that are failures."""
        return tuple(each for each in self.results if each.status == "fail")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """What could not be read, counted."""

    lines_too_long: int = 0
    undecodable_bytes: int = 0
    unmatched_lines: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The result of measuring one Job's logs. `reasons` say why it is not complete."""

    kind: Kind
    profile: str | None
    status: Status
    reasons: tuple[str, ...] = ()
    bandwidth: BandwidthMeasurement | None = None
    training: TrainingMeasurement | None = None
    gemm: GemmMeasurement | None = None
    diagnostics: DiagnosticMeasurement | None = None
    dropped: Dropped = field(default_factory=Dropped)
    inputs: tuple[InputFile, ...] = ()
