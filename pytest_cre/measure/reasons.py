"""Why a measurement is not simply complete, and what is doubtful about it: two closed lists.

docs/reference/measure.md holds both for readers.
"""

from collections.abc import Iterable, Mapping

from pytest_cre.measure.model import Status

NO_DATA = "no-data"

FAILED: Mapping[str, str] = {
    "below-minimum": "the benchmark's own check of the average bandwidth failed",
    "failed-tests": "diagnostic tests failed",
    "failure": "the log tells of a failure",
    "job-failed": "the Job failed",
    "out-of-bounds": "the footer tells of values out of bounds",
    "wrong-values": "rows count wrong elements",
}
INCOMPLETE: Mapping[str, str] = {
    "average-mismatch": "the footer's average is not the mean of the rows",
    "fewer-gpus": "fewer GPUs were measured than were planned",
    "fewer-ranks": "fewer ranks took part than were planned",
    "job-unfinished": "the Job has not come to an end",
    "log-gap": "a part of a log is missing",
    "log-incomplete": "a log was not read to its end",
    "mixed-shapes": "rows are of several types or sizes where one was expected",
    "no-end": "nothing tells how the run ended",
    "no-engine": "no DCGM host engine answered",
    "no-footer": "a table has no footer, so it was cut short",
    "no-header": "a burn-in has no header, so its first rows may be missing",
    "no-rows": "a table has no rows",
    "no-steps": "the log holds no training step",
    "no-tests": "the diagnostics ran no test",
    "not-a-number": "rows hold nan or inf",
    "rows-missing": "a GPU has fewer rows than it should",
    "several-tables": "there are several tables where one was expected",
    "sizes-missing": "the sweep ended before its last size",
    "tests-not-run": "tests that were asked for did not run",
    "torn-rows": "rows are torn, so numbers are missing",
}
# They leave a measurement complete; a reader must still be told.
NOTED: Mapping[str, str] = {
    "socket-fallback": "data between hosts went over sockets, which nobody had asked for",
}
REASONS: Mapping[str, str] = {
    **FAILED,
    **INCOMPLETE,
    **NOTED,
    NO_DATA: "nothing in the log was recognised",
}

FLAGS: Mapping[str, str] = {
    "buffered": "lines were written in bursts, so that their times are late",
    "clamped": "clocks disagree; some events were moved to keep the order of lines",
    "clock_skew": "the clocks of pods disagree; times were corrected",
    "commit_unseen": "no line says when a save was durable; the next save proves it",
    "counter_restarted": "the step counter began again without a word of a load",
    "events_after_end": "lines later than the window's end were left out",
    "exit_unknown": "the time of an exit is not known",
    "gpus_changed": "the number of GPUs changed during the run",
    "implicit_restart": "a restart is inferred from the steps, no line tells it",
    "last_steps_not_durable": "the last steps were delivered, but no save holds them",
    "log_gap": "a part of the log is missing",
    "no_steps": "the run succeeded without a step in the log",
    "no_timestamps": "lines carry no time",
    "profile_unmatched": "the profile matched no step; the framework's own reader did",
    "reference_estimated": "the step time to compare with is estimated from the log itself",
    "reference_unknown": "too few steps for a step time to compare with",
    "resume_inferred": "the step of a resume is inferred, no line tells it",
    "save_unconfirmed": "a save was never confirmed",
    "skipped_steps": "iterations were skipped or not a number",
    "start_unseen": "nothing of what comes before the first lines with steps is in the log",
    "starts_midway": "the log begins in the middle of a run",
    "steps_counted": "lines carry no step number; they were counted",
    "year_unknown": "times carry no year; 1972 stands for it",
    "zone_unknown": "the time zone of the application is not known; the kubelet's times were taken",
}


def status_of(reasons: Iterable[str], *, has_data: bool) -> Status:
    """Return the status that the reasons come to; what failed is told before what is missing."""
    found = set(reasons)
    if found & FAILED.keys():
        return "failed"
    if not has_data:
        return "no-data"
    return "incomplete" if found & INCOMPLETE.keys() else "complete"
