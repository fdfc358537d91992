"""What the groups of a running item do now, for a person who watches a terminal."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pytest_cre.report.model import title_of
from pytest_cre.report.text import fit, one_line
from pytest_cre.run.progress import GroupProgress

REDRAW_S = 1.0
PLAIN_S = 60.0  # between lines where nobody can redraw them
GROUPS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class _Row:
    told: GroupProgress
    told_s: float
    figure: str = ""


class ProgressBoard:
    """One item's groups. Told from their threads, read by the main one."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._rows: dict[str, _Row] = {}

    def tell(self, progress: GroupProgress) -> None:
        """Take what a group does now."""
        with self._lock:
            known = self._rows.get(progress.group)
            is_same = known is not None and known.told.attempt == progress.attempt
            figure = known.figure if known is not None and is_same else ""
            self._rows[progress.group] = _Row(progress, self._clock(), figure)

    def note(self, group: str, figure: str) -> None:
        """Take a group's provisional figure, in words."""
        with self._lock:
            if group in self._rows:
                self._rows[group] = replace(self._rows[group], figure=figure)

    def lines(self, width: int) -> list[str]:
        """Return one line per group that is not done, then how many are."""
        with self._lock:
            rows = [self._rows[name] for name in sorted(self._rows, key=_natural)]
        going = [row for row in rows if row.told.phase != "done"]
        lines = [fit(self._words(row), width) for row in going[:GROUPS_SHOWN]]
        more, done = len(going) - GROUPS_SHOWN, len(rows) - len(going)
        rest = [f"{more} more groups"] if more > 0 else []
        rest += [f"{done} of {len(rows)} groups done"] if done and len(rows) > 1 else []
        return [*lines, ", ".join(rest)] if rest and going else lines

    def summary(self) -> str:
        """Return everything on one line: phases with their counts, the first group's figure."""
        with self._lock:
            rows = [self._rows[name] for name in sorted(self._rows, key=_natural)]
        if not rows or all(row.told.phase == "done" for row in rows):
            return ""
        first = next(row for row in rows if row.told.phase != "done")
        if len(rows) == 1:
            return self._words(first)
        counts = Counter(row.told.phase for row in rows)
        phases = ", ".join(f"{count} {phase}" for phase, count in sorted(counts.items()))
        return f"{title_of(first.told.entry, first.told.scale)}: {len(rows)} groups: {phases}"

    def _words(self, row: _Row) -> str:
        told = row.told
        nodes = f"{len(told.nodes)} node{'' if len(told.nodes) == 1 else 's'}"
        parts = [f"{title_of(told.entry, told.scale)} {told.group}", told.phase, nodes]
        if told.attempt:
            parts.insert(1, f"attempt {told.attempt + 1}")
        if row.figure:
            parts.append(row.figure)
        if told.remaining_s is not None:
            left_s = max(0.0, told.remaining_s - (self._clock() - row.told_s))
            parts.append(f"{_span(left_s)} left")
        if told.detail:
            parts.append(one_line(told.detail))
        return ", ".join(parts)


class Screen(Protocol):
    """A terminal, on which lines can be taken back."""

    @property
    def width(self) -> int:
        """Return the width in characters."""

    def fresh_line(self) -> None:
        """End the line that somebody else has begun, if there is one."""

    def write(self, text: str) -> None:
        """Write text, whatever is being captured."""


class ProgressDisplay:
    """Keeps a block of lines current on a terminal; elsewhere tells one line a minute at most."""

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float]) -> None:
        self.screen: Screen | None = None
        self._tell = tell
        self._clock = clock
        self._drawn = 0
        self._shown_s = clock()  # so that a quick run says nothing

    def show(self, board: ProgressBoard) -> None:
        """Draw what is new, unless it was drawn just now; called often."""
        now_s = self._clock()
        if now_s - self._shown_s < (PLAIN_S if self.screen is None else REDRAW_S):
            return
        self._shown_s = now_s
        if self.screen is None:
            if words := board.summary():
                self._tell(words)
            return
        lines = board.lines(self.screen.width - 1)
        if lines or self._drawn:
            self._draw(self.screen, lines)

    def clear(self) -> None:
        """Take the block away."""
        if self._drawn and self.screen is not None:
            self._draw(self.screen, [])

    def _draw(self, screen: Screen, lines: Sequence[str]) -> None:
        if not self._drawn:
            screen.fresh_line()
        up = f"\x1b[{self._drawn}F\x1b[J" if self._drawn else ""
        screen.write(up + "".join(f"{line}\n" for line in lines))
        self._drawn = len(lines)


def _natural(name: str) -> tuple[str, int]:
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or -1)


def _span(seconds: float) -> str:
    whole = int(seconds)
    if whole >= 3600:
        return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
    return f"{whole // 60}:{whole % 60:02}"
