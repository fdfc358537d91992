"""Megatron's step lines of one length as a grid of bytes, read column by column.

Lines of one shape are the same text once each digit is replaced by 0, so that a number stands at the same
place in each of them.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pytest_cre.measure.frameworks.recorder import TOO_MUCH
from pytest_cre.measure.instants import SECOND_NS, instant_ns

# The labels that mean nothing to any other reader, and what stands under them.
_LABELS: dict[bytes, str] = {
    b" consumed samples:": "",
    b" consumed tokens:": "",
    b" elapsed time per iteration (ms):": "milliseconds",
    b" throughput per GPU (TFLOP/s/GPU):": "tflops",
    b" energy per GPU (J/iter/GPU):": "",
    b" power per GPU (W/GPU):": "",
    b" learning rate:": "",
    b" global batch size:": "",
    b" batch size:": "",
    b" lm loss:": "loss",
    b" load_balancing_loss:": "",
    b" seq_load_balancing_loss:": "",
    b" z_loss:": "",
    b" mtp_0 loss:": "",  # with any digit
    b" loss scale:": "",
    b" grad norm:": "",
    b" num zeros:": "",
    b" params norm:": "",
    b" number of skipped iterations:": "none",
    b" number of nan iterations:": "none",
}
HEAD = re.compile(
    rb"(?:(\d{4}-\d\d-\d\dT\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z )?"
    rb" ?(?:\[(\d{4}-\d\d-\d\d \d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?\] )?"
    rb"iteration +(\d{1,15})/ *(\d{1,15}) (?=\|)"
)
_STAMP, _APP, _NUMBER, _LAST = 1, 5, 9, 10  # their first groups
_COLUMN = re.compile(
    rb"\|( [^:|\n]+:) *(([-+]?)(\d{1,20})(?:\.(\d{0,20}))?(?:[eE]([-+]?)(\d{1,3}))?) *(?=\|)"
)
_SHAPE = bytes.maketrans(b"0123456789+", b"0000000000-")
_ZERO, _NINE, _PLUS, _MINUS = b"09+-"
# A quotient or product of two numbers that floats hold exactly is rounded once, as `float` does.
_EXACT, _EXACT_POWER = 1e14, 22
_NONE = (-1, -1)  # the span of a group that is not there
_POWERS = 10.0 ** np.arange(_EXACT_POWER + 1)

Bytes = NDArray[np.uint8]
Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
_Number = TypeVar("_Number", np.int64, np.float64)


class Columns(NamedTuple):
    """What lines say, a row for each; None for a clock or number that they do not have.

    `last` is the last step of the run. A number that cannot be is NaN.
    """

    last: int
    numbers: Whole
    app_ns: Whole | None
    stamp_ns: Whole | None
    seconds: Floats | None
    tflops: Floats | None
    loss: Floats | None

    @property
    def has(self) -> tuple[object, ...]:
        """Return what other columns have in common with these if both can be put together."""
        return (self.last, *(each is None for each in self[1:]))


class _Digits(NamedTuple):
    """Places of digits, and what each is worth; what stands between them is worth nothing."""

    start: int
    worth: Floats


class _Decimal(NamedTuple):
    """A number's digits, how many stand after the point, and the places of its signs and exponent."""

    digits: _Digits
    decimals: int
    sign: int | None
    power: _Digits | None
    power_sign: int | None


class _Clock(NamedTuple):
    """The place of a date and hour, and the digits of the time within it."""

    hour: tuple[int, int]
    within: _Digits


class _Layout(NamedTuple):
    """Where in lines of one shape the numbers stand, and which bytes may stand where.

    `lowest` is the least byte of each place, and none is more than `room` above it; `same` are the places
    where no line differs from the first.
    """

    lowest: Bytes
    room: Bytes
    same: Sequence[int]
    signs: Sequence[int]
    clocks: Mapping[int, _Clock]
    number: _Digits
    last: tuple[int, int]
    decimals: Mapping[str, _Decimal]


def columns_of(lines: bytes, size: int) -> Columns | None:
    """Return what lines of so many bytes each say, up to the first that is not like those before it.

    None where the first one is not like usual ones.
    """
    layout = _layout_of(lines[:size].translate(_SHAPE))
    if layout is None:
        return None
    grid = np.frombuffer(lines, np.uint8, len(lines) // size * size).reshape(-1, size)
    lowest, room = layout.lowest, layout.room
    if layout.same:
        lowest = lowest.copy()
        lowest[layout.same] = grid[0, layout.same]
    fits = grid - lowest <= room
    fits[:, layout.signs] &= grid[:, layout.signs] != _PLUS + 1  # which is between + and -
    if not fits.all():
        grid = grid[: int(fits.all(axis=1).argmin())]
    if not len(grid):
        return None
    times = {which: _times_ns(grid, lines, clock) for which, clock in layout.clocks.items()}
    values = {name: _values(grid, decimal) for name, decimal in layout.decimals.items()}
    if any(column is None for column in (*times.values(), *values.values())):
        return None
    milliseconds = values.get("milliseconds")
    return Columns(
        last=int(lines[slice(*layout.last)]),
        numbers=_whole(grid, layout.number).astype(np.int64),
        app_ns=times.get(_APP),
        stamp_ns=times.get(_STAMP),
        seconds=_positive(None if milliseconds is None else milliseconds / 1000),
        tflops=_positive(values.get("tflops")),
        loss=values.get("loss"),
    )


def put_together(parts: Sequence[tuple[Sequence[int], Columns]], count: int) -> Columns | None:
    """Return the columns of so many lines from those of some lines each; None where they do not fit."""
    places, every = [places for places, _ in parts], [columns for _, columns in parts]
    if any(columns.has != every[0].has for columns in every):
        return None

    def placed(columns: Sequence[NDArray[_Number] | None]) -> NDArray[_Number] | None:
        if columns[0] is None:
            return None
        whole = np.empty(count, columns[0].dtype)
        for at, column in zip(places, columns, strict=True):
            if column is not None:
                whole[list(at)] = column
        return whole

    numbers = placed([columns.numbers for columns in every])
    return (
        numbers
        if numbers is None
        else Columns(
            last=every[0].last,
            numbers=numbers,
            app_ns=placed([columns.app_ns for columns in every]),
            stamp_ns=placed([columns.stamp_ns for columns in every]),
            seconds=placed([columns.seconds for columns in every]),
            tflops=placed([columns.tflops for columns in every]),
            loss=placed([columns.loss for columns in every]),
        )
    )


@lru_cache(maxsize=4096)
def _layout_of(shape: bytes) -> _Layout | None:
    """Return the layout of lines of a shape; None where they are not like the usual ones."""
    head = HEAD.match(shape)
    if head is None:
        return None
    lowest = np.frombuffer(shape, np.uint8).copy()
    room = np.where(lowest == _ZERO, _NINE - _ZERO, 0).astype(np.uint8)
    clocks = {first: _clock(head, first) for first in (_STAMP, _APP) if head[first]}
    for first in clocks:
        room[[head.start(first + 1), head.start(first + 2)]] = 5  # tens of minutes and seconds
    same = [at for clock in clocks.values() for at in range(*clock.hour)]
    same.extend(range(*head.span(_LAST)))
    room[same] = 0
    signs: list[int] = []
    decimals: dict[str, _Decimal] = {}
    at = head.end()
    while column := _COLUMN.match(shape, at):
        name = _LABELS.get(column[1])
        if name is None or (name == "milliseconds" and column[2].strip(b"0.")):
            return None
        signs.extend(column.start(group) for group in (3, 6) if column[group])
        if name == "none":
            room[slice(*column.span(2))] = 0
        elif name and name not in decimals:
            decimals[name] = _decimal(column)
        at = column.end()
    if shape[at:] != b"|\n" or any(d.digits.worth[0] > _EXACT for d in decimals.values()):
        return None
    lowest[signs], room[signs] = _PLUS, _MINUS - _PLUS
    return _Layout(
        lowest=lowest,
        room=room,
        same=same,
        signs=signs,
        clocks=clocks,
        number=_digits((head.span(_NUMBER), 1)),
        last=head.span(_LAST),
        decimals=decimals,
    )


def _digits(*parts: tuple[tuple[int, int], int]) -> _Digits:
    """Return digits in several spans, of which the last one's units are worth so much each."""
    start, end = parts[0][0][0], max(span[1] for span, _ in parts)
    worth = np.zeros(end - start)
    for (begin, until), unit in parts:
        worth[begin - start : until - start] = unit * _POWERS[: until - begin][::-1]
    return _Digits(start, worth)


def _clock(head: "re.Match[bytes]", first: int) -> _Clock:
    minute, second, fraction = (head.span(first + at) for at in (1, 2, 3))
    parts = [(minute, 60 * SECOND_NS), (second, SECOND_NS)]
    if fraction != _NONE:
        parts.append((fraction, 10 ** (9 - (fraction[1] - fraction[0]))))
    return _Clock(head.span(first), _digits(*parts))


def _decimal(column: "re.Match[bytes]") -> _Decimal:
    whole, decimals, power = (column.span(group) for group in (4, 5, 7))
    places = decimals[1] - decimals[0]
    parts = [(whole, 10**places)] + ([(decimals, 1)] if places else [])
    return _Decimal(
        digits=_digits(*parts),
        decimals=places,
        sign=column.start(3) if column[3] else None,
        power=_digits((power, 1)) if column[7] else None,
        power_sign=column.start(6) if column[6] else None,
    )


def _whole(grid: Bytes, digits: _Digits) -> Floats:
    """Return the whole number that stands in each line."""
    start, worth = digits
    number: Floats = (grid[:, start : start + len(worth)] - _ZERO) @ worth
    return number


def _values(grid: Bytes, decimal: _Decimal) -> Floats | None:
    """Return numbers as `float` reads them; None where one is too large or small for that."""
    value = _whole(grid, decimal.digits)
    if decimal.power is None:
        value /= _POWERS[decimal.decimals]
    else:
        power = _whole(grid, decimal.power).astype(np.int64)
        if decimal.power_sign is not None:
            power = np.where(grid[:, decimal.power_sign] == _MINUS, -power, power)
        power -= decimal.decimals
        if np.abs(power).max() > _EXACT_POWER:
            return None
        scale = _POWERS[np.abs(power)]
        value = np.where(power < 0, value / scale, value * scale)
    return value if decimal.sign is None else _signed(value, grid[:, decimal.sign])


def _signed(value: Floats, signs: Bytes) -> Floats:
    return np.where(signs == _MINUS, -value, value)


def _times_ns(grid: Bytes, lines: bytes, clock: _Clock) -> Whole | None:
    """Return times within one hour; None where there is no such hour."""
    hour_ns = instant_ns(lines[slice(*clock.hour)] + b":00:00")
    return None if hour_ns is None else _whole(grid, clock.within).astype(np.int64) + hour_ns


def _positive(values: Floats | None) -> Floats | None:
    if values is None:
        return None
    return np.where((values > 0) & (values < TOO_MUCH), values, np.nan)
