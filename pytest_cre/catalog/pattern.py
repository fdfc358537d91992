"""Patterns that users write: RE2 syntax, compiled by RE2 itself, so that no text can hang them."""

from collections.abc import Mapping
from typing import Protocol

import re2


class Match(Protocol):
    """What is used of a match."""

    def groupdict(self) -> dict[str, str | None]:
        """Return the named groups."""


class Pattern(Protocol):
    """What is used of a compiled pattern."""

    @property
    def groupindex(self) -> Mapping[str, int]:
        """Return the numbers of the named groups."""

    def search(self, text: str) -> Match | None:
        """Return the first match anywhere in the text."""

    def fullmatch(self, text: str) -> Match | None:
        """Return the match of the whole text."""


def compile_pattern(text: str) -> Pattern:
    """Return the compiled pattern; raises `ValueError` that ends a message about it.

    Lookaround, back-references, atomic groups and repeats above 1000 are refused by their names.
    """
    options = re2.Options()
    options.log_errors = False  # RE2 would write to stderr
    try:
        compiled: Pattern = re2.compile(text, options)
    except re2.error as problem:
        told = problem.args[0] if problem.args else problem
        words = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
        raise ValueError(f"is refused by RE2: {' '.join(words.split())}") from None
    except UnicodeEncodeError:
        raise ValueError("is no valid Unicode text") from None
    return compiled
