"""Megatron-LM, its forks and Megatron-Bridge.

The last rank prints steps, the first one prints saves and loads, so that on several nodes they come from
different pods. Bridge prints saves without a time.
"""

import re
from array import array
from collections.abc import Iterable, Iterator
from operator import eq

from pytest_cre.measure.frameworks.dialect import (
    Dialect,
    fields_of,
    leading_number,
    step_of,
    time_in,
)
from pytest_cre.measure.frameworks.recorder import Recorder
from pytest_cre.measure.instants import instant_ns
from pytest_cre.measure.logtext import Line

_STEP = re.compile(rb"(?<!, )\biteration[ ]*=?[ ]*(\d{1,15})[ ]*/[ ]*(\d{1,15}|infinity)[ ]*\|(.*)")
_STEP_TIME = re.compile(rb"Step Time :? *([\d.]+)s.*GPU utilization: *([\d.]+) *MODEL_TFLOP/s/GPU")
_START = re.compile(rb"using world size: \d+, data-parallel size: \d+")
_READY = re.compile(rb"\[before the start of training step\] datetime: *(.*)")
_DONE = re.compile(rb"\[after training is done\] datetime:|exiting program (?:at iteration|after) ")
_SAVE = re.compile(rb"saving checkpoint at iteration +(\d{1,15})")
_SCHEDULED = re.compile(rb"scheduled an async checkpoint save at iteration +(\d{1,15})")
_SAVED = re.compile(rb"successfully saved checkpoint (?:at|from) iteration +(\d{1,15})")
_SAVE_SECONDS = re.compile(rb"save-checkpoint[ .]*: *\(([\d.]+), *([\d.]+)\)")
_LOAD = re.compile(rb"(?i:\bloading )(?:\w+ ){0,2}checkpoint from \S")
_LOADED = re.compile(rb"successfully loaded checkpoint from .*\bat iteration +(\d{1,15})")
_FRESH = re.compile(rb"will not load any checkpoints|will start from random")
_EVAL = re.compile(rb"[Ee]valuating on \d+ samples")
_EVALUATED = re.compile(rb"validation loss at iteration +\d+")
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
# The usual form of a line, with nothing but the kubelet's timestamp before it.
_USUAL = (
    rb"((\d{4}-\d\d-\d\dT\d\d:\d\d):[0-5]\d\.\d{9}Z)  ?"
    rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d):([0-5]\d\.\d{1,9})\]"
    rb" iteration +(\d{1,15})/ *(\d{1,15}) \| consumed samples: +(\d{1,15}) \|"
    rb" elapsed time per iteration \(ms\): (\d{1,12}\.\d{1,9}) \|"
    rb"(?: throughput per GPU \(TFLOP/s/GPU\): (\d{1,9}\.\d{1,9}) \|)?"
    rb" learning rate: [\d.E+-]{1,20} \| global batch size: +\d{1,12} \|"
    rb" lm loss: (\d\.\d{1,9}E[+-]\d\d) \|.*"
)
_USUAL_LINE = re.compile(_USUAL + rb"\n")
_USUAL_LINES = re.compile(rb"(?m)^" + _USUAL + rb"\n")
_TAIL = b" number of skipped iterations:   0 | number of nan iterations:   0 |\n"
_FEW_LINES, _WINDOW_BYTES, _MINUTES_KEPT = 16, 16_384, 4096
_Row = tuple[bytes, ...]
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
        return leading_number(found[2])
    milliseconds = leading_number(found[1])
    return None if milliseconds is None else milliseconds / 1000


def _floats(numbers: Iterable[bytes]) -> Iterator[float]:
    """Return numbers, in half the time that `float` takes on bytes."""
    return map(float, b" ".join(numbers).decode().split(" "))


class Megatron(Dialect):
    """Reads Megatron's lines."""

    framework = "megatron-lm"
    profile = "megatron-training"
    needles = (
        rb"iteration *=? *\d{1,15} */",
        rb"MODEL_TFLOP",
        rb"using world size: \d",
        rb"\] datetime:|exiting program (?:at|after)",
        rb"(?:aving|scheduled an async) checkpoint (?:save )?at iteration",
        rb"successfully (?:saved|loaded) checkpoint",
        rb"save-checkpoint",
        rb"(?i:loading ).{0,80}checkpoint from",
        rb"will not load any|will start from random",
        rb"valuating on \d|validation loss at iteration",
        rb"Worker group FAILED",
        rb"[Mm]egatron[./_-][Bb]ridge",
    )

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._is_bridge = False
        self._step_time: tuple[float | None, float | None] | None = None
        self._minutes: dict[bytes, int] = {}  # of the usual form, in nanoseconds

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
        elif _DONE.search(text):
            recorder.finished(line)
        elif _EVAL.search(text):
            recorder.fact("eval_start", line)
        elif _EVALUATED.search(text):
            recorder.fact("eval_end", line)
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
        """Take as many lines of the usual form as follow each other.

        After a few of them whole windows are tried, for which a million steps need no work line by line.
        """
        if self._step_time is not None:
            return at, 0
        at, taken = self._single(block, at, _FEW_LINES)
        if taken < _FEW_LINES:
            return at, taken
        while lines := self._window(block, at):
            at, taken = block.rfind(b"\n", at, at + _WINDOW_BYTES) + 1, taken + lines
        at, more = self._single(block, at, len(block))
        return at, taken + more

    def _single(self, block: bytes, at: int, limit: int) -> tuple[int, int]:
        rows: list[_Row] = []
        while len(rows) < limit and (found := _USUAL_LINE.match(block, at)) is not None:
            row = found.groups()
            if not block.endswith(_TAIL, at, found.end()) or not self._is_plain([row]):
                break
            rows.append(row)
            at = found.end()
        if rows:
            self._take(rows)
        return at, len(rows)

    def _window(self, block: bytes, at: int) -> int:
        """Take the lines of a window if all are of the usual form; return how many, else 0."""
        end = block.rfind(b"\n", at, at + _WINDOW_BYTES) + 1
        if end <= at:
            return 0
        lines = block.count(b"\n", at, end)
        if block.count(_TAIL, at, end) != lines:
            return 0
        rows: list[_Row] = _USUAL_LINES.findall(block, at, end)
        if len(rows) != lines or not self._is_plain(rows):
            return 0
        self._take(rows)
        return lines

    def _is_plain(self, rows: "list[_Row]") -> bool:
        """Return whether all times are such, and no line is the last of the run."""
        _, written, minutes, _, numbers, lasts, *_ = zip(*rows, strict=True)
        if any(map(eq, numbers, lasts)):
            return False
        known = self._minutes
        if len(known) > _MINUTES_KEPT:
            known.clear()
        return all(known.get(minute) or self._learn(minute) for minute in {*written, *minutes})

    def _learn(self, minute: bytes) -> int:
        """Keep what a minute is in nanoseconds; return it, or 0 where there is no such minute."""
        at_ns = instant_ns(minute + b":00") or 0
        self._minutes[minute] = at_ns
        return at_ns

    def _take(self, rows: "list[_Row]") -> None:
        kubelet, _, minutes, seconds, numbers, _, samples, elapsed, rates, losses = zip(
            *rows, strict=True
        )
        known = self._minutes
        # Exact: a double holds the nanoseconds of a minute with room to spare.
        app_ns = [
            (known.get(minute) or self._learn(minute)) + int(second * 1e9 + 0.5)
            for minute, second in zip(minutes, _floats(seconds), strict=True)
        ]
        self.recorder.rows(
            numbers=array("q", map(int, numbers)),
            app_ns=array("q", app_ns),
            absolute_ns=lambda at: instant_ns(kubelet[at]),
            seconds=array("d", [milliseconds / 1000 for milliseconds in _floats(elapsed)]),
            tflops=array("d", _floats([rate or b"nan" for rate in rates])),
            loss=array("d", _floats(losses)),
        )
        self.recorder.samples = int(samples[-1])
