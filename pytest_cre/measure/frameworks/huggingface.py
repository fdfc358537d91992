"""The Hugging Face Trainer: metrics as Python dicts without a step number, which its bar tells."""

import re

from pytest_cre.measure.frameworks.dialect import Dialect, leading_number, step_of
from pytest_cre.measure.frameworks.recorder import Recorder
from pytest_cre.measure.logtext import Line

_BAR = re.compile(
    rb"(\d{1,15})/(\d{1,15}) \[(?:\d+:)*\d+:\d\d<[\d:?]+, *(?:(\d+(?:\.\d+)?)|\?)(it/s|s/it)"
)
_LOSS = re.compile(rb"\{'loss': '?([\d.eE+-]+)'?, .*'(?:learning_rate|grad_norm|epoch)': ")
_DONE = re.compile(rb"\{'train_runtime': '?[\d.]+")
_START = re.compile(rb"\*{5} Running training \*{5}")
_EVAL = re.compile(rb"\*{5} Running (?:Evaluation|evaluation) \*{5}")
_EVALUATED = re.compile(rb"\{'eval_loss': ")
_RESUMED = re.compile(rb"Continuing training from global step (\d{1,15})")
_SAVE = re.compile(rb"Saving model checkpoint to \S*checkpoint-(\d{1,15})")
_SAVED = re.compile(rb"Model weights saved in \S*checkpoint-(\d{1,15})")


class HuggingFace(Dialect):
    """Reads the Trainer's lines; where no bar is shown, lines are counted, which is flagged."""

    framework = "hf"
    profile = "huggingface"
    needles = (
        *(
            b"it/s",
            b"s/it",
            b"loss",
            b"{'train_runtime': ",
            b"***** Running ",
            b"raining ",
            b"heckpoint",
        ),
    )

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._bar: tuple[int, float | None] | None = None

    def line(self, line: Line) -> bool:
        """Take a bar, metrics, save, evaluation, start or end."""
        text, recorder = line.text, self.recorder
        if bar := _BAR.search(text):
            rate = leading_number(bar[3]) if bar[3] else None
            seconds = None if not rate else rate if bar[4] == b"s/it" else 1.0 / rate
            self._bar = (step_of(bar[1]) or 0, seconds)
        if found := _LOSS.search(text):
            self._metrics(line, leading_number(found[1]))
        elif _DONE.search(text):
            recorder.finished(line)
        elif _EVALUATED.search(text):
            recorder.fact("eval_end", line)
        elif _EVAL.search(text):
            recorder.fact("eval_start", line)
        elif _START.search(text):
            recorder.started(line)
        elif found := _RESUMED.search(text):
            recorder.fact("load_end", line, step=step_of(found[1]))
        elif found := _SAVE.search(text):
            recorder.fact("save_start", line, step=step_of(found[1]))
        elif found := _SAVED.search(text):
            recorder.fact("save_commit", line, step=step_of(found[1]))
        else:
            return False
        return True

    def _metrics(self, line: Line, loss: float | None) -> None:
        last = self.recorder.last_number or 0
        if self._bar is not None and self._bar[0] > 0 and self._bar[0] != last:
            number, seconds = self._bar
        else:
            number, seconds = last + 1, None
            self.recorder.flags.add("steps_counted")
        self.recorder.step(line, number, seconds=seconds, loss=loss)
