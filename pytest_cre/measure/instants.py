"""Timestamps of logs to integer nanoseconds since 1970, and times in Go's layouts.

A time without a zone is read as if it were UTC; the reader of the stream finds out what the zone was.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

from pytest_cre.formats.golayout import layout_pattern

SECOND_NS = 1_000_000_000
YEARS = range(1970, 2200)  # what 64 bits of nanoseconds hold, with room for differences
NO_YEAR = 1972  # stands for one that is not told: no log is of it, and it has all days
MINUTE_NS = 60 * SECOND_NS
DAY_NS = 1440 * MINUTE_NS

RFC3339 = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"
PLAIN_TIME = rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"

_KUBELET = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))[ \t]")
_MINUTE = re.compile(rb"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)")


def instant_ns(text: bytes) -> int | None:
    """Return the time of `YYYY-MM-DD[T ]HH:MM:SS[.,fraction][zone]`; None for no such date.

    The fraction has up to nine digits, or none. Without a zone the time counts as UTC.
    """
    minute = _minute_ns(text[:16])
    if minute is None:
        return None
    second, rest = text[17:19], text[19:]
    if text[16:17] != b":" or not second.isdigit() or int(second) > 60:
        return None
    if len(rest) == 11 and rest[:1] == b"." and rest[10:] == b"Z" and rest[1:10].isdigit():
        return minute + int(second + rest[1:10])  # as kubelets write it
    fraction_ns = 0
    if rest[:1] in (b".", b","):
        digits = rest[1:]
        zone = digits.lstrip(b"0123456789")
        digits = digits[: len(digits) - len(zone)]
        if not digits:
            return None
        fraction_ns = int(digits[:9].ljust(9, b"0"))
    else:
        zone = rest
    shift_ns = _zone_ns(zone)
    if shift_ns is None:
        return None
    return minute + int(second) * SECOND_NS + fraction_ns - shift_ns


def split_kubelet_time(line: bytes) -> tuple[int | None, bytes]:
    """Return the kubelet's timestamp before a line and the text after it.

    It stands at the very start, has a zone, and white space follows; otherwise the line is
    returned whole.
    """
    found = _KUBELET.match(line)
    at_ns = instant_ns(found[1]) if found else None
    return (at_ns, line[found.end() :]) if found and at_ns is not None else (None, line)


def rfc3339(t_ns: int) -> str:
    """Return a time as RFC 3339 text in UTC with as many digits as it needs."""
    seconds, fraction_ns = divmod(t_ns, SECOND_NS)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f"{fraction_ns:09d}".rstrip("0")
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"


def parse_rfc3339(text: str) -> int:
    """Return nanoseconds; raises `ValueError` unless it is a full date and time with a zone."""
    raw = text.strip().encode()
    found = re.fullmatch(RFC3339, raw)
    at_ns = instant_ns(raw) if found else None
    if at_ns is None:
        raise ValueError(f"{text!r} is no RFC 3339 time such as 2026-01-31T08:00:00Z")
    return at_ns


def yearless_ns(text: bytes, near_ns: int | None) -> int | None:
    """Return the time of `MMDD HH:MM:SS.ffffff` in the year nearest to a time; None for no such date.

    Where that is not known it is of `NO_YEAR`.
    """
    month, day, clock = text[:2], text[2:4], text[5:]
    years = [NO_YEAR] if near_ns is None else [year_of(near_ns) + shift for shift in (-1, 0, 1)]
    found = [instant_ns(b"%04d-%b-%b %b" % (year, month, day, clock)) for year in years]
    known = [t_ns for t_ns in found if t_ns is not None]
    return min(known, key=lambda t_ns: abs(t_ns - (near_ns or 0)), default=None)


def year_of(t_ns: int) -> int:
    """Return the year of a time, in UTC."""
    return datetime.fromtimestamp(t_ns // SECOND_NS, UTC).year


def year_start_ns(year: int) -> int:
    """Return the first instant of a year, in UTC."""
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * SECOND_NS


@lru_cache(maxsize=4096)
def _minute_ns(text: bytes) -> int | None:
    found = _MINUTE.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute = (int(part) for part in found.groups())
    if year not in YEARS:
        return None
    try:
        at = datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp()) * SECOND_NS


@lru_cache(maxsize=256)
def _zone_ns(text: bytes) -> int | None:
    if text in (b"", b"Z"):
        return 0
    found = re.fullmatch(rb"([+-])(\d\d):?(\d\d)", text)
    if found is None:
        return None
    minutes = int(found[2]) * 60 + int(found[3])
    return minutes * MINUTE_NS * (-1 if found[1] == b"-" else 1)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@lru_cache(maxsize=64)
def layout_reader(layout: str) -> Callable[[str], int | None]:
    """Return a function that reads times written in a Go layout; it returns None for others.

    A time without a zone is UTC.
    """
    compiled = layout_pattern(layout)

    def read(text: str) -> int | None:
        found = compiled.fullmatch(text.strip())
        return _from_groups(found.groupdict()) if found else None

    return read


def _from_groups(groups: dict[str, str | None]) -> int | None:
    month = groups.get("month")
    name = groups.get("month_name")
    if name:
        if name[:3].lower() not in _MONTHS:
            return None
        month = str(_MONTHS.index(name[:3].lower()) + 1)
    short = groups.get("short_year")
    year = groups.get("year") or (f"20{short}" if short else None)
    if year is None or month is None:
        return None
    text = (
        f"{year}-{int(month):02d}-{int(groups.get('day') or 1):02d} {groups.get('hour') or '00'}:"
        f"{groups.get('minute') or '00'}:{groups.get('second') or '00'}"
    )
    fraction = groups.get("fraction")
    return instant_ns(
        (text + (f".{fraction}" if fraction else "") + (groups.get("zone") or "")).encode()
    )
