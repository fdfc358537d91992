"""Megatron-LM, its forks and Megatron-Bridge.

The last rank prints steps, the first one prints saves and loads, so that on several nodes they come from
different pods. Bridge prints saves without a time.
"""

import re

from pytest_cre.measure.frameworks.dialect import (
    Dialect,
    fields_of,
    leading_number,
    number_of,
    step_of,
    time_in,
)
from pytest_cre.measure.frameworks.recorder import Recorder
from pytest_cre.measure.frameworks.steplines import StepLines
from pytest_cre.measure.logtext import Line

_STEP = re.compile(rb"(?<!, )\biteration[ ]*=?[ ]*(\d{1,15})[ ]*/[ ]*(\d{1,15}|infinity)[ ]*\|(.*)")
_STEP_TIME = re.compile(
    rb"Step Time :? *([\d.]+)s.*GPU utilization: *([\d.]+) *(?:MODEL_)?TFLOP/s/GPU"
)
_START = re.compile(rb"using world size: \d+, data-parallel size: \d+")
_READY = re.compile(rb"\[before the start of training step\] datetime: *(.*)")
_DONE = re.compile(
    rb"\[after training is done\] datetime:(.*)|exiting program (?:at iteration|after) "
)
_SAVE = re.compile(rb"saving checkpoint at iteration +(\d{1,15})")
_SCHEDULED = re.compile(rb"scheduled an async checkpoint save at iteration +(\d{1,15})")
_SAVED = re.compile(rb"successfully saved checkpoint (?:at|from) iteration +(\d{1,15})")
_SAVE_SECONDS = re.compile(rb"save-checkpoint[ .]*: *\(([\d.]+), *([\d.]+)\)")
_LOAD = re.compile(rb"(?i:\bloading )(?:\w+ ){0,2}checkpoint from \S")
_LOADED = re.compile(rb"successfully loaded checkpoint from .*\bat iteration +(\d{1,15})")
_FRESH = re.compile(rb"will not load any checkpoints|will start from random")
_EVAL = re.compile(rb"[Ee]valuating on \d+ samples")
_EVALUATED = re.compile(rb"validation loss at iteration +(\d{1,15})")
_EVALUATE_SECONDS = re.compile(rb"\bevaluate [ .]*: *\(([\d.]+), *([\d.]+)\)")
_FAILED_GROUP = re.compile(rb"Worker group FAILED\. [1-9]\d*/\d+ attempts left; will restart")
_BRIDGE = re.compile(rb"[Mm]egatron[./_-][Bb]ridge")

_TFLOPS_LABELS = (
    b"throughput per gpu (tflop/s/gpu)",
    b"compute per gpu (tflop/s/gpu)",
    b"tflops",
    b"[lm]tflops",
    b"[ds]tflops",
)
_LOSS_LABELS = (b"lm loss", b"loss", b"total loss")
# Cut off before the next column, the time may lack digits.
_ELAPSED = re.compile(
    rb"elapsed[ _]time[ _]per[ _]iteration[ _](?:\(ms\)|in[ _]ms)[ ]*[:=][ ]*([\d.]+)[ ]*\|"
    rb"|\biteration time[ ]*[:=][ ]*([\d.]+)[ ]*s\b"
)


def _seconds_in(text: bytes) -> float | None:
    found = _ELAPSED.search(text)
    if found is None:
        return None
    if found[1] is None:
        return number_of(found[2])
    milliseconds = number_of(found[1])
    return None if milliseconds is None else milliseconds / 1000


class Megatron(Dialect):
    """Reads Megatron's lines."""

    framework = "megatron-lm"
    profile = "megatron-training"
    needles = (
        *(b"iteration", b"heckpoint", b"Step Time ", b"using world size: ", b"] datetime:"),
        *(
            b"exit",
            b"start from random",
            b"valuating on ",
            b"evaluate .",
            b"Worker group FAILED",
            b"ridge",
        ),
    )

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._is_bridge = False
        self._step_time: tuple[float | None, float | None] | None = None
        self._lines = StepLines(recorder)

    @property
    def name(self) -> str:
        """Return megatron-bridge where the log shows its signs."""
        return "megatron-bridge" if self._is_bridge else self.framework

    @property
    def profile_name(self) -> str:
        """Return the name of the log profile for this member of the family."""
        return "megatron-bridge" if self._is_bridge else self.profile

    def line(self, line: Line) -> bool:
        """Take a step, save, load, evaluation, start or end."""
        text, recorder = line.text, self.recorder
        if found := _STEP.search(text):
            return self._step(line, found)
        if found := _STEP_TIME.search(text):
            self._is_bridge = True
            self._step_time = (leading_number(found[1]), leading_number(found[2]))
            if not recorder.numbers or "steps_counted" in recorder.flags:
                self._count(line, *self._step_time)
            return True
        if found := _SAVED.search(text):
            recorder.fact("save_commit", line, step=step_of(found[1]))
            self._save_seconds(text)
            return True
        if found := _SCHEDULED.search(text):
            recorder.fact("save_unblock", line, step=step_of(found[1]))
            return True
        if found := _SAVE.search(text):
            recorder.fact("save_start", line, step=step_of(found[1]))
            self._save_seconds(text)
            return True
        if found := _LOADED.search(text):
            recorder.fact("load_end", line, step=step_of(found[1]))
            return True
        return self._other(line)

    def _other(self, line: Line) -> bool:
        text, recorder = line.text, self.recorder
        if _LOAD.search(text):
            recorder.fact("load_start", line)
        elif _FRESH.search(text):
            recorder.fact("load_end", line, step=0)
        elif _START.search(text):
            recorder.started(line)
        elif found := _READY.search(text):
            recorder.fact("train_ready", line, app_ns=time_in(found[1]))
        elif found := _DONE.search(text):
            recorder.finished(line, app_ns=time_in(found[1] or b""))
        elif _EVAL.search(text):
            recorder.fact("eval_start", line)
        elif found := _EVALUATED.search(text):
            recorder.fact("eval_end", line, step=step_of(found[1]))
        elif found := _EVALUATE_SECONDS.search(text):
            milliseconds = leading_number(found[2])
            lasted_s = None if milliseconds is None else milliseconds / 1000
            recorder.fact("eval_end", line, duration_s=lasted_s)
        elif _FAILED_GROUP.search(text):
            recorder.fact("abort", line, reason="worker group failed")
        elif _BRIDGE.search(text):
            is_new, self._is_bridge = not self._is_bridge, True
            return is_new
        else:
            return self._save_seconds(text)
        return True

    def _step(self, line: Line, found: "re.Match[bytes]") -> bool:
        number = step_of(found[1])
        if number is None:
            return False
        recorder, fields = self.recorder, fields_of(found[3])
        if "steps_counted" in recorder.flags:
            recorder.drop_steps()
        seconds = _seconds_in(found[3])
        tflops = next((leading_number(fields[k]) for k in _TFLOPS_LABELS if k in fields), None)
        if self._step_time is not None:
            # Bridge prints this line before the record of the same step.
            held_seconds, held_tflops = self._step_time
            seconds, tflops = seconds or held_seconds, tflops or held_tflops
            self._step_time = None
        loss = next((leading_number(fields[key]) for key in _LOSS_LABELS if key in fields), None)
        recorder.step(line, number, seconds=seconds, tflops=tflops, loss=loss)
        skipped = leading_number(fields.get(b"number of skipped iterations", b""))
        skipped_nan = leading_number(fields.get(b"number of nan iterations", b""))
        recorder.skipped += int(skipped or 0) + int(skipped_nan or 0)
        samples = leading_number(fields.get(b"consumed samples", b""))
        recorder.samples = recorder.samples if samples is None else int(samples)
        if found[2] == found[1]:
            recorder.finished(line)
        return True

    def _count(self, line: Line, seconds: float | None, tflops: float | None) -> None:
        """Take a step without a number; the first record that has one takes the place of all such."""
        number = (self.recorder.last_number or 0) + 1
        self.recorder.step(line, number, seconds=seconds, tflops=tflops)
        self.recorder.flags.add("steps_counted")

    def _save_seconds(self, text: bytes) -> bool:
        """Complete the newest save with the time that a timer line prints, in milliseconds."""
        found = _SAVE_SECONDS.search(text)
        milliseconds = leading_number(found[2]) if found else None
        if milliseconds is None:
            return False
        for fact in reversed(self.recorder.facts[-4:]):
            if fact.kind in ("save_commit", "save_unblock"):
                fact.duration_s = milliseconds / 1000
                return True
        return False

    def fast(self, block: bytes, at: int) -> tuple[int, int]:
        """Take as many step lines as are alike."""
        return (at, 0) if self._step_time is not None else self._lines.take(block, at)
