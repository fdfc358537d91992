"""PyTorch Lightning's progress bar, also cut to the width of a terminal or with the bar missing."""

import re
from typing import ClassVar

from pytest_cre.measure.frameworks.dialect import Dialect, leading_number, number_of, step_of
from pytest_cre.measure.frameworks.recorder import Recorder
from pytest_cre.measure.logtext import Line

BAR = re.compile(
    rb"\bEpoch (\d{1,9}):[ :]*(?:\d{1,3}%)?[ |]*[^\[]{0,200}?(\d{1,15})/(\d{1,15}|\?)[ ]*"
    rb"\[((?:\d+:)*\d+:\d\d)<[^,\]]{0,20}(?:, *(\d+(?:\.\d+)?)(it/s|s/it))?(.*)"
)
VALUE = re.compile(rb"[\[, ]([A-Za-z][\w ./-]*?)=([^,\]\s]+)")
_STARTED = re.compile(rb"GPU available: \w+")
_DONE = re.compile(rb"`?Trainer\.fit`? stopped: `?max_\w+=")
_LOAD = re.compile(
    rb"Restor(?:ing|ed) (?:states|all states|model weights) from (?:the checkpoint )?\S"
)
_LOADED = re.compile(rb"Restored all states from the checkpoint")
_STEP_IN_PATH = re.compile(rb"step[=_-](\d{1,15})")
_LOSS_NAMES = (b"loss", b"train_loss", b"train_loss_step", b"reduced_train_loss", b"loss_step")


class Lightning(Dialect):
    """Reads Lightning's lines. The bar is refreshed now and then: each new count is a step line."""

    framework = "lightning"
    profile = "lightning"
    needles: ClassVar[tuple[bytes, ...]] = (
        *(b"Epoch ", b"GPU available: ", b"rainer.fit", b"estor"),
    )

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._newest: tuple[int, int] | None = None  # epoch and count

    def line(self, line: Line) -> bool:
        """Take a bar, start, restore or end."""
        found = BAR.search(line.text)
        return self.bar(line, found) if found else self.lifecycle(line)

    def bar(self, line: Line, found: "re.Match[bytes]") -> bool:
        """Take a bar; the same count again is no step."""
        epoch, count, total = (
            int(found[1]),
            step_of(found[2]),
            step_of(found[3].replace(b"?", b"0")),
        )
        if count is None or total is None:
            return False
        if self._newest == (epoch, count) or count == 0:
            return True
        self._newest = (epoch, count)
        values = {name.strip(): value for name, value in VALUE.findall(found[7])}
        self.recorder.step(
            line,
            self.number(epoch, count, total, values),
            seconds=self.seconds(found, values),
            loss=next((number_of(values[n]) for n in _LOSS_NAMES if n in values), None),
        )
        return True

    def number(self, epoch: int, count: int, total: int, _values: "dict[bytes, bytes]") -> int:
        """Return the step: batches so far, over all epochs."""
        return epoch * total + count

    def seconds(self, found: "re.Match[bytes]", _values: "dict[bytes, bytes]") -> float | None:
        """Return seconds per step from the bar's rate."""
        rate = leading_number(found[5]) if found[5] else None
        if not rate:
            return None
        return rate if found[6] == b"s/it" else 1.0 / rate

    def lifecycle(self, line: Line) -> bool:
        """Take a start, restore or end."""
        text, recorder = line.text, self.recorder
        if _LOADED.search(text):
            found = _STEP_IN_PATH.search(text)
            recorder.fact("load_end", line, step=step_of(found[1]) if found else None)
        elif _LOAD.search(text):
            recorder.fact("load_start", line)
        elif _DONE.search(text):
            recorder.finished(line)
        elif _STARTED.search(text):
            recorder.started(line)
        else:
            return False
        return True
