"""The end of a message about an unknown name: the nearest choice, then all of them."""

from collections.abc import Iterable
from difflib import get_close_matches

_SHOWN = 20  # choices named at most; the nearest one is named in any case


def choices_words(name: str, choices: Iterable[str]) -> str:
    """Return `; did you mean 'x'? choices: x, y`, without the hint where nothing is close."""
    known = sorted(choices)
    close = get_close_matches(name[:100], known, 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"; {hint}choices: {', '.join(known[:_SHOWN]) or 'none'}{more}"
