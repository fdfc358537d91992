"""Log profiles made ready to read with: RE2 patterns on bytes, values with units.

Patterns are tried on the text after all prefixes. Values follow upstream: trimmed, whole numbers in base
10 with a sign, floats also with an exponent; what cannot be read counts as absent.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Literal, Protocol, cast

import re2

from pytest_cre.catalog.logprofile import LogProfile
from pytest_cre.errors import CatalogProblem
from pytest_cre.formats.golayout import FLOAT, WHOLE
from pytest_cre.measure.instants import layout_reader

ProfileKind = Literal[
    "trainingStep",
    "checkpointDone",
    "checkpointSave",
    "checkpointRestore",
    "checkpointLoaded",
    "applicationStart",
]
# The first that matches takes the line; a start does not: broad start patterns match many lines.
_ORDER: tuple[ProfileKind, ...] = (
    "trainingStep",
    "checkpointDone",
    "checkpointSave",
    "checkpointRestore",
    "checkpointLoaded",
)
_SECONDS = {"s": 1.0, "ms": 1000.0, "us": 1_000_000.0}  # units in a second
_WHOLE = re.compile(WHOLE.encode())
_FLOAT = re.compile(FLOAT.encode())
_TIED_TO_ENDS = re.compile(r"\\[Az]|(?<!\\)\$|(?<![\\\[])\^")
_NAMED_GROUP = re.compile(r"(?<!\\)\(\?P?<\w+>")


class Pattern(Protocol):
    """A compiled RE2 pattern."""

    def search(self, text: bytes) -> "re.Match[bytes] | None":
        """Return the leftmost match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileMatch:
    """What a pattern took from a line; None is what it did not capture or could not read."""

    kind: ProfileKind
    app_ns: int | None = None
    step: int | None = None
    seconds: float | None = None
    tflops: float | None = None
    loss: float | None = None
    save_s: float | None = None
    path: str | None = None


class CompiledProfile:
    """One profile's patterns."""

    def __init__(self, profile: LogProfile) -> None:
        self.profile = profile
        self._patterns: dict[str, Pattern] = {
            name: _compile(each.regex, each.place or profile.place)
            for name, each in profile.patterns.items()
        }
        self._read_time: Callable[[str], int | None] = layout_reader(profile.timestamp_layout)

    @property
    def needles(self) -> tuple[bytes, ...] | None:
        """Return sources that find every line that a pattern could match inside a block.

        None where a pattern is tied to a place of the line in a way that a block does not show.
        """
        sources = []
        for each in self.profile.patterns.values():
            source = each.regex.removeprefix("^")
            if _TIED_TO_ENDS.search(source):
                return None
            sources.append(_NAMED_GROUP.sub("(?:", source).encode())
        return tuple(sources)

    def read(self, text: bytes) -> ProfileMatch | None:
        """Return what a line means for training, or None."""
        for kind in _ORDER:
            pattern = self._patterns.get(kind)
            found = pattern.search(text) if pattern else None
            if found is not None:
                return self._match(kind, found)
        return None

    @property
    def tells_starts(self) -> bool:
        """Return whether it has a pattern for starts."""
        return "applicationStart" in self._patterns

    def is_start(self, text: bytes) -> bool:
        """Return whether the line tells of a start; other patterns may match it too."""
        pattern = self._patterns.get("applicationStart")
        return pattern is not None and pattern.search(text) is not None

    def start_ns(self, text: bytes) -> int | None:
        """Return the time that the start pattern captured."""
        pattern = self._patterns.get("applicationStart")
        found = pattern.search(text) if pattern else None
        return self._time(_groups(found)) if found else None

    def is_warmup(self, text: bytes) -> bool:
        """Return whether a step line is marked as warm-up."""
        pattern = self._patterns.get("warmupStep")
        return pattern is not None and pattern.search(text) is not None

    def has(self, kind: str) -> bool:
        """Return whether the profile has a pattern of this name."""
        return kind in self._patterns

    def row(self, text: bytes) -> tuple[int, float, float] | None:
        """Return size in bytes, algorithm and bus bandwidth in GB/s of a row, or None."""
        pattern = self._patterns.get("bandwidthResult")
        found = pattern.search(text) if pattern else None
        if found is None:
            return None
        groups = _groups(found)
        size = _whole(groups.get("size"))
        algbw, busbw = _float(groups.get("algBW")), _float(groups.get("busBW"))
        if size is None or algbw is None or busbw is None:
            return None
        return size, algbw, busbw

    def gemm(self, text: bytes) -> Mapping[str, bytes] | None:
        """Return what the pattern of a burn-in's rows captured, or None."""
        pattern = self._patterns.get("gemmResult")
        found = pattern.search(text) if pattern else None
        return _groups(found) if found is not None else None

    def transport(self, text: bytes) -> bytes | None:
        """Return the network that a line names, or None for a blank one."""
        pattern = self._patterns.get("networkTransport")
        found = pattern.search(text) if pattern else None
        return (_groups(found).get("transport") or b"").strip() or None if found else None

    def _match(self, kind: ProfileKind, found: "re.Match[bytes]") -> ProfileMatch:
        groups = _groups(found)
        path = groups.get("path")
        steps = [_whole(groups.get(name)) for name in ("globalStep", "step", "iteration")]
        seconds = [self._seconds(kind, name, groups) for name in ("stepTiming", "elapsedTime")]
        return ProfileMatch(
            kind=kind,
            app_ns=self._time(groups),
            # As upstream has it, 0 counts as absent where another group says more.
            step=next((step for step in steps if step), _first(steps)),
            seconds=next((value for value in seconds if value), None),
            tflops=_float(groups.get("tflops")),
            loss=_float(groups.get("loss")),
            save_s=self._seconds(kind, "saveDuration", groups),
            path=path.decode(errors="replace") if path else None,
        )

    def _time(self, groups: Mapping[str, bytes]) -> int | None:
        written = groups.get("timestamp")
        return self._read_time(written.decode(errors="replace")) if written else None

    def _seconds(self, kind: str, name: str, groups: Mapping[str, bytes]) -> float | None:
        value = _float(groups.get(name))
        if value is None:
            return None
        return value / _SECONDS[self.profile.patterns[kind].units.get(name, "s")]


@lru_cache(maxsize=512)
def _compile(regex: str, place: str) -> Pattern:
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(regex.encode(), options)
    except re2.error as problem:
        words = problem.args[0] if problem.args else problem
        told = words.decode(errors="replace") if isinstance(words, bytes) else str(words)
        raise CatalogProblem(f"{place}: RE2 refuses {regex!r}: {told}") from None
    if compiled.search(b"") is not None:
        raise CatalogProblem(f"{place}: the pattern {regex!r} matches the empty text")
    return cast("Pattern", compiled)


def _groups(found: "re.Match[bytes]") -> dict[str, bytes]:
    """Return what was captured by name; RE2 gives the names as bytes where the pattern is bytes."""
    captured = cast("Mapping[bytes, bytes | None]", found.groupdict())
    return {name.decode(): value for name, value in captured.items() if value is not None}


def _first(values: list[int | None]) -> int | None:
    return next((value for value in values if value is not None), None)


def _whole(text: bytes | None) -> int | None:
    stripped = (text or b"").strip()
    return int(stripped) if _WHOLE.fullmatch(stripped) else None


def _float(text: bytes | None) -> float | None:
    stripped = (text or b"").strip()
    if not _FLOAT.fullmatch(stripped):
        return None
    value = float(stripped)
    return value if isfinite(value) else None
