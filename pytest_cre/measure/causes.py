"""JSON documents in a log, such as the report of a diagnostic, cut down to what tells a failure."""

import json
from collections.abc import Iterator, Mapping

from pytest_cre.measure.bandwidth_json import MAX_DOCUMENT_BYTES, DocumentReader
from pytest_cre.measure.blocks import RECORD_BYTES
from pytest_cre.measure.logtext import clean_line, join_records

_BAD_WORDS = frozenset({"fail", "failed", "failure", "error", "fatal", "critical"})
_BAD_KEYS = frozenset({"error", "errors", "exception", "failure", "runtime_error"})
_GOOD_KEYS = frozenset({"ok", "okay", "passed", "success"})
_WALL_BYTES = 2048  # a shorter document is read at a glance
_LABELS = ("name", "category", "test")
_MOST_CAUSES = 200
_LONGEST_CAUSE = 2000

Json = object


def causes_only(data: bytes) -> bytes:
    """Return the end of a log in which long JSON documents are cut down to the causes they tell.

    A document that tells none stays as it is, and so does everything around them.
    """
    if b"{" not in data:
        return data
    if len(data) > MAX_DOCUMENT_BYTES:  # only an end of it is ever shown
        data = data[data.find(b"\n", len(data) - MAX_DOCUMENT_BYTES) + 1 :]
    reader = DocumentReader(is_wanted=lambda _: True, mark=b'"')
    kept: list[bytes] = []
    held: list[bytes] = []  # lines of a document that has not ended
    for raw in data.splitlines(keepends=True):
        whole = raw.rstrip(b"\r\n")
        whole = join_records(whole) if len(whole) > min(RECORD_BYTES) else whole
        has_ended = reader.line(clean_line(whole))
        held.append(raw)
        if reader.is_open:
            continue
        told = causes(reader.documents.pop()) if has_ended else []
        is_wall = sum(map(len, held)) > _WALL_BYTES
        kept += [f"{cause}\n".encode() for cause in told] if told and is_wall else held
        held = []
    return b"".join([*kept, *held])


def causes(document: Mapping[str, Json]) -> list[str]:
    """Return a line for each innermost part of the document that tells a failure, with its place."""
    try:
        return [line for line, _ in zip(_walk(document, ""), range(_MOST_CAUSES), strict=False)]
    except RecursionError:
        return []


def _walk(value: Json, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        children = [
            (f"{place} > {key}" if place else str(key), each) for key, each in value.items()
        ]
        if _tells_failure(value):
            own = {key: each for key, each in value.items() if not _holds_failure(each)}
            text = json.dumps(own, ensure_ascii=False, separators=(", ", ": "))
            yield f"{place or 'document'}: {text}"[:_LONGEST_CAUSE]
    elif isinstance(value, list):
        children = [(_labelled(place, index, each), each) for index, each in enumerate(value)]
    else:
        return
    for where, child in children:
        yield from _walk(child, where)


def _labelled(place: str, index: int, element: Json) -> str:
    """Return the place of a list's element: by its own name, where it has one."""
    if isinstance(element, dict):
        for key in _LABELS:
            if isinstance(name := element.get(key), str) and name:
                return f"{place.rpartition(' > ')[0]} > {name}".removeprefix(" > ")
    return f"{place}[{index}]"


def _tells_failure(value: Mapping[str, Json]) -> bool:
    return any(
        (isinstance(each, str) and each.strip().lower() in _BAD_WORDS)
        or (key.lower() in _BAD_KEYS and bool(each) and not isinstance(each, dict | list))
        or (key.lower() in _GOOD_KEYS and (each is False or str(each).lower() == "false"))
        for key, each in value.items()
    )


def _holds_failure(value: Json) -> bool:
    if isinstance(value, dict):
        return _tells_failure(value) or any(map(_holds_failure, value.values()))
    return isinstance(value, list) and any(map(_holds_failure, value))
