"""Numbers, limits and reason codes in words that a reader of a report understands."""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from pytest_cre.catalog.limit import Limit
from pytest_cre.formats.quantity import format_bytes
from pytest_cre.judge.verdict import Check

NAMES_SHOWN = 3  # names of nodes, or runs of them, in one line
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})", re.ASCII | re.DOTALL)
REASON_WORDS = {
    "average-mismatch": "the printed average is not the mean of the rows, so rows are missing",
    "below-minimum": "the benchmark itself found its average below the minimum it was given",
    "failed-tests": "diagnostic tests failed",
    "failure": "the log tells a failure",
    "fewer-gpus": "fewer GPUs were measured than were planned",
    "fewer-ranks": "fewer ranks took part than were planned",
    "job-failed": "the Job failed",
    "job-unfinished": "the Job has not come to an end",
    "log-gap": "a part of the log is missing",
    "log-incomplete": "the log is not whole",
    "no-data": "nothing in the log was recognised",
    "mixed-shapes": "rows are of several types or sizes where one was expected",
    "no-engine": "no DCGM host engine answered",
    "no-end": "the log does not tell how the training ended",
    "no-footer": "the table has no footer, so it was cut short",
    "no-header": "the burn-in has no header, so its first rows may be missing",
    "no-rows": "the table has no rows",
    "no-steps": "the log holds no training step",
    "no-tests": "the diagnostics ran no test",
    "not-a-number": "the table holds values that are no numbers",
    "out-of-bounds": "values are out of bounds",
    "rows-missing": "a GPU has fewer rows than it should",
    "several-tables": "more than one table where one was expected",
    "sizes-missing": "the table ends before its largest size",
    "tests-not-run": "tests that were asked for did not run",
    "torn-rows": "rows of the table are torn",
    "wrong-values": "values are wrong",
}
FLAG_WORDS = {
    "buffered": "lines were written in bursts, so their times are late",
    "clamped": "clocks disagree, so that some durations were cut at zero",
    "clock_skew": "the clocks of pods disagree and were corrected",
    "counter_restarted": "the step counter began anew without a checkpoint being loaded",
    "events_after_end": "lines came after the end of the Job and were left out",
    "exit_unknown": "the time of an exit is not known",
    "gpus_changed": "the number of GPUs changed during the run",
    "implicit_restart": "steps went back without a restart being seen",
    "log_gap": "a part of the log is missing",
    "no_steps": "the log holds no training step",
    "no_timestamps": "the log carries no time stamps",
    "profile_unmatched": "the log profile matched nothing, so the format was recognised instead",
    "reference_unknown": "there are too few steps to know the usual step time",
    "resume_inferred": "the step of a resume is inferred, for no line tells it",
    "save_unconfirmed": "a checkpoint was begun and never confirmed",
    "skipped_steps": "steps were skipped",
    "start_unseen": "the log may lack its beginning, for no line tells of a start",
    "starts_midway": "the log begins in the middle of a training",
    "steps_counted": "steps carry no number and were counted",
}


def reason_words(code: str) -> str:
    """Return a measurement's reason in words; an unknown code is its own words."""
    return REASON_WORDS.get(code, code.replace("-", " "))


def flag_words(code: str) -> str:
    """Return a measurement's flag in words; an unknown code is its own words."""
    return FLAG_WORDS.get(code, code.replace("_", " "))


def number_words(value: float, *, digits: int = 4) -> str:
    """Return a number with that many significant digits, without exponent for common sizes."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if not 1e-6 <= abs(value) < 1e15:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def quantity_words(value: float, unit: str, *, digits: int = 4) -> str:
    """Return a number with its unit; ratios and counts have none."""
    number = number_words(value, digits=digits)
    return number if unit in ("ratio", "count") else f"{number} {unit}"


def percent_words(ratio: float) -> str:
    """Return a ratio's size as percent, with more decimals only where one would show as zero."""
    percent = abs(ratio) * 100
    decimals = 1
    while percent and round(percent, decimals) == 0 and decimals < 12:
        decimals += 1
    return f"{percent:.{decimals}f} %"


def check_words(check: Check, *, architecture: str | None = None) -> str:
    """Return what was measured, and how far it is from its limit.

    `busbw 371.4 GB/s is 7.2 % below the gb200 limit 400 GB/s`: `below` and `above` tell which side
    of the limit the number is on, whatever the operator.
    """
    name = check.metric
    if check.limit is not None and check.statistic not in ("", "max"):
        name += f" {check.statistic}"
    if check.measured is None:
        return f"{name} was not measured"
    limit = check.limit
    if limit is None:
        return f"{name} {quantity_words(check.measured, check.unit)} has no limit"
    if limit.value is None:
        verb = "meets" if check.code == "pass" else "does not meet"
        measured = quantity_words(check.measured, check.unit)
        return f"{name} {measured} {verb} {limit.expression!r}"
    digits = _digits_apart(check.measured, limit.value)
    measured = quantity_words(check.measured, check.unit, digits=digits)
    value = quantity_words(limit.value, limit.unit, digits=digits)
    words = f"the {limit_owner(limit, architecture)} {value}"
    if check.measured == limit.value:
        return f"{name} {measured} is equal to {words}"
    side = "below" if check.measured < limit.value else "above"
    if limit.value == 0:
        return f"{name} {measured} is {side} {words}"
    return f"{name} {measured} is {percent_words(check.measured / limit.value - 1)} {side} {words}"


def limit_owner(limit: Limit, architecture: str | None) -> str:
    """Return whose limit it is: `gb200 limit`, or `simulated h100 limit`."""
    tier = limit.tier if limit.tier in ("simulated", "site", "given") else ""
    return " ".join(part for part in (tier, limit.architecture or architecture, "limit") if part)


def limit_statistic(limit: Limit) -> str:
    """Return which number is judged, such as `max`, `at 16 GiB` or `of hang`; empty: the only one."""
    if limit.category is not None:
        return f"of {limit.category.replace('_', ' ')}"
    if limit.statistic == "at-size" and limit.size_bytes is not None:
        return f"at {format_bytes(limit.size_bytes)}"
    return limit.statistic if limit.statistic in ("max", "plateau") else ""


def _digits_apart(measured: float, limit: float) -> int:
    """Return the significant digits that a number near its limit needs to look different."""
    for digits in range(4, 19):  # enough to tell any two numbers apart
        if number_words(measured, digits=digits) != number_words(limit, digits=digits):
            return digits
    return 4


def nodes_words(count: int) -> str:
    """Return `1 node` or `8 nodes`."""
    return f"{count} node" if count == 1 else f"{count} nodes"


def place_words(nodes: Sequence[str]) -> str:
    """Return which nodes, briefly: `node gpu-3`, or `4 nodes: rack-1-0..3`."""
    if len(nodes) == 1:
        return f"node {nodes[0]}"
    parts = list(_runs(nodes))
    more = f" and {len(parts) - NAMES_SHOWN} more" if len(parts) > NAMES_SHOWN else ""
    names = f": {', '.join(parts[:NAMES_SHOWN])}{more}" if nodes else ""
    return f"{nodes_words(len(nodes))}{names}"


def _runs(nodes: Sequence[str]) -> Iterator[str]:
    """Yield the names, those that are numbered one after the other as `rack-1-0..3`."""
    written: dict[str, set[str]] = {}
    for name in nodes:
        found = _NUMBERED.fullmatch(name)
        start, digits = (found[1], found[2]) if found else (name, "")
        written.setdefault(start, set()).add(digits)
    for start, all_digits in sorted(written.items()):
        if "" in all_digits:
            yield start
        is_padded = any(each.startswith("0") and len(each) > 1 for each in all_digits)
        by_width: dict[int, list[int]] = {}
        for digits in filter(None, all_digits):
            by_width.setdefault(len(digits) if is_padded else 0, []).append(int(digits))
        for width, numbers in sorted(by_width.items()):
            for first, last in _spans(sorted(numbers)):
                yield f"{start}{first:0{width}d}" + (f"..{last:0{width}d}" if last > first else "")


def _spans(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each run of whole numbers without a gap."""
    for _, run in groupby(enumerate(numbers), key=lambda each: each[1] - each[0]):
        found = [number for _, number in run]
        yield found[0], found[-1]
