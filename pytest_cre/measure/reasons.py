"""Why a measurement is not simply complete: the closed list of reasons.

docs/reference/measure.md tells each in words.
"""

from collections.abc import Iterable

from pytest_cre.measure.model import Status

FAILED = frozenset(("failure", "wrong-values", "out-of-bounds", "below-minimum", "job-failed"))
INCOMPLETE = frozenset(
    (
        "average-mismatch",
        "fewer-ranks",
        "job-unfinished",
        "log-gap",
        "log-incomplete",
        "no-end",
        "no-footer",
        "no-rows",
        "no-steps",
        "not-a-number",
        "several-tables",
        "sizes-missing",
        "torn-rows",
    )
)
# They leave a measurement complete; a reader must still be told.
NOTED = frozenset(("socket-fallback",))
NO_DATA = "no-data"


def status_of(reasons: Iterable[str], *, has_data: bool) -> Status:
    """Return the status that the reasons come to; what failed is told before what is missing."""
    found = set(reasons)
    if found & FAILED:
        return "failed"
    if not has_data:
        return "no-data"
    return "incomplete" if found & INCOMPLETE else "complete"
