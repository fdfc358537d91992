"""DeepSpeed's own lines: a timer line and a step line per printed step, in either order, and saves."""

import re

from pytest_cre.measure.frameworks.dialect import Dialect, step_of
from pytest_cre.measure.logtext import Line

_TIMER = re.compile(rb"epoch=\d+/micro_step=\d+/global_step=(\d{1,15}), *RunningAvgSamplesPerSec=")
_STEP = re.compile(rb"\bstep=(\d{1,15}), *skipped=(\d{1,15}), *lr=\[")
_SAVE = re.compile(rb"\] Checkpoint \S*?(\d{1,15}) is about to be saved!")
_SAVED = re.compile(rb"\] Checkpoint \S*?(\d{1,15}) is ready now!")
_LOAD = re.compile(rb"\[\w*Torch\w*\] Loading checkpoint from ")
_LOADED = re.compile(rb"\[\w*Torch\w*\] Loaded checkpoint from \S*global_step(\d{1,15})")
_START = re.compile(rb"DeepSpeed info: version=")


class DeepSpeed(Dialect):
    """Reads DeepSpeed's lines. It prints no step time: only times between lines tell."""

    framework = "deepspeed"
    profile = "deepspeed"
    needles = (b"/global_step=", b"skipped=", b"heckpoint", b"DeepSpeed info: version=")

    def line(self, line: Line) -> bool:
        """Take a step, save, load or start."""
        text, recorder = line.text, self.recorder
        if found := _TIMER.search(text) or _STEP.search(text):
            number = step_of(found[1])
            if number is None:
                return False
            if number != recorder.last_number:  # the other line of the pair
                recorder.step(line, number)
        elif found := _SAVE.search(text):
            recorder.fact("save_start", line, step=step_of(found[1]))
        elif found := _SAVED.search(text):
            recorder.fact("save_commit", line, step=step_of(found[1]))
        elif found := _LOADED.search(text):
            recorder.fact("load_end", line, step=step_of(found[1]))
        elif _LOAD.search(text):
            recorder.fact("load_start", line)
        elif _START.search(text):
            recorder.started(line)
        else:
            return False
        return True
