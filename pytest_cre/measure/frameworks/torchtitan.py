"""TorchTitan: padded numbers, commas between thousands, no step time, no step on checkpoint lines."""

import re

from pytest_cre.measure.frameworks.dialect import Dialect, leading_number, step_of, time_in
from pytest_cre.measure.frameworks.recorder import Fact, Recorder
from pytest_cre.measure.logtext import Line

_STEP = re.compile(rb"\bstep: +(\d{1,15})(?:/\d+ = [\d.]+%)? +loss: +(\S+)(.*)")
_TFLOPS = re.compile(rb"\btflops: +([\d,.]+)")
_SECONDS = re.compile(rb"\belapsed_time_per_step: *([\d.]+)s\b")
_START = re.compile(rb"\bStarting job: ")
_READY = re.compile(rb"\bTraining starts at step (\d{1,15})")
_LOAD = re.compile(rb"\bLoading the checkpoint from ")
_LOADED = re.compile(rb"\bFinished loading the checkpoint in ([\d.]+) seconds")
_SAVE = re.compile(rb"\bSaving (?:the|a [\w .-]{0,40}) ?checkpoint\b")
_SAVE_STEP = re.compile(rb"\bstep (\d{1,15})\b")
_SAVED = re.compile(
    rb"\b(?:Finished saving the checkpoint[^i]*(?:\([^)]*\))? *in|Last step checkpoint completed in)"
    rb" *([\d.]+) *s"
)
_DONE = re.compile(rb"\bTraining completed\b")


class TorchTitan(Dialect):
    """Reads TorchTitan's lines."""

    framework = "torchtitan"
    profile = "torchtitan"
    needles = (b"loss", b"Starting job: ", b"raining ", b"heckpoint")

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._loaded: Fact | None = None  # its step is only told when training starts

    def line(self, line: Line) -> bool:
        """Take a step, save, load, start or end."""
        text, recorder = line.text, self.recorder
        if found := _STEP.search(text):
            number = step_of(found[1])
            if number is None:
                return False
            tflops, seconds = _TFLOPS.search(found[3]), _SECONDS.search(found[3])
            recorder.step(
                line,
                number,
                app_ns=self._app_ns(line),
                loss=leading_number(found[2]),
                tflops=leading_number(tflops[1]) if tflops else None,
                seconds=leading_number(seconds[1]) if seconds else None,
            )
            return True
        return self._other(line)

    def _other(self, line: Line) -> bool:
        text, recorder, app_ns = line.text, self.recorder, self._app_ns(line)
        if found := _SAVED.search(text):
            duration_s = leading_number(found[1])
            recorder.fact("save_unblock", line, app_ns=app_ns, duration_s=duration_s)
            # Only the sync mode tells of the end of the write; "staging" is what the async mode ends.
            if b"staging" not in text or b"if async" in text:
                recorder.fact("save_commit", line, app_ns=app_ns, duration_s=duration_s)
        elif _SAVE.search(text):
            found = _SAVE_STEP.search(text)
            step = step_of(found[1]) if found else recorder.last_number
            recorder.fact("save_start", line, app_ns=app_ns, step=step)
        elif _LOAD.search(text):
            recorder.fact("load_start", line, app_ns=app_ns)
        elif found := _LOADED.search(text):
            self._loaded = recorder.fact(
                "load_end", line, app_ns=app_ns, duration_s=leading_number(found[1])
            )
        elif found := _READY.search(text):
            first = step_of(found[1]) or 1
            if self._loaded is not None:
                self._loaded.step, self._loaded = max(0, first - 1), None
            recorder.fact("train_ready", line, app_ns=app_ns)
        elif _START.search(text):
            recorder.started(line)
        elif _DONE.search(text):
            recorder.finished(line, app_ns=app_ns)
        else:
            return False
        return True

    @staticmethod
    def _app_ns(line: Line) -> int | None:
        """Return the logger's time, which stands after the name `[titan]`."""
        return None if line.app_ns is not None else time_in(line.text[:60])
