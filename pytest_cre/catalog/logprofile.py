"""Log profiles: which lines of a log mean what, in upstream's own YAML form."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pytest_cre.catalog.entry import Measures

TimeUnit = Literal["s", "ms", "us"]
# What a pattern measures; of several the first in this order says what the profile reads.
KINDS: Mapping[str, Measures] = {
    "bandwidthResult": "bandwidth",
    "gemmResult": "gemm",
    "diagnosticReport": "diagnostics",
    "trainingStep": "training",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPattern:
    """An RE2 pattern with named groups, and a line that it must match."""

    regex: str
    example: str | None = None
    units: Mapping[str, TimeUnit] = field(default_factory=dict)  # by group name; default s
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogProfile:
    """How to read the log of one framework.

    Pattern names: trainingStep, checkpointSave, checkpointDone, checkpointRestore,
    checkpointLoaded, applicationStart, warmupStep, bandwidthResult, networkTransport, gemmResult,
    diagnosticReport.
    """

    name: str
    patterns: Mapping[str, EventPattern]
    timestamp_layout: str = "2006-01-02T15:04:05.999999999Z07:00"  # Go layout
    strategy: Literal["Single", "Multi"] = "Single"
    lifecycle_pod: Literal["first", "last"] = "first"
    training_step_pod: Literal["first", "last"] = "first"
    replicated_job_name: str = ""
    container_name: str = ""
    warmup_steps: int = 0
    log_interval: int = 0
    place: str = ""

    @property
    def reads(self) -> Measures:
        """Return what the profile reads; without a pattern that says so: training."""
        return next((kind for name, kind in KINDS.items() if name in self.patterns), "training")
