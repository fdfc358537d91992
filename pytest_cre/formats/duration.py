"""Durations such as `90s`, `1h30m` or `250ms`."""

import re

_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_WHOLE = re.compile(r"(?:[0-9]{1,9}(?:ms|h|m|s))+")
_LONG = re.compile(r"(?:[0-9]+(?:ms|h|m|s))+")
_PART = re.compile(r"([0-9]{1,9})(ms|h|m|s)")


def parse_duration(text: object) -> float:
    """Return seconds; raises `ValueError` whose text is the end of a message about `text`."""
    if not isinstance(text, str) or len(text) > 64 or not _LONG.fullmatch(text):
        raise ValueError(f"must be a duration such as 90s or 1h30m, got {str(text)[:40]!r}")
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"is too long: a number in it has 9 digits at most, got {text[:40]!r}")
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))


def format_duration(seconds: float) -> str:
    """Return a short text such as `1h 30m`, `2m 5s`, `42 s` or `0.8 s`."""
    whole_s = round(seconds)
    if whole_s < 60:
        return f"{seconds:.1f} s" if round(seconds, 1) < 10 else f"{whole_s} s"
    hours, rest_s = divmod(whole_s, 3600)
    minutes, rest_s = divmod(rest_s, 60)
    if hours:
        return f"{hours}h {minutes}m" if minutes else f"{hours}h"
    return f"{minutes}m {rest_s}s" if rest_s else f"{minutes}m"
