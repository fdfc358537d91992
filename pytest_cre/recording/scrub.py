"""Logs without names and addresses: pseudonyms stand for them, the same for the same name."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from pytest_cre.evidence.masking import mask_text
from pytest_cre.recording.finding import Found, Kind, Lines, addresses, told_names

# A shorter name, or a mere number, stands everywhere in a log without being meant.
SHORTEST_NAME = 3
_WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
# What `mask_text` masks stands on such a line.
_CREDENTIAL_LINES = Lines(
    rb"(?i:token|secret|passw|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|credential"
    rb"|authorization|bearer)|://|AKIA|ASIA|AIza|gh[pousr]_|github_pat_|glpat-|hf_|nvapi-|sk-|xox|eyJ"
)
_NUMBER = re.compile(rb"[\d.]+")
_PLAIN_WORD = re.compile(rb"[a-z]+")
_NAMED: tuple[Kind, ...] = ("node", "pod", "job", "namespace", "image", "user", "host")


class Names:
    """The names and addresses of a run, collected before the first of them is replaced."""

    def __init__(self) -> None:
        self._found: dict[Kind, set[bytes]] = {}
        self._known: dict[
            bytes, Kind
        ] = {}  # to be replaced wherever they stand; the first kind counts
        self.kept: set[str] = set()  # too short or too common to be replaced

    def add(self, kind: Kind, name: str) -> None:
        """Take a name that is known to be one."""
        self._know(kind, name.encode(), is_told=False)

    def read(self, data: bytes) -> None:
        """Take the names and addresses that stand in a log."""
        text = masked(data)
        for kind, name in told_names(text):
            self._know(kind, name, is_told=True)
        for each in addresses(text):
            self._found.setdefault(each.kind, set()).add(each.name)

    def _know(self, kind: Kind, name: bytes, *, is_told: bool) -> None:
        if len(name) < SHORTEST_NAME or _NUMBER.fullmatch(name):
            self.kept |= {name.decode(errors="replace")} if name and not is_told else set()
            return
        if kind == "namespace" and _PLAIN_WORD.fullmatch(name):
            return  # such as default: a word like any other, except in a host name
        self._known.setdefault(name, kind)
        self._found.setdefault(self._known[name], set()).add(name)

    def scrubber(self) -> "Scrubber":
        """Return what replaces all names collected so far."""
        return Scrubber(self._known, self._found)


class Scrubber:
    """Replaces names and addresses. Pseudonyms of one kind have the order of what they stand for."""

    def __init__(self, known: Mapping[bytes, Kind], found: Mapping[Kind, Iterable[bytes]]) -> None:
        self._known = dict(known)
        self._pseudonyms = {
            (kind, name): _pseudonym(kind, number, len(names), name)
            for kind, of_kind in found.items()
            for names in [sorted(of_kind)]
            for number, name in enumerate(names)
        }

    def name(self, kind: Kind, name: str) -> str:
        """Return the pseudonym of a name that was collected; the name itself of one that was not."""
        known = self._known.get(name.encode(), kind)
        return self._pseudonyms.get((known, name.encode()), name.encode()).decode()

    def scrub(self, data: bytes) -> bytes:
        """Return a log's text without names, addresses and credentials; lines stay lines."""
        text = masked(data)
        pieces, at = [], 0
        for found in sorted(self._places(text), key=lambda each: (each.start, -each.end)):
            pseudonym = self._pseudonyms.get((found.kind, found.name))
            if found.start >= at and pseudonym is not None:
                pieces += [text[at : found.start], pseudonym]
                at = found.end
        return b"".join([*pieces, text[at:]])

    @cached_property
    def _search(self) -> tuple[BytesAhoCorasick, list[bytes]]:
        names = sorted(self._known)
        return BytesAhoCorasick(names, matchkind=MatchKind.LeftmostLongest), names

    def _places(self, text: bytes) -> Iterator[Found]:
        search, names = self._search
        for number, start, end in search.find_matches_as_indexes(text):
            if start and text[start - 1] in _WORD_BYTES:
                continue
            if end < len(text) and text[end] in _WORD_BYTES:
                continue
            yield Found(start, end, self._known[names[number]], names[number])
        yield from addresses(text)


def masked(data: bytes) -> bytes:
    """Return a log's bytes without credentials; what is no UTF-8 stays as it is."""
    if b"PRIVATE KEY" in data:  # of several lines
        return _masked(data)
    pieces, at = [], 0
    for start, line in _CREDENTIAL_LINES.of(data):
        pieces += [data[at:start], _masked(line)]
        at = start + len(line)
    return b"".join([*pieces, data[at:]])


def _masked(data: bytes) -> bytes:
    return mask_text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _pseudonym(kind: Kind, number: int, count: int, name: bytes) -> bytes:
    """Return what stands for the nth name of its kind: of the same form, and in the same order."""
    width = len(str(count - 1))
    match kind:
        case "ipv4":  # the network of benchmarks, RFC 2544
            return f"198.{18 + (number >> 16) % 2}.{number >> 8 & 255}.{number & 255}".encode()
        case "ipv6":  # the network of documentation, RFC 3849
            return f"2001:db8::{number >> 16:x}:{number & 0xFFFF:x}".encode()
        case "mac":
            pairs = len(name.split(b":"))
            return b":".join([b"02", *(b"%02x" % each for each in number.to_bytes(pairs - 1))])
        case "guid":
            prefix = b"0x" if name.startswith(b"0x") else b""
            digits = b"%016x" % number
            return prefix + b":".join(digits[at : at + 4] for at in range(0, 16, 4))
        case "uuid":
            return b"00000000-0000-0000-0000-%012x" % number
        case "serial":
            return b"%0*d" % (len(name), number)
        case "folder":
            ending = name.rpartition(b".")[1:] if b"." in name[1:] else (b"", b"")
            return b"folder-%0*d%s" % (width, number, b"".join(ending))
        case "host":
            return b"host-%0*d" % (width, number)
        case _:
            return b"%s-%0*d" % (kind.encode(), width, number)
