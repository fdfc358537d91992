"""Lines that belong to the tables of collective benchmarks, told from all others."""

import re
from typing import NamedTuple

from pytest_cre.measure import rows
from pytest_cre.measure.instants import instant_ns
from pytest_cre.measure.logtext import Line
from pytest_cre.measure.rows import layout_of

NEEDLES = (
    *rows.NEEDLES,
    *(b"minBytes", b"algbw", b"Pid ", b"ccl-tests", b"CL version", b"ctive test"),
    *(b"ut of bounds values", b"vg bus bandwidth"),
)

VERSION = re.compile(rb"nccl-tests version (\S+)(?:.*?nccl-library=(\d{3,7}))?")
RCCL_VERSION = re.compile(rb"rccl-tests:? [vV]ersion:? +(\S+)")
# An error that names the version is for the reader of failures.
LIBRARY = re.compile(rb"^(?!.*[Ee]rror).*?[NR]CCL version *:? *(\d+\.\d+(?:\.\d+)?)")
START = re.compile(rb"Collective test starting: *(\S+)")
CONCLUDED = re.compile(rb"Collective test concluded")
PARAMETERS = re.compile(
    rb"minBytes +(\d{1,18}) +maxBytes +(\d{1,18})(?: +step: *(\d{1,18})\((\w+)\))?"
)
VALIDATION_OFF = re.compile(rb"\bvalidation: 0\b")
DEVICE = re.compile(rb"Rank +(\d{1,7}) +(?:Group +\d+ +)?Pid +\d+ on +(\S+)")
BOUNDS = re.compile(rb"[Oo]ut of bounds values *: *(\d{1,18})(?: +(OK|FAILED))?")
AVERAGE = re.compile(
    rb"[Aa]vg bus bandwidth *: *([+-]?\d[\d.]*(?:[eE][+-]?\d{1,3})?)(?: +(OK|FAILED))?[ \t]*$"
)


class TableLine(NamedTuple):
    """A line that belongs to a table, with the launcher's rank tag and its time."""

    text: bytes
    tag: bytes
    t_ns: int | None
    is_row: bool


def _is_other_line(text: bytes) -> bool:
    """Return whether a line other than a row belongs to a benchmark's table."""
    return layout_of(text) is not None or any(pattern.search(text) for pattern in _TABLE_PATTERNS)


_TABLE_PATTERNS = (
    PARAMETERS,
    DEVICE,
    VERSION,
    RCCL_VERSION,
    START,
    CONCLUDED,
    BOUNDS,
    AVERAGE,
    LIBRARY,
)


class TableReader:
    """Collects the table lines of one stream."""

    def __init__(self) -> None:
        self.lines: list[TableLine] = []

    def line(self, line: Line) -> bool:
        """Take a line; return whether it belongs to a table."""
        is_row = rows.is_row_like(line.text)
        if not is_row and not _is_other_line(line.text):
            return False
        t_ns = line.kubelet_ns if line.kubelet_ns is not None else line.app_ns
        self.lines.append(TableLine(line.text, line.tag, t_ns, is_row))
        return True

    def row(self, block: bytes, at: int) -> int:
        """Take the line at a place if it is a row as usual; return where it ends, else the place."""
        found = rows.stamped_row(block, at)
        t_ns = instant_ns(found[1]) if found else None
        if found is None or t_ns is None:
            return at
        self.lines.append(TableLine(found[2], b"", t_ns, True))
        return found.end()

    @property
    def has_footer(self) -> bool:
        """Return whether the newest line closes a table."""
        return bool(self.lines) and AVERAGE.search(self.lines[-1].text) is not None


def opens_table(text: bytes) -> bool:
    """Return whether a line is of those that a table begins with."""
    return (
        PARAMETERS.search(text) is not None
        or START.search(text) is not None
        or VERSION.search(text) is not None
        or layout_of(text) is not None
    )
