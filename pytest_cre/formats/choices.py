"""The end of a message about an unknown name: the nearest choice, then all of them."""

from collections.abc import Iterable
from difflib import get_close_matches

_SHOWN = 20  # choices named at most; the nearest one is named in any case


def choices_words(name: str, choices: Iterable[str]) -> str:
    """Return `; did you mean 'x'? choices: x, y`, without the hint where nothing is close."""
    known = sorted(choices)
    close = nearest(name, known)
    hint = f"did you mean {close!r}? " if close else ""
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"; {hint}choices: {', '.join(known[:_SHOWN]) or 'none'}{more}"


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice that was probably meant, or None where nothing is close."""
    return next(iter(get_close_matches(name[:100], sorted(choices), 1)), None)
