"""Measurements as status documents: provisional while the Job runs, frozen by one terminal computation."""

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pytest_cre.evidence.model import JobFacts
from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.lifecycle import bandwidth_status, goodput_status
from pytest_cre.measure.model import BandwidthMeasurement, BandwidthRow, BandwidthTable, HalfRow
from tests.measure.histories import events_of, ns

PARAMS = LedgerParams(reference_step_s=1.0)
RUN = events_of("start; pass 100; ready 0; run 250; save 10; run 250; save 10")
RUNNING = JobFacts(kind="Job", name="train", uid="uid-1", terminal="none", started_ns=0)
SUCCEEDED = replace(RUNNING, terminal="succeeded", terminal_ns=ns(620))
FAILED = replace(RUNNING, terminal="failed", terminal_ns=ns(620))


def status(job, events=RUN, *, now_s=700, **more):
    return goodput_status(job, events, PARAMS, now_ns=ns(now_s), **more)


def conditions(found):
    return {(c.type, c.is_true): c.reason for c in found.conditions}


def test_status_of_a_running_job_is_provisional():
    found = status(RUNNING, now_s=400)
    assert conditions(found) == {("Measuring", True): "JobRunning"}
    assert not found.is_complete
    assert not found.is_judgeable
    assert found.fields["result"] == "0.725000"
    assert "completionTime" not in found.fields


def test_status_of_a_succeeded_job_is_anchored_to_its_terminal_time():
    found = status(SUCCEEDED)
    assert found.document() == {
        "kind": "GoodputMeasurement",
        "metadata": {"annotations": {"cre.pytest.org/job-uid": "uid-1"}},
        "status": {
            "result": "0.806452",
            "startTime": "1970-01-01T00:00:00Z",
            "completionTime": "1970-01-01T00:10:20Z",
            "currentStep": 500,
            "highestStep": 500,
            "lastCheckpointStep": 500,
            "trainingTimeSec": "620.000000",
            "lostWorkTimeSec": "0.000000",
            "rescheduleTimeSec": "0.000000",
            "resumeTimeSec": "100.000000",
            "checkpointSaveTimeSec": "20.000000",
            "interruptionCount": 0,
            "avgStepTimeSec": "1.000000",
            "conditions": [
                {
                    "type": "Complete",
                    "status": "True",
                    "reason": "JobSucceeded",
                    "lastTransitionTime": "1970-01-01T00:10:20Z",
                },
                {
                    "type": "Measuring",
                    "status": "False",
                    "reason": "JobSucceeded",
                    "lastTransitionTime": "1970-01-01T00:10:20Z",
                },
            ],
        },
    }
    assert found.is_judgeable


@pytest.mark.parametrize("now_s", [620, 621, 86_400, 10**8])
def test_status_computed_later_has_the_same_bytes(now_s):
    assert status(SUCCEEDED, now_s=now_s).text() == status(SUCCEEDED, now_s=620).text()


def test_status_of_a_failed_job_loses_what_was_not_saved_and_is_not_judged():
    found = status(FAILED, events_of("start; ready 0; run 250; save 10; run 250"))
    assert conditions(found) == {("Complete", True): "JobFailed", ("Measuring", False): "JobFailed"}
    assert not found.is_judgeable
    assert found.fields["lostWorkTimeSec"] == "360.000000"
    assert found.fields["lastCheckpointStep"] == 250


def test_failure_before_any_save_loses_everything():
    found = status(FAILED, events_of("start; ready 0; run 600"))
    assert (found.fields["result"], found.fields["interruptionCount"]) == ("0.000000", 1)


def test_success_without_a_step_collected_no_data():
    found = status(SUCCEEDED, events_of("start; ready 0"))
    assert found.reason == "NoDataCollected"
    assert "result" not in found.fields
    assert not found.is_judgeable


def test_goodput_of_zero_is_a_result():
    found = status(SUCCEEDED, events_of("start; pass 620; ready 0; run 1 x 0"))
    assert found.reason == "JobSucceeded"
    assert found.fields["result"] == "0.000000"


def test_logs_that_cannot_be_read_leave_the_provisional_figures_unjudged():
    running = status(RUNNING, now_s=400)
    found = status(SUCCEEDED, (), logs_available=False, previous=running)
    assert found.reason == "LogsUnavailable"
    assert found.is_complete
    assert not found.is_judgeable
    assert found.fields["result"] == running.fields["result"]
    assert found.fields["completionTime"] == "1970-01-01T00:10:20Z"


def test_complete_status_never_changes_again():
    done = status(SUCCEEDED)
    assert status(SUCCEEDED, (), now_s=9999, previous=done) is done
    assert status(FAILED, RUN, logs_available=False, previous=done) is done


def test_status_of_an_earlier_job_of_the_same_name_is_left_alone():
    done = status(SUCCEEDED)
    again = replace(RUNNING, uid="uid-2", started_ns=ns(1000))
    found = goodput_status(
        again,
        events_of("pass 1000; start; ready 0; run 50"),
        PARAMS,
        now_ns=ns(1050),
        previous=done,
    )
    assert (found.job_uid, found.is_complete, found.fields["currentStep"]) == ("uid-2", False, 50)
    ended = replace(again, terminal="succeeded", terminal_ns=ns(1100))
    lost = goodput_status(ended, (), PARAMS, now_ns=ns(1100), logs_available=False, previous=done)
    assert "result" not in lost.fields


def test_late_lines_do_not_move_past_the_terminal_time():
    late = [*RUN, *events_of("pass 640; at 500; run 5")]
    assert status(SUCCEEDED, late).fields["currentStep"] == 500
    assert status(SUCCEEDED, late).fields["trainingTimeSec"] == "620.000000"


def half(algbw, busbw):
    return HalfRow(time_us=1.0, algbw_gbs=algbw, busbw_gbs=busbw, wrong=0)


def table(*rows):
    return BandwidthTable(
        test="all_reduce",
        rows=tuple(
            BandwidthRow(
                size_bytes=size,
                count=1,
                dtype="float",
                redop="sum",
                root=-1,
                out_of_place=half(algbw, busbw),
                in_place=None,
            )
            for size, algbw, busbw in rows
        ),
        avg_busbw_gbs=None,
        out_of_bounds=None,
        is_complete=True,
        ranks=None,
        nccl_version=None,
        tool_version=None,
    )


MEASURED = BandwidthMeasurement(
    tables=(table((1048576, 14.96, 28.05), (8, 0.0, 0.0), (1048576, 14.98, 28.09), (8, 0.0, 0.0)),),
    transport=("Socket", "IB"),
)


def test_bandwidth_status_averages_each_size_and_rounds_once():
    found = bandwidth_status(SUCCEEDED, MEASURED)
    assert found.fields["results"] == [
        {"sizeBytes": 8, "algBW": "0.00", "busBW": "0.00", "samples": 2},
        {"sizeBytes": 1048576, "algBW": "14.97", "busBW": "28.07", "samples": 2},
    ]
    assert found.fields["transport"] == ["IB", "Socket"]
    drift = table((64, 100.00, 1), (64, 100.01, 1), (64, 100.01, 1), (64, 100.01, 1))
    (result,) = bandwidth_status(SUCCEEDED, BandwidthMeasurement(tables=(drift,))).fields["results"]
    assert (result["algBW"], result["samples"]) == ("100.01", 4)


@pytest.mark.parametrize(
    ("job", "measured", "logs_available", "reason", "is_judgeable"),
    [
        (RUNNING, MEASURED, True, "JobRunning", False),
        (SUCCEEDED, MEASURED, True, "JobSucceeded", True),
        (SUCCEEDED, BandwidthMeasurement(), True, "NoDataCollected", False),
        (SUCCEEDED, MEASURED, False, "LogsUnavailable", False),
        (FAILED, MEASURED, True, "JobFailed", False),
    ],
)
def test_bandwidth_status_has_the_reason_of_its_end(
    job, measured, logs_available, reason, is_judgeable
):
    found = bandwidth_status(job, measured, logs_available=logs_available)
    assert (found.reason, found.is_judgeable) == (reason, is_judgeable)
    assert found.is_complete == (job is not RUNNING)
    assert bandwidth_status(job, measured, logs_available=logs_available).text() == found.text()


class Reader(RuleBasedStateMachine):
    """Samples at any times, with restarts of the reader that lose or keep the status before."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0
        self.kept = None
        self.frozen = None
        self.ended = None

    @property
    def job(self):
        if self.ended is None:
            return RUNNING
        return replace(RUNNING, terminal=self.ended[0], terminal_ns=ns(self.ended[1]))

    @rule(seconds=st.integers(1, 200))
    def wait(self, seconds):
        self.now_s += seconds

    @precondition(lambda self: self.ended is None and self.now_s > 0)
    @rule(outcome=st.sampled_from(("succeeded", "failed")))
    def end(self, outcome):
        self.ended = (outcome, self.now_s)

    @rule(is_restarted=st.booleans())
    def sample(self, is_restarted):
        seen = [
            event
            for event in RUN
            if event.t_ns <= ns(min(self.now_s, self.ended[1] if self.ended else 10**9))
        ]
        previous = None if is_restarted else self.kept
        self.kept = status(self.job, seen, now_s=self.now_s, previous=previous)
        if self.ended is not None:
            self.frozen = self.frozen or self.kept.text()
            assert self.kept.text() == self.frozen

    @invariant()
    def is_complete_only_after_the_end(self):
        if self.kept is not None and self.kept.is_complete:
            assert self.ended is not None


Reader.TestCase.settings = settings(
    derandomize=True, max_examples=25, stateful_step_count=12, database=None
)
TestReader = Reader.TestCase
