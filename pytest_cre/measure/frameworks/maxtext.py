"""MaxText: one line per step, counted from 0, without a time of its own."""

import re

from pytest_cre.measure.frameworks.dialect import Dialect, leading_number, step_of
from pytest_cre.measure.frameworks.recorder import Recorder
from pytest_cre.measure.logtext import Line

_STEP = re.compile(
    rb"\bcompleted step: *(\d{1,15}), *seconds: *([\d.]+), *TFLOP/s/device: *([\d.]+)(.*)"
)
_LOSS = re.compile(rb"\bloss: *([\d.eE+-]+)")
_START = re.compile(rb"System Information: Jax Version")
_SAVED = re.compile(rb"\b[Ss]aved a checkpoint at step (\d{1,15})")
_ASYNC = re.compile(rb"\bStarted an asynchronous checkpoint save for step (\d{1,15})")
_LOADED = re.compile(rb"\b[Rr]estoring from this run's directory(?: latest)? step (\d{1,15})")
_FRESH = re.compile(rb"\bNo existing checkpoints found, not restoring")
_EVAL_STEP = re.compile(rb"\bCompleted eval step (\d{1,15})")
_EVALUATED = re.compile(rb"\beval metrics after step: *\d+")


class MaxText(Dialect):
    """Reads MaxText's lines.

    The first step compiles, and one or two after it return before the work is done, with impossible
    rates; averages leave all three out.
    """

    framework = "maxtext"
    profile = "maxtext"
    needles = (*(b"completed step:", b"heckpoint", b"estor", b"eval ", b"System Information: Jax"),)
    warmup_steps = 3

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._is_evaluating = False

    def line(self, line: Line) -> bool:
        """Take a step, save, restore, evaluation or start."""
        text, recorder = line.text, self.recorder
        if found := _STEP.search(text):
            number = step_of(found[1])
            if number is None:
                return False
            loss = _LOSS.search(found[4])
            recorder.step(
                line,
                number,
                seconds=leading_number(found[2]),
                tflops=leading_number(found[3]),
                loss=leading_number(loss[1]) if loss else None,
            )
        elif found := _SAVED.search(text):
            recorder.fact("save_commit", line, step=step_of(found[1]))
        elif found := _ASYNC.search(text):
            recorder.fact("save_start", line, step=step_of(found[1]))
            recorder.fact("save_unblock", line, step=step_of(found[1]))
        elif found := _LOADED.search(text):
            recorder.fact("load_start", line)
            recorder.fact("load_end", line, step=step_of(found[1]))
        elif _FRESH.search(text):
            recorder.fact("load_end", line, step=0)
        elif _EVAL_STEP.search(text):
            if not self._is_evaluating:
                recorder.fact("eval_start", line)
            self._is_evaluating = True
        elif _EVALUATED.search(text):
            recorder.fact("eval_end", line)
            self._is_evaluating = False
        elif _START.search(text):
            recorder.started(line)
        else:
            return False
        return True
