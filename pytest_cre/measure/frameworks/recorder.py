"""What a reader took from one log: step lines in columns, everything else as facts."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite, nan

from pytest_cre.measure.events import EventKind
from pytest_cre.measure.logtext import Line

NO_TIME = -(2**63)
TOO_MUCH = 1e9  # seconds, or TFLOP/s per GPU: no run prints such
_FIRST_ROWS, _EVERY, _IN_A_ROW = 256, 256, 4


@dataclass(slots=True, kw_only=True)
class Fact:
    """One line that is no step. `app_ns` has no zone yet; `absolute_ns` is UTC."""

    kind: EventKind
    seq: int
    app_ns: int | None
    absolute_ns: int | None
    step: int | None = None
    duration_s: float | None = None
    reason: str | None = None


def is_sampled(at: int) -> bool:
    """Return whether the time without a zone of this row is kept together with the absolute one.

    A sample is enough to tell the zone, and whether lines came in bursts: the first 256 rows, and then
    four in a row of each 256.
    """
    return at < _FIRST_ROWS or at % _EVERY < _IN_A_ROW


def sampled(start: int, end: int) -> Iterator[int]:
    """Yield the sampled rows from `start` up to, not including, `end`."""
    yield from range(start, min(end, _FIRST_ROWS))
    for begin in range(max(start, _FIRST_ROWS) // _EVERY * _EVERY, end, _EVERY):
        yield from range(max(begin, start, _FIRST_ROWS), min(begin + _IN_A_ROW, end))


@dataclass(slots=True)
class LineCounter:
    """Numbers what is taken from one log, in the order of its lines; the first is 1."""

    taken: int = 0

    def next(self) -> int:
        """Return the next number."""
        self.taken += 1
        return self.taken


@dataclass(slots=True)
class Recorder:
    """Collects what one reader takes from one log.

    Columns have a row per step line; NaN stands for a number that was not printed, `NO_TIME` for a
    time. `app_ns` are times of the application without a zone, `absolute_ns` those that need none; where
    a row has the former, the latter is only kept of sampled rows.
    """

    counter: LineCounter
    numbers: "array[int]" = field(default_factory=lambda: array("q"))
    app_ns: "array[int]" = field(default_factory=lambda: array("q"))
    absolute_ns: "array[int]" = field(default_factory=lambda: array("q"))
    seconds: "array[float]" = field(default_factory=lambda: array("d"))
    tflops: "array[float]" = field(default_factory=lambda: array("d"))
    loss: "array[float]" = field(default_factory=lambda: array("d"))
    seqs: "array[int]" = field(default_factory=lambda: array("q"))
    facts: list[Fact] = field(default_factory=list)
    skipped: int = 0
    samples: int | None = None
    done: Fact | None = None  # the line that said that training was over
    flags: set[str] = field(default_factory=set)
    _start_seq: int | None = None

    @property
    def last_number(self) -> int | None:
        """Return the newest step number."""
        return self.numbers[-1] if self.numbers else None

    def step(
        self,
        line: Line,
        number: int,
        *,
        app_ns: int | None = None,
        seconds: float | None = None,
        tflops: float | None = None,
        loss: float | None = None,
    ) -> None:
        """Take a step line. Numbers that cannot be, such as a negative time, are not printed."""
        app, absolute = _times(line, app_ns)
        self.row(
            number,
            NO_TIME if app is None else app,
            NO_TIME if absolute is None else absolute,
            positive(seconds),
            positive(tflops),
            loss if loss is not None and isfinite(loss) else nan,
        )

    def row(
        self,
        number: int,
        app_ns: int,
        absolute_ns: int,
        seconds: float,
        tflops: float,
        loss: float,
    ) -> None:
        """Take a step line as a row of the columns, missing numbers as they are there."""
        if app_ns != NO_TIME and not is_sampled(len(self.numbers)):
            absolute_ns = NO_TIME
        self.numbers.append(number)
        self.app_ns.append(app_ns)
        self.absolute_ns.append(absolute_ns)
        self.seconds.append(seconds if seconds > 0 else nan)
        self.tflops.append(tflops if tflops > 0 else nan)
        self.loss.append(loss)
        self.seqs.append(self.counter.next())
        self.done = None

    def rows(
        self,
        *,
        numbers: "array[int]",
        app_ns: "array[int]",
        absolute_ns: "array[int]",
        seconds: "array[float]",
        tflops: "array[float]",
        loss: "array[float]",
    ) -> None:
        """Take step lines, missing numbers and times as they are in columns; all lines have the same clocks."""
        first, count = len(self.numbers), len(numbers)
        if app_ns[0] != NO_TIME:
            kept = array("q", [NO_TIME]) * count
            for at in sampled(first, first + count):
                kept[at - first] = absolute_ns[at - first]
            absolute_ns = kept
        self.numbers.extend(numbers)
        self.app_ns.extend(app_ns)
        self.absolute_ns.extend(absolute_ns)
        self.seconds.extend(seconds)
        self.tflops.extend(tflops)
        self.loss.extend(loss)
        taken = self.counter.taken
        self.counter.taken += count
        self.seqs.extend(range(taken + 1, self.counter.taken + 1))
        self.done = None

    def drop_steps(self) -> None:
        """Forget all step lines, and that they were counted."""
        for column in (self.numbers, self.app_ns, self.absolute_ns, self.seqs):
            del column[:]
        for values in (self.seconds, self.tflops, self.loss):
            del values[:]
        self.flags.discard("steps_counted")

    def fact(
        self,
        kind: EventKind,
        line: Line,
        *,
        step: int | None = None,
        app_ns: int | None = None,
        duration_s: float | None = None,
        reason: str | None = None,
    ) -> Fact:
        """Take another line; the fact returned may still be completed by later lines."""
        fact = fact_of(
            kind,
            line,
            self.counter.next(),
            step=step,
            app_ns=app_ns,
            duration_s=duration_s,
            reason=reason,
        )
        self.facts.append(fact)
        return fact

    def started(self, line: Line) -> None:
        """Take a line that a process prints when it starts.

        Several such lines are one start, until something else was taken from the log.
        """
        if self.counter.taken != self._start_seq:
            if self.done is not None:
                self.facts.append(self.done)
                self.done = None
            self.fact("proc_start", line)
            self._start_seq = self.counter.taken

    def finished(self, line: Line, *, app_ns: int | None = None) -> None:
        """Take a line that says that training is over."""
        self.done = fact_of("end", line, self.counter.next(), app_ns=app_ns)


def fact_of(
    kind: EventKind,
    line: Line,
    seq: int,
    *,
    step: int | None = None,
    app_ns: int | None = None,
    duration_s: float | None = None,
    reason: str | None = None,
) -> Fact:
    """Return a fact with the line's times, of which `app_ns` may replace the application's."""
    app, absolute = _times(line, app_ns)
    return Fact(
        kind=kind,
        seq=seq,
        app_ns=app,
        absolute_ns=absolute,
        step=step,
        duration_s=duration_s,
        reason=reason,
    )


def _times(line: Line, app_ns: int | None) -> tuple[int | None, int | None]:
    if app_ns is not None:
        return app_ns, line.kubelet_ns
    if line.is_app_zoned:
        return None, line.app_ns
    return line.app_ns, line.kubelet_ns


def positive(value: float | None) -> float:
    """Return seconds or TFLOP/s as they are in columns: NaN for what was not printed or cannot be."""
    return value if value is not None and 0 < value < TOO_MUCH else nan
