"""Go's time layouts and written numbers, as upstream's log profiles use them."""

import re
from functools import lru_cache

# Whole numbers in base 10 with a sign; floats also with an exponent.
WHOLE = r"[+-]?[0-9]{1,18}"
FLOAT = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"

# What each part of a Go layout stands for, longest first.
_LAYOUT_PARTS: tuple[tuple[str, str], ...] = (
    ("Z07:00", "(?P<zone>Z|[+-]\\d\\d:\\d\\d)"),
    ("Z0700", "(?P<zone>Z|[+-]\\d{4})"),
    ("-07:00", "(?P<zone>[+-]\\d\\d:\\d\\d)"),
    ("-0700", "(?P<zone>[+-]\\d{4})"),
    ("2006", "(?P<year>\\d{4})"),
    ("January", "(?P<month_name>[A-Za-z]+)"),
    ("Jan", "(?P<month_name>[A-Za-z]{3})"),
    ("Monday", "[A-Za-z]+"),
    ("Mon", "[A-Za-z]{3}"),
    ("MST", "[A-Z]{2,5}"),
    ("01", "(?P<month>\\d\\d)"),
    ("02", "(?P<day>\\d\\d)"),
    ("_2", "(?P<day>[ \\d]\\d)"),
    ("15", "(?P<hour>\\d\\d)"),
    ("04", "(?P<minute>\\d\\d)"),
    ("05", "(?P<second>\\d\\d)(?:[.,](?P<fraction>\\d+))?"),
    ("06", "(?P<short_year>\\d\\d)"),
    ("2", "(?P<day>\\d{1,2})"),
    ("1", "(?P<month>\\d{1,2})"),
)
_LAYOUT_FRACTION = re.compile(r"[.,](?:9+|0+)")


@lru_cache(maxsize=64)
def layout_pattern(layout: str) -> "re.Pattern[str]":
    """Return what matches a time written in a Go layout; its groups are the parts of the time.

    As in Go, a fraction may follow the seconds whether the layout has one or not.
    """
    pattern, at = "", 0
    while at < len(layout):
        fraction = _LAYOUT_FRACTION.match(layout, at)
        if fraction and pattern.endswith(")?"):
            at = fraction.end()
            continue
        for part, group in _LAYOUT_PARTS:
            if layout.startswith(part, at) and not _is_taken(group, pattern):
                pattern, at = pattern + group, at + len(part)
                break
        else:
            pattern, at = pattern + re.escape(layout[at]), at + 1
    return re.compile(pattern, re.ASCII)


def _is_taken(group: str, pattern: str) -> bool:
    named = re.search(r"\?P<\w+>", group)
    return named is not None and named[0] in pattern


def tells_a_date(layout: str) -> bool:
    """Return whether times in this layout have a year and a month; without them none is read."""
    groups = layout_pattern(layout).groupindex.keys()
    return bool(groups & {"year", "short_year"}) and bool(groups & {"month", "month_name"})
