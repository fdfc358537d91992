import pytest

from pytest_cre.evidence.model import GroupEvidence
from pytest_cre.lookout import Lookout, figure_words
from pytest_cre.measure.model import (
    LEDGER_CATEGORIES,
    BandwidthMeasurement,
    BandwidthRow,
    BandwidthTable,
    HalfRow,
    Measurement,
    StepRecord,
    TrainingMeasurement,
    TrainingSummary,
)

GROUP = GroupEvidence(
    entry="training/x",
    scale="full-scale",
    group="group-0",
    attempt=0,
    nodes=("n1",),
    gpus_per_node=8,
    ranks_planned=8,
    architecture=None,
    is_simulated=True,
    job=None,
)


def training(last_step, *, average=0.5, covers=10):
    records = last_step // covers
    steps = tuple(
        StepRecord(
            step=n * covers, time_ns=None, step_time_s=0.5, tflops_per_gpu=None, loss=None,
            covers=covers,
        )
        for n in range(1, records + 1)
    )  # fmt: skip
    summary = TrainingSummary(
        first_step=covers,
        last_step=last_step,
        highest_step=last_step,
        step_records=records,
        avg_step_time_s=average,
        avg_tflops_per_gpu=None,
        interruptions=0,
    )
    measured = TrainingMeasurement(
        framework=None,
        steps=steps,
        checkpoints=(),
        attempts=1,
        failure=None,
        summary=summary,
        ledger_s=dict.fromkeys(LEDGER_CATEGORIES, 0.0),
        window_s=None,
        ratios={},
    )
    return Measurement(
        inputs=(), kind="training", profile=None, status="incomplete", reasons=(), training=measured
    )


class Board:
    def __init__(self):
        self.noted = []

    def note(self, group, figure):
        self.noted.append((group, figure))


class Watch:
    def __init__(self, multiplier=3.0):
        self.now_s, self.measured, self.board = 0.0, training(100), Board()
        self.lookout = Lookout(
            lambda _: self.measured,
            self.board,
            multiplier=multiplier,
            clock=lambda: self.now_s,
            grace_s=20.0,
        )

    def at(self, now_s, measured=None):
        self.now_s = now_s
        self.measured = measured or self.measured
        return self.lookout.is_stalled(GROUP)


def test_training_stalls_after_multiplier_times_its_interval_and_the_grace():
    # 0.5 s a step, 10 steps a line, times 3, and 20 s: 35 s.
    watch = Watch()

    assert [watch.at(now_s) for now_s in (0, 35, 35.1)] == [False, False, True]


def test_training_that_makes_a_step_starts_the_clock_anew():
    watch = Watch()

    assert not watch.at(0)
    assert not watch.at(34, training(110))
    assert not watch.at(68)
    assert watch.at(70)


def test_training_that_goes_back_to_an_earlier_step_makes_progress():
    watch = Watch()
    watch.at(0)

    assert not watch.at(40, training(90))


@pytest.mark.parametrize(
    ("multiplier", "average"), [(None, 0.5), (3.0, None)], ids=["not-asked-for", "no-step-time"]
)
def test_nothing_is_stalled_without_a_rule_or_a_usual_step_time(multiplier, average):
    watch = Watch(multiplier)
    watch.at(0, training(100, average=average))

    assert not watch.at(1e6)


def test_figure_of_a_training_is_told_to_the_board():
    watch = Watch()
    watch.at(0)

    assert watch.board.noted == [("group-0", "step 100, 0.5 s a step")]


def test_figure_of_a_table_is_its_last_row():
    row = BandwidthRow(
        size_bytes=1 << 30, count=1, dtype="float", redop="sum", root=-1,
        out_of_place=HalfRow(time_us=1.0, algbw_gbs=1.0, busbw_gbs=380.25, wrong=0), in_place=None,
    )  # fmt: skip
    table = BandwidthTable(
        test=None, rows=(row,), avg_busbw_gbs=None, out_of_bounds=None, is_complete=False,
        ranks=None, nccl_version=None, tool_version=None,
    )  # fmt: skip
    measured = Measurement(
        inputs=(), kind="bandwidth", profile=None, status="incomplete", reasons=(),
        bandwidth=BandwidthMeasurement(tables=(table,)),
    )  # fmt: skip

    assert figure_words(measured) == "1 GiB 380.2 GB/s"
    assert figure_words(Measurement(
        inputs=(), kind="none", profile=None, status="no-data", reasons=(),
    )) == ""  # fmt: skip
