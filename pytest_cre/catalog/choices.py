"""The end of a message about an unknown name: the nearest choice, then all of them."""

from collections.abc import Iterable
from difflib import get_close_matches


def choices_words(name: str, choices: Iterable[str]) -> str:
    """Return `; did you mean X?; choices: ...`, without the hint where nothing is close."""
    known = sorted(choices)
    close = get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"{hint}; choices: {', '.join(known) or 'none'}"
