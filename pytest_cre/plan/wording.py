"""Names in one-line messages."""

from collections.abc import Sequence


def listed(names: Sequence[str], limit: int = 10) -> str:
    """Return names for a one-line message: the first ones, and how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
