"""The base of all readers of training logs."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import isfinite
from typing import ClassVar

from pytest_cre.measure.frameworks.recorder import Recorder
from pytest_cre.measure.instants import PLAIN_TIME, instant_ns
from pytest_cre.measure.logtext import Line

NUMBER = rb"[+-]?(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?"
MAX_STEP = 10**15

_PLAIN = re.compile(PLAIN_TIME)
_NUMBER = re.compile(NUMBER)


class Dialect(ABC):
    """How one framework writes its log, read line by line from one stream.

    `needles` are texts of which one occurs in every line that `line` takes anything from.
    """

    framework: ClassVar[str]
    profile: ClassVar[str]
    needles: ClassVar[tuple[bytes, ...]]
    # Frameworks whose lifecycle lines also belong to this one's logs.
    kin: ClassVar[tuple[str, ...]] = ()
    # Steps that averages leave out after each start, where the first line alone is not enough.
    warmup_steps: ClassVar[int] = 0

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    @property
    def name(self) -> str:
        """Return the framework's name, the more special one where the log told it."""
        return self.framework

    @property
    def profile_name(self) -> str:
        """Return the name of the log profile that stands for this framework."""
        return self.profile

    @abstractmethod
    def line(self, line: Line) -> bool:
        """Take a line; return whether it is one of this framework's."""

    def fast(self, _block: bytes, at: int) -> tuple[int, int]:
        """Take lines from a place of a block on in one go; return where they end and how many.

        It may only take what `line` would take in the same way.
        """
        return at, 0


def number_of(text: bytes | None) -> float | None:
    """Return a number as frameworks print them, with commas between thousands or an exponent."""
    if text is None or _NUMBER.fullmatch(text) is None:
        return None
    number = float(text.replace(b",", b""))
    return number if isfinite(number) else None


def leading_number(text: bytes) -> float | None:
    """Return the number that a text begins with."""
    found = _NUMBER.match(text)
    return number_of(found[0].rstrip(b",")) if found else None


def step_of(text: bytes) -> int | None:
    """Return a step number, None for one that no run reaches."""
    number = int(text) if len(text) <= 15 else MAX_STEP
    return number if number < MAX_STEP else None


def time_in(text: bytes) -> int | None:
    """Return the first time without a zone that is written in a text."""
    found = _PLAIN.search(text)
    return instant_ns(found[0]) if found else None


def fields_of(text: bytes) -> Mapping[bytes, bytes]:
    """Return the fields of `label: value | label: value`, labels in lower case, `_` as a blank.

    `=` serves like `:`. A field that the end of the line cuts off is among them.
    """
    fields: dict[bytes, bytes] = {}
    for field in text.split(b"|"):
        label, separator, value = field.partition(b":" if b":" in field else b"=")
        if separator:
            key = label.strip().lower().replace(b"_", b" ")
            fields.setdefault(key, value.strip())
    return fields
