"""What is looked for in a whole block, so that only the lines that can matter are cut out of it."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, cast

import re2
from ahocorasick_rs import BytesAhoCorasick, MatchKind

if TYPE_CHECKING:
    import re

# Up to so many texts of at least so many bytes are looked for at once by vector instructions, at several
# GB/s. Those compare halves of the first four bytes with sets of them, one set for every sixteenth text: the
# more alike the texts of a set are, the less noise passes for one of them.
_TEXTS_AT_ONCE = 56
_LONG_TEXT = 4
_SETS = 16

Place = tuple[int, int]


class Needles:
    """Plain texts, and RE2 sources for what users look for."""

    def __init__(self, texts: Sequence[bytes], sources: Sequence[bytes] = ()) -> None:
        self._searches = [
            BytesAhoCorasick(group, matchkind=MatchKind.LeftmostFirst) for group in _groups(texts)
        ]
        self._pattern = _compile(tuple(sources)) if sources else None

    def places(self, block: bytes) -> list[Place]:
        """Return start and end of places in order: one on each line that holds a text or matches a source."""
        found = [
            (start, end)
            for search in self._searches
            for _, start, end in search.find_matches_as_indexes(block)
        ]
        if self._pattern is not None:
            found.extend(_matches(self._pattern, block))
        found.sort()
        return found


@lru_cache(maxsize=64)
def needles_of(texts: tuple[bytes, ...], sources: tuple[bytes, ...] = ()) -> Needles:
    """Return the needles, made once."""
    return Needles(texts, sources)


def _groups(texts: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Deal the texts out to groups that are quick to search for; one that holds another is left out."""
    different = set(texts)
    joined = b"\n".join(different)
    held = [text for text in different if joined.count(text) > 1]
    least = [text for text in different if not any(o in text and o != text for o in held)]
    long = sorted((text for text in least if len(text) >= _LONG_TEXT), key=_low_halves)
    for group in _parts(long, -(-len(long) // _TEXTS_AT_ONCE)):
        sets = sorted(_parts(group, _SETS), key=len, reverse=True)
        yield [each[at] for at in range(len(sets[0])) for each in sets if at < len(each)]
    if len(long) < len(least):
        yield sorted(text for text in least if len(text) < _LONG_TEXT)


def _low_halves(text: bytes) -> tuple[bytes, bytes]:
    return bytes(byte & 15 for byte in text[:_LONG_TEXT]), text


def _parts(texts: list[bytes], count: int) -> list[list[bytes]]:
    """Cut a list into so many parts of nearly equal length."""
    cuts = [len(texts) * at // count for at in range(count + 1)] if count else []
    return [texts[begin:end] for begin, end in pairwise(cuts)]


class _Pattern(Protocol):
    """A compiled RE2 pattern."""

    def search(self, text: bytes, pos: int = 0) -> "re.Match[bytes] | None":
        """Return the leftmost match at or after a place."""


def _compile(sources: tuple[bytes, ...]) -> _Pattern:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    return cast("_Pattern", re2.compile(b"|".join(b"(?:%b)" % s for s in sources), options))


def _matches(pattern: _Pattern, block: bytes) -> Iterator[Place]:
    """Yield the first match on each line."""
    at = 0
    while at < len(block) and (found := pattern.search(block, at)) is not None:
        start, end = found.span()
        yield start, end
        at = block.find(b"\n", max(start, end - 1)) + 1 or len(block)
