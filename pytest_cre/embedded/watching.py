"""Watches: the recent history of a kind, then each change as it happens."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from pytest_cre.embedded.kinds import Json, Kind
from pytest_cre.embedded.selecting import Selection
from pytest_cre.embedded.status import ApiError, expired
from pytest_cre.embedded.store import Change, HistoryGoneError, Record, Store, event_line

# A watcher that lags this far behind is cut off, and starts over from a fresh list.
_BACKLOG_LIMIT_EVENTS = 20_000
_INITIAL_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """What a watch request asks for; `after_version` 0 means: begin with what there is."""

    after_version: int
    with_initial_events: bool
    with_bookmarks: bool
    timeout_s: float
    bookmark_interval_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event as one watcher sees it; None as record for bookmarks and errors."""

    type: str
    record: Record | None
    line: bytes


class Watch:
    """One watcher. `open` before anything is awaited, `close` always."""

    def __init__(
        self, store: Store, kind: Kind, selection: Selection, options: WatchOptions
    ) -> None:
        self._store = store
        self._kind = kind
        self._selection = selection
        self._options = options
        self._events: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._is_cut = False
        self._seen_version = 0
        self._unsubscribe: Callable[[], None] = lambda: None

    def open(self) -> None:
        """Collect what has to be told first, and listen from this moment."""
        options, store = self._options, self._store
        self._seen_version = store.version
        if options.with_initial_events or not options.after_version:
            for record in store.records(self._kind, self._selection.namespace):
                if self._selection.covers(record):
                    line = event_line("ADDED", record.encoded_alone)
                    self._events.append(Event(type="ADDED", record=record, line=line))
            if options.with_initial_events and options.with_bookmarks:
                self._events.append(self._bookmark({_INITIAL_END: "true"}))
        else:
            try:
                changes = store.changes_after(self._kind, options.after_version)
            except HistoryGoneError as gone:
                error = expired(
                    f"too old resource version: {options.after_version} ({gone.oldest_version})"
                )
                self._events.append(error_event(error))
                self._is_cut = True
                return
            for change in changes:
                self._take(change)
        self._unsubscribe = store.subscribe(self._kind, self._take)

    def close(self) -> None:
        """Stop listening."""
        self._unsubscribe()
        self._unsubscribe = lambda: None

    async def batches(self) -> AsyncIterator[list[Event]]:
        """Give events as they come, until the time is up or the watch is cut off."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._options.timeout_s
        next_bookmark_s = loop.time() + self._options.bookmark_interval_s
        while True:
            if self._events:
                batch = list(self._events)
                self._events.clear()
                self._wake.clear()
                yield batch
                continue
            now_s = loop.time()
            if self._is_cut or now_s >= end_s:
                return
            if self._options.with_bookmarks and now_s >= next_bookmark_s:
                next_bookmark_s = now_s + self._options.bookmark_interval_s
                self._seen_version = self._store.version
                yield [self._bookmark({})]
                continue
            wait_until_s = min(end_s, next_bookmark_s) if self._options.with_bookmarks else end_s
            try:
                async with asyncio.timeout_at(wait_until_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _take(self, change: Change) -> None:
        self._seen_version = change.version
        event = self._seen(change)
        if event is None:
            return
        self._events.append(event)
        self._wake.set()
        if len(self._events) > _BACKLOG_LIMIT_EVENTS:
            self._is_cut = True
            self.close()

    def _seen(self, change: Change) -> Event | None:
        """Translate a change into what happens within the selection."""
        selection, record, previous = self._selection, change.record, change.previous
        if change.type != "MODIFIED":
            covered = selection.covers(record if previous is None else previous)
            return Event(type=change.type, record=record, line=change.line) if covered else None
        assert previous is not None  # noqa: S101 - a modified object had a state before
        is_in, was_in = selection.covers(record), selection.covers(previous)
        if is_in and was_in:
            return Event(type="MODIFIED", record=record, line=change.line)
        if is_in:
            line = event_line("ADDED", record.encoded_alone)
            return Event(type="ADDED", record=record, line=line)
        if was_in:
            metadata = {**previous.obj["metadata"], "resourceVersion": str(change.version)}
            last = Record(
                record.kind, record.key, {**previous.obj, "metadata": metadata}, change.version
            )
            return Event(
                type="DELETED", record=last, line=event_line("DELETED", last.encoded_alone)
            )
        return None

    def _bookmark(self, annotations: dict[str, str]) -> Event:
        metadata: Json = {"resourceVersion": str(self._seen_version)}
        if annotations:
            metadata["annotations"] = annotations
        body = {
            "kind": self._kind.kind,
            "apiVersion": self._kind.api_version,
            "metadata": metadata,
        }
        return Event(
            type="BOOKMARK", record=None, line=event_line("BOOKMARK", json.dumps(body).encode())
        )


def error_event(error: ApiError) -> Event:
    """Give the event that ends a watch with an error."""
    return Event(
        type="ERROR", record=None, line=event_line("ERROR", json.dumps(error.status()).encode())
    )
