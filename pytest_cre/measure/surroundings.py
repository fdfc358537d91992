"""What is known of a Job beside its logs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.events import TrainingEvent


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
