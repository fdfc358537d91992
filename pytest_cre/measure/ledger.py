"""The ledger: every instant of a run in exactly one category."""

from bisect import bisect_right
from collections.abc import Sequence

from pytest_cre.measure.lives import Life
from pytest_cre.measure.partition import (
    CHECKPOINT_BLOCKING,
    EVAL,
    HANG,
    INIT,
    LOAD,
    OTHER,
    RESCHEDULE,
    REWORK,
    SCHEDULE,
    STRAGGLER,
    USEFUL,
    WARMUP,
    Partition,
)
from pytest_cre.measure.pauses import Span
from pytest_cre.measure.reference import Reference

NO_LIMIT = 2**63  # beyond any step and any time
_AT_ONCE = 4096
_AGES_NS = 2.0**62


def survival_limits(lives: Sequence[Life], *, durable_only: bool) -> list[int]:
    """Return the last step that survives of each attempt.

    What survives an attempt is the least step that a later one resumed from. With `durable_only` the end
    itself cuts at the largest step that the last line of attempts had saved.
    """
    limits = []
    least = durable_at_end(lives) if durable_only else NO_LIMIT
    for life in reversed(lives):
        limits.append(least)
        if life.resumed is not None:
            least = min(least, life.resumed)
    return limits[::-1]


def durable_at_end(lives: Sequence[Life]) -> int:
    """Return the largest step saved by the end, saves that a later attempt went back behind left out."""
    durable = 0
    for life in lives:
        if life.resumed is not None:
            durable = life.resumed
        durable = max([durable, *(step for _, step in life.pauses.commits)])
    return durable


def lay_out(
    lives: Sequence[Life],
    limits: Sequence[int],
    reference: Reference,
    *,
    opened_ns: int,
    closed_ns: int,
    gaps: Sequence[Span],
    awaits_restart: bool,
) -> Partition:
    """Lay the attempts along the time from `opened_ns` to `closed_ns`."""
    line = Partition(min(opened_ns, lives[0].start_ns) if lives else opened_ns)
    code = SCHEDULE
    for life, limit in zip(lives, limits, strict=True):
        line.extend(code, life.start_ns)
        _Attempt(line, life, limit, reference, gaps).lay_out()
        code = RESCHEDULE
    # While the Job is not over, the time after an abort is a restart in the making.
    line.extend(RESCHEDULE if awaits_restart else OTHER, closed_ns)
    return line.clipped(opened_ns, closed_ns)


class _Attempt:
    """One attempt on the line."""

    def __init__(
        self, line: Partition, life: Life, limit: int, reference: Reference, gaps: Sequence[Span]
    ) -> None:
        self.line = line
        self.life = life
        self.limit = limit
        self.reference = reference
        self.gaps = [gap for gap in gaps if gap[0] < life.exit_ns and gap[1] > life.start_ns]
        self.pauses = [
            *((start, end, CHECKPOINT_BLOCKING) for start, end in life.pauses.saves),
            *((start, end, EVAL) for start, end in life.pauses.evals),
        ]
        self.pauses.sort()
        self.next_pause = 0
        self.cursor_ns = life.start_ns

    def lay_out(self) -> None:
        """Book start-up, segments and the silence before the exit."""
        life = self.life
        if life.ready_ns is None:
            self.line.extend(INIT, life.exit_ns)
            return
        if life.load is not None:
            self.line.extend(INIT, life.load[0])
            self.line.extend(LOAD, life.load[1])
        self.line.extend(INIT, life.ready_ns)
        self.cursor_ns = life.ready_ns
        while (
            self.next_pause < len(self.pauses) and self.pauses[self.next_pause][1] <= self.cursor_ns
        ):
            self.next_pause += 1
        self._segments()
        self._tail()

    def _segments(self) -> None:
        """Book every segment; the ordinary ones in a few operations, for logs have a million of them."""
        numbers, times = self.life.numbers, self.life.times_ns
        base, ahead, at = self.life.base, 0.0, 0
        while at < len(numbers):
            end = self._plain_end(at)
            if end > at:
                self._plain(at, end)
                self.cursor_ns = times[end - 1]
            elif at and base >= self.limit:  # nothing survives from here on
                self._segment(base, numbers[-1], times[-1], ahead, is_first=False)
                self.cursor_ns = max(self.cursor_ns, times[-1])
                return
            else:
                end = at + 1
                ahead = self._segment(base, numbers[at], times[at], ahead, is_first=not at)
                self.cursor_ns = max(self.cursor_ns, times[at])
            base, at = numbers[end - 1], end

    def _plain_end(self, at: int) -> int:
        """Return the end of the segments from a line on that lie behind each other, survive and have no pause."""
        numbers, times = self.life.numbers, self.life.times_ns
        has_steps = (self.reference.step_ns or 0.0) > 0 and not self.reference.resolution_ns
        if not at or not has_steps or self.gaps or self.cursor_ns != times[at - 1]:
            return at
        end = min(len(numbers), at + _AT_ONCE)
        end = bisect_right(numbers, self.limit, at, end)
        end = bisect_right(times, self._next_pause_ns(), at, end)
        import numpy as np

        falls = np.flatnonzero(np.diff(times[at - 1 : end]) <= 0)
        return at + int(falls[0]) if len(falls) else end

    def _plain(self, at: int, end: int) -> None:
        """Book such segments: each is useful up to the reference step time, and a straggler's from there on."""
        import numpy as np

        line, times_ns = self.line, np.asarray(self.life.times_ns[at - 1 : end])
        covered = np.diff(self.life.numbers[at - 1 : end])
        steps_ns = np.minimum(covered * (self.reference.step_ns or 0.0) + 0.5, _AGES_NS)
        due_ns, ends_ns = times_ns[:-1] + steps_ns.astype(np.int64), times_ns[1:]
        slow = due_ns < ends_ns
        bounds_ns = np.column_stack((due_ns, ends_ns))[slow].ravel()
        if not slow[-1]:
            bounds_ns = np.append(bounds_ns, ends_ns[-1])
        if line.codes and line.codes[-1] == USEFUL:
            line.codes.pop()
            line.bounds_ns.pop()
        line.bounds_ns.frombytes(bounds_ns.tobytes())
        line.codes.extend(bytes((USEFUL, STRAGGLER)) * (len(bounds_ns) // 2 + 1))
        del line.codes[len(line.bounds_ns) - 1 :]

    def _segment(self, base: int, number: int, t_ns: int, ahead: float, *, is_first: bool) -> float:
        """Book the steps after `base` up to `number`, and return how far ahead of the reference they are.

        What does not survive is cut off in proportion to steps. Where timestamps are coarse, a segment that
        looks too short pays for the next one that looks too long, up to the grain.
        """
        covered = number - base
        pieces = self._free_until(t_ns)
        lasted_ns = sum(end - start for start, end, code in pieces if code < 0)
        step_ns = self.reference.step_ns
        excess_ns = 0.0
        if step_ns is not None:
            excess_ns = lasted_ns - covered * step_ns
            if self.reference.resolution_ns and is_first:
                ahead = (
                    self.reference.resolution_ns
                )  # the first line may be that much later than it says
            elif self.reference.resolution_ns:
                grain_ns = self.reference.resolution_ns
                excess_ns, ahead = excess_ns - ahead, min(grain_ns, max(0, ahead - excess_ns))
        warmup_ns = 0
        if is_first and self.life.is_first_segment_warmup:
            warmup_ns = max(0, round(excess_ns))
        surviving = min(max(self.limit - base, 0), covered)
        steps_ns = lasted_ns - warmup_ns
        kept_ns = steps_ns if surviving == covered else steps_ns * surviving // max(covered, 1)
        slow_ns = 0
        if not is_first and step_ns is not None and surviving:
            slow_ns = min(kept_ns, max(0, round(excess_ns * surviving / covered)))
        unproven_ns = min(slow_ns, self._in_gaps(t_ns))
        parts = [
            (WARMUP, warmup_ns),
            (USEFUL, kept_ns - slow_ns),
            (STRAGGLER, slow_ns - unproven_ns),
            (OTHER, unproven_ns),
            (REWORK, steps_ns - kept_ns),
        ]
        self._book(pieces, parts)
        return ahead

    def _tail(self) -> None:
        """Book what lies between the last progress and the exit."""
        life = self.life
        pieces = self._free_until(life.exit_ns)
        silent_ns = sum(end - start for start, end, code in pieces if code < 0)
        if life.exit in ("end", "unseen"):
            self._book(pieces, [(OTHER, silent_ns)])
            return
        in_flight_ns = min(silent_ns, self.reference.allowance_ns)
        hang_ns = silent_ns - in_flight_ns
        unproven_ns = min(hang_ns, self._in_gaps(life.exit_ns))
        self._book(
            pieces, [(REWORK, in_flight_ns), (OTHER, unproven_ns), (HANG, hang_ns - unproven_ns)]
        )

    def _next_pause_ns(self) -> int:
        return self.pauses[self.next_pause][0] if self.next_pause < len(self.pauses) else NO_LIMIT

    def _free_until(self, t_ns: int) -> list[tuple[int, int, int]]:
        """Return the pieces from the cursor until `t_ns`: pauses with their code, the rest with -1."""
        pieces: list[tuple[int, int, int]] = []
        cursor = self.cursor_ns
        while self._next_pause_ns() < t_ns:
            start, end, code = self.pauses[self.next_pause]
            pieces.append((cursor, max(cursor, start), -1))
            cursor = max(cursor, start)
            pieces.append((cursor, min(end, t_ns), code))
            cursor = max(cursor, min(end, t_ns))
            if end > t_ns:
                break
            self.next_pause += 1
        pieces.append((cursor, max(cursor, t_ns), -1))
        return pieces

    def _book(self, pieces: list[tuple[int, int, int]], parts: list[tuple[int, int]]) -> None:
        """Lay `parts` in order over the free pieces, and the pauses where they are."""
        queue = [part for part in reversed(parts) if part[1] > 0]
        for start, end, code in pieces:
            if code >= 0:
                self.line.extend(code, end)
                continue
            cursor = start
            while cursor < end and queue:
                part, left_ns = queue.pop()
                took_ns = min(left_ns, end - cursor)
                cursor += took_ns
                self.line.extend(part, cursor)
                if took_ns < left_ns:
                    queue.append((part, left_ns - took_ns))

    def _in_gaps(self, t_ns: int) -> int:
        """Return how much of the time from the cursor until `t_ns` no line could tell of."""
        return sum(max(0, min(end, t_ns) - max(start, self.cursor_ns)) for start, end in self.gaps)
