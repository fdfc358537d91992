"""What a test gets to see: the run of its entry, and the figures measured in it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_cre.catalog.limit import Limit
    from pytest_cre.evidence.model import GroupEvidence, WorkflowEvidence
    from pytest_cre.items import EntryCase
    from pytest_cre.measure.model import (
        BandwidthRow,
        BandwidthTable,
        Measurement,
        TrainingMeasurement,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRun:
    """One item's run: evidence, a measurement per group, and the limits that apply to each.

    `demand_complete` fails the test unless the evidence of every group is complete; the public
    figures call it before they answer, so that a test cannot read half a log without noticing.
    """

    case: "EntryCase"
    evidence: "WorkflowEvidence"
    measurements: "Mapping[tuple[str, int], Measurement]"  # by group and attempt
    limits: "Mapping[tuple[str, int], tuple[Limit, ...]]"  # by group and attempt
    retried: "Collection[tuple[str, int]]"  # attempts that were lost and made again
    demand_complete: Callable[[], None]
    note_read: Callable[[], None]  # told that the test looks at what was measured

    @property
    def groups(self) -> "tuple[GroupEvidence, ...]":
        """Return the evidence of each group, without attempts that were made again."""
        return tuple(each for each in self.evidence.groups if each.key not in self.retried)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBandwidth:
    """One group's bandwidth."""

    group: str
    nodes: tuple[str, ...]
    tables: "tuple[BandwidthTable, ...]"
    max_busbw_gbs: Mapping[str, float | None]  # out_of_place, in_place
    transport: tuple[str, ...]
    reasons: tuple[str, ...]


class BandwidthResult:
    """Bandwidth figures of an item; with several groups the slowest one speaks for all.

    Every figure fails the test when a group's evidence is incomplete. `reasons` and `groups` do
    not, so that a test can look into a doubtful run.
    """

    def __init__(self, run: WorkflowRun) -> None:
        self.run = run
        self._groups = tuple(
            _group_bandwidth(run.measurements[group.key], group) for group in run.groups
        )

    @property
    def groups(self) -> tuple[GroupBandwidth, ...]:
        """Return each group's bandwidth, complete or not."""
        self.run.note_read()
        return self._groups

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return why the measurements are not complete; empty when they are."""
        return tuple(sorted({reason for group in self.groups for reason in group.reasons}))

    @property
    def tables(self) -> "tuple[BandwidthTable, ...]":
        """Return the tables of all groups, in group order."""
        self.run.demand_complete()
        return tuple(table for group in self.groups for table in group.tables)

    @property
    def max_busbw_gbs(self) -> Mapping[str, float]:
        """Return the largest bus bandwidth in GB/s by half; the slowest group's."""
        self.run.demand_complete()
        return {
            half: min(
                value for group in self.groups if (value := group.max_busbw_gbs[half]) is not None
            )
            for half in ("out_of_place", "in_place")
            if any(group.max_busbw_gbs[half] is not None for group in self.groups)
        }

    @property
    def transport(self) -> tuple[str, ...]:
        """Return every transport seen in any group, sorted."""
        return tuple(sorted({name for group in self.groups for name in group.transport}))

    def at(self, size_bytes: int) -> "BandwidthRow":
        """Return the row of this message size; the slowest one when there are several.

        Raises `LookupError`, which names the sizes measured.
        """
        rows = [row for table in self.tables for row in table.rows]
        found = [row for row in rows if row.size_bytes == size_bytes]
        if not found:
            sizes = ", ".join(str(size) for size in sorted({row.size_bytes for row in rows}))
            raise LookupError(f"no row of {size_bytes} bytes; measured sizes: {sizes}")
        return min(found, key=_slower_half_gbs)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupGoodput:
    """One group's training."""

    group: str
    nodes: tuple[str, ...]
    training: "TrainingMeasurement | None"
    reasons: tuple[str, ...]


class GoodputResult:
    """Training figures of an item; with several groups the worst one speaks for all.

    Every figure fails the test when a group's evidence is incomplete.
    """

    def __init__(self, run: WorkflowRun) -> None:
        self.run = run
        self._groups = tuple(
            GroupGoodput(
                group=group.group,
                nodes=group.nodes,
                training=run.measurements[group.key].training,
                reasons=run.measurements[group.key].reasons,
            )
            for group in run.groups
        )

    @property
    def groups(self) -> tuple[GroupGoodput, ...]:
        """Return each group's training, complete or not."""
        self.run.note_read()
        return self._groups

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return why the measurements are not complete; empty when they are."""
        return tuple(sorted({reason for group in self.groups for reason in group.reasons}))

    @property
    def ratio(self) -> float | None:
        """Return the goodput ratio, 0 to 1; None when no ratio is defined."""
        return _worst([each.ratios["goodput"] for each in self._trainings()], min)

    @property
    def ledger_s(self) -> Mapping[str, float]:
        """Return the seconds of each ledger category, summed over the groups."""
        trainings = self._trainings()
        categories = trainings[0].ledger_s if trainings else ()
        return {name: sum(each.ledger_s[name] for each in trainings) for name in categories}

    @property
    def avg_step_time_s(self) -> float | None:
        """Return the average step time in seconds without warm-up; the slowest group's."""
        return _worst([each.summary.avg_step_time_s for each in self._trainings()], max)

    @property
    def tflops_per_gpu(self) -> float | None:
        """Return the average TFLOP/s per GPU without warm-up; the slowest group's."""
        return _worst([each.summary.avg_tflops_per_gpu for each in self._trainings()], min)

    def _trainings(self) -> "list[TrainingMeasurement]":
        self.run.demand_complete()
        return [group.training for group in self.groups if group.training is not None]


def _group_bandwidth(measurement: "Measurement", group: "GroupEvidence") -> GroupBandwidth:
    bandwidth = measurement.bandwidth
    return GroupBandwidth(
        group=group.group,
        nodes=group.nodes,
        tables=bandwidth.tables if bandwidth else (),
        max_busbw_gbs={
            "out_of_place": bandwidth.max_out_of_place_gbs if bandwidth else None,
            "in_place": bandwidth.max_in_place_gbs if bandwidth else None,
        },
        transport=bandwidth.transport if bandwidth else (),
        reasons=measurement.reasons,
    )


def _slower_half_gbs(row: "BandwidthRow") -> float:
    halves = [half.busbw_gbs for half in (row.out_of_place, row.in_place) if half is not None]
    return min((value for value in halves if value is not None), default=float("-inf"))


def _worst(
    values: Sequence[float | None], worst: Callable[[Sequence[float]], float]
) -> float | None:
    """Return the worst value, or None when one is missing: a missing figure is no figure."""
    known = [value for value in values if value is not None]
    return worst(known) if known and len(known) == len(values) else None
