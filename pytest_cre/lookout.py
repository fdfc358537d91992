"""A look at a running group's logs now and then: a provisional figure, and whether it still moves."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_cre.formats.quantity import format_bytes
from pytest_cre.judge.words import number_words

if TYPE_CHECKING:
    from pytest_cre.evidence.model import GroupEvidence
    from pytest_cre.measure.model import Measurement
    from pytest_cre.progress import ProgressBoard

GRACE_S = (
    120.0  # of silence beyond the steps that should have come: twice upstream's sample interval
)


@dataclass(frozen=True, slots=True)
class _Seen:
    mark: tuple[int, int]  # last step, step records or rows
    since_s: float


class Lookout:
    """Watches the groups of one item. Called from their threads, each with its own group.

    A training is stalled when no new step came for `multiplier` times what its printed interval
    usually takes, and `GRACE_S`. Only our own clock is used: what the nodes' clocks say of now is
    not known.
    """

    def __init__(
        self,
        measure: "Callable[[GroupEvidence], Measurement]",
        board: "ProgressBoard",
        *,
        multiplier: float | None,
        clock: Callable[[], float],
        grace_s: float = GRACE_S,
    ) -> None:
        self._measure = measure
        self._board = board
        self._multiplier = multiplier
        self._clock = clock
        self._grace_s = grace_s
        self._seen: dict[tuple[str, int], _Seen] = {}

    def is_stalled(self, evidence: "GroupEvidence") -> bool:
        """Note the group's figure; return whether it has stopped making progress."""
        measured = self._measure(replace(evidence, problems=()))
        words = figure_words(measured)
        if words:
            self._board.note(evidence.group, words)
        mark, now_s = _mark(measured), self._clock()
        seen = self._seen.get(evidence.key)
        if seen is None or seen.mark != mark:
            self._seen[evidence.key] = _Seen(mark, now_s)
            return False
        usual_s = _interval_s(measured)
        if self._multiplier is None or usual_s is None:
            return False
        return now_s - seen.since_s > self._multiplier * usual_s + self._grace_s


def figure_words(measured: "Measurement") -> str:
    """Return the last size or step with its figure; empty while there is none."""
    if measured.training is not None and measured.training.steps:
        last = measured.training.steps[-1]
        time = f", {number_words(last.step_time_s)} s a step" if last.step_time_s else ""
        return f"step {last.step}{time}"
    if measured.bandwidth is not None:
        rows = [row for table in measured.bandwidth.tables for row in table.rows]
        if rows:
            half = rows[-1].out_of_place or rows[-1].in_place
            value = half.busbw_gbs if half is not None else None
            figure = f" {number_words(value)} GB/s" if value is not None else ""
            return f"{format_bytes(rows[-1].size_bytes)}{figure}"
    return ""


def _mark(measured: "Measurement") -> tuple[int, int]:
    if measured.training is not None:
        return measured.training.summary.last_step or -1, measured.training.summary.step_records
    if measured.bandwidth is not None:
        return -1, sum(len(table.rows) for table in measured.bandwidth.tables)
    return -1, -1


def _interval_s(measured: "Measurement") -> float | None:
    """Return how long the steps between two printed lines usually take; None before it is known."""
    training = measured.training
    if training is None or training.summary.avg_step_time_s is None:
        return None
    return training.summary.avg_step_time_s * max(1, training.steps[-1].covers)
