"""NeMo: the training line of version 2, the progress bar of version 1, and their checkpoints."""

import re

from pytest_cre.measure.frameworks.dialect import fields_of, leading_number, number_of, step_of
from pytest_cre.measure.frameworks.lightning import BAR, Lightning
from pytest_cre.measure.instants import SECOND_NS
from pytest_cre.measure.logtext import Line

_STEP = re.compile(rb"\bTraining epoch (\d{1,9}), iteration (\d{1,15})/(\d{1,15}) \|(.*)")
_START = re.compile(rb"\bApplication initialized\b")
_SAVE = re.compile(
    rb"\bGlobal Checkpoint Save *: *Rank *: *\d+ *: *Iteration *: *(\d{1,15}) *:"
    rb" *Start time *: *(\d{1,11})\.(\d{1,9})s *: *Save duration *: *([\d.]+)s"
)
_SCHEDULED = re.compile(rb"\bScheduled async checkpoint save for ")
_SAVED = re.compile(rb"\bSuccessfully saved checkpoint from iteration +(\d{1,15})")
_FINALIZED = re.compile(rb"\bAsync checkpoint save for step (\d{1,15}) .*finalized successfully")
_TFLOPS_LABELS = (b"tflops per gpu", b"tflops per gpu avg")
_NEMO_BAR = re.compile(rb"train_step_timing|reduced_train_loss|consumed_samples")


class NeMo(Lightning):
    """Reads NeMo's lines. Steps are numbered as printed, from 0."""

    framework = "nemo"
    profile = "nemo"
    kin = ("megatron-lm", "megatron-bridge", "lightning")
    needles = (
        *(b"iteration", b"train_step_timing", b"loss", b"consumed_samples", b"heckpoint"),
        b"Application initialized",
    )

    def line(self, line: Line) -> bool:
        """Take a training line, a bar with NeMo's values, a save or a start."""
        text, recorder = line.text, self.recorder
        if found := _STEP.search(text):
            return self._training(line, found)
        if _NEMO_BAR.search(text):
            bar = BAR.search(text)
            return self.bar(line, bar) if bar else False
        if found := _SAVE.search(text):
            step, duration_s = step_of(found[1]), leading_number(found[4]) or 0.0
            begun_ns = int(found[2]) * SECOND_NS + int(found[3].ljust(9, b"0"))
            for kind, at_ns in (
                ("save_start", begun_ns),
                ("save_unblock", begun_ns + round(duration_s * SECOND_NS)),
            ):
                fact = recorder.fact(
                    "save_start" if kind == "save_start" else "save_unblock", line, step=step
                )
                fact.app_ns, fact.absolute_ns = None, at_ns
            fact.duration_s = duration_s
        elif _SCHEDULED.search(text):
            recorder.fact("save_unblock", line)
        elif found := _SAVED.search(text) or _FINALIZED.search(text):
            recorder.fact("save_commit", line, step=step_of(found[1]))
        elif _START.search(text):
            recorder.started(line)
        else:
            return False
        return True

    def _training(self, line: Line, found: "re.Match[bytes]") -> bool:
        fields = fields_of(found[4])
        printed = leading_number(fields.get(b"global step", b""))
        number = step_of(found[2]) if printed is None or printed % 1 else int(printed)
        if number is None:
            return False
        tflops = next((leading_number(fields[k]) for k in _TFLOPS_LABELS if k in fields), None)
        self.recorder.step(
            line,
            number,
            seconds=leading_number(fields.get(b"train step timing in s", b"")),
            tflops=tflops,
            loss=leading_number(fields.get(b"reduced train loss", b"")),
        )
        if found[2] == found[3]:
            self.recorder.finished(line)
        return True

    def number(self, epoch: int, count: int, total: int, values: "dict[bytes, bytes]") -> int:
        """Return the global step, or what the bar counts where it is printed with few digits."""
        printed = values.get(b"global_step", b"").removesuffix(b".0")
        if printed.isdigit():
            return step_of(printed) or 0
        return epoch * total + count - 1

    def seconds(self, found: "re.Match[bytes]", values: "dict[bytes, bytes]") -> float | None:
        """Return the step's own time, else the bar's rate."""
        own = number_of(values.get(b"train_step_timing in s"))
        return own if own is not None else super().seconds(found, values)
