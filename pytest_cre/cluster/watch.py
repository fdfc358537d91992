"""What is in the cluster right now, kept fresh by lists and, between them, by a watch.

A watch only wakes: every stream that ends, breaks, goes silent or talks nonsense leads to a new
list, and the list is what counts. Objects are told apart by UID, for names come again.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from pytest_cre.cluster.client import ApiProblem, Client, Listing
from pytest_cre.cluster.objects import ResourceKind, metadata_of
from pytest_cre.cluster.transport import cut, pieces, stream_errors
from pytest_cre.errors import ClusterProblem, CreError

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_LINE_LIMIT_BYTES = 4 << 20  # etcd takes 1.5 MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTiming:
    """When a watch counts as dead, and how often the server may be asked again."""

    longest_watch_s: tuple[int, int] = (240, 300)  # drawn, so that watches do not end together
    silence_s: float = 75.0  # bookmarks come every minute
    first_pause_s: float = 1.0
    longest_pause_s: float = 5.0
    jitter: Callable[[], float] = field(default=random.random)


class Watcher:
    """The objects of one kind and selector, as last seen. A daemon thread keeps them.

    They lack `metadata.managedFields` and `status.images`.
    """

    def __init__(
        self,
        client: Client,
        kind: ResourceKind,
        *,
        label_selector: str = "",
        field_selector: str = "",
        all_namespaces: bool = False,
        timing: WatchTiming | None = None,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        self._timing = timing or WatchTiming()
        self._client = client.with_retry(replace(client.retry, budget_s=0.0))
        self._kind = kind
        self._labels, self._fields = label_selector, field_selector
        self._all_namespaces = all_namespaces
        self._on_change = on_change
        self._changed = threading.Condition()
        self._live: dict[str, dict[str, Any]] = {}
        self._gone: dict[str, dict[str, Any]] = {}
        self._generation = 0
        self._problem: ClusterProblem | None = None
        self._refused_s: float | None = None  # since when, without a watch in between
        self._is_synced = False
        self._stopped = threading.Event()
        self._response: BaseHTTPResponse | None = None
        self._thread = threading.Thread(target=self._run, name=f"cre-{kind.plural}", daemon=True)

    def start(self) -> Self:
        """Start watching; returns at once."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop watching and wait for the thread; what was seen stays readable."""
        self._stopped.set()
        with self._changed:
            response = self._response
            self._changed.notify_all()
        if response is not None:
            cut(response)
        if self._thread.is_alive():
            self._thread.join(5.0)  # it may sit in a connect; it is a daemon

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def generation(self) -> int:
        """Return a number that grows with every change and every new problem."""
        with self._changed:
            return self._generation

    @property
    def is_synced(self) -> bool:
        """Return whether a whole list has been seen."""
        with self._changed:
            return self._is_synced

    @property
    def problem(self) -> ClusterProblem | None:
        """Return why the latest try to list failed; None when it did not."""
        with self._changed:
            return self._problem

    @property
    def refused_for_s(self) -> float:
        """Return for how long the server has refused, as opposed to not answering."""
        with self._changed:
            return 0.0 if self._refused_s is None else time.monotonic() - self._refused_s

    def snapshot(self) -> tuple[dict[str, Any], ...]:
        """Return the objects that exist, sorted by name."""
        with self._changed:
            return _sorted(self._live.values())

    def deleted(self) -> tuple[dict[str, Any], ...]:
        """Return the objects that existed once, as last seen, sorted by name."""
        with self._changed:
            return _sorted(self._gone.values())

    def wait(self, timeout_s: float, seen_generation: int) -> int:
        """Return the generation, once it is another than the seen one or the time is over."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._generation != seen_generation or self._stopped.is_set(), timeout_s
            )
            return self._generation

    def _run(self) -> None:
        pause_s = self._timing.first_pause_s
        while not self._stopped.is_set():
            started = time.monotonic()
            try:
                listing = self._client.list(
                    self._kind,
                    all_namespaces=self._all_namespaces,
                    label_selector=self._labels,
                    field_selector=self._fields,
                    slim=_slim,
                )
                self._replace_all(listing)
                self._follow(listing.resource_version)
            except CreError as problem:
                self._note(problem)
            lasted_s = time.monotonic() - started
            if lasted_s > 2 * self._timing.longest_pause_s:
                pause_s = self._timing.first_pause_s  # it worked for a while
            # A list costs the server most, so a cluster whose watches break at once gets few.
            jittered_s = pause_s * (1.0 + self._timing.jitter() / 4)
            self._stopped.wait(max(0.0, jittered_s - lasted_s))
            pause_s = min(pause_s * 1.5, self._timing.longest_pause_s)

    def _follow(self, resource_version: str) -> None:
        """Watch until the stream ends, for whatever reason; raises `ClusterProblem` for refusals."""
        shortest, longest = self._timing.longest_watch_s
        try:
            with self._client.open_watch(
                self._kind,
                resource_version=resource_version,
                timeout_s=round(shortest + self._timing.jitter() * (longest - shortest)),
                read_timeout_s=self._timing.silence_s,
                all_namespaces=self._all_namespaces,
                label_selector=self._labels,
                field_selector=self._fields,
            ) as response:
                with self._changed:
                    self._response = response
                    self._refused_s = None
                if not self._stopped.is_set():
                    self._read(response)
        except ApiProblem as problem:
            if problem.status != 410:  # the version is too old: a new list is all it takes
                raise
        except ClusterProblem:
            raise
        except stream_errors():
            return  # broken, silent or cut
        finally:
            with self._changed:
                self._response = None

    def _read(self, response: "BaseHTTPResponse") -> None:
        held = b""
        for piece in pieces(response):
            *lines, held = (held + piece).split(b"\n")
            if len(held) > _LINE_LIMIT_BYTES or self._stopped.is_set():
                return
            for line in lines:
                if line.strip() and not self._apply(line):
                    return

    def _apply(self, line: bytes) -> bool:
        """Take in one event; False when the stream cannot be trusted any further."""
        try:
            event = json.loads(line)
            type_, item = event["type"], _slim(event["object"])
            if type_ == "BOOKMARK":
                return True
            uid = str(item["metadata"]["uid"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return False
        with self._changed:
            if type_ in ("ADDED", "MODIFIED"):
                self._live[uid] = item
                self._gone.pop(uid, None)
            elif type_ == "DELETED":
                self._live.pop(uid, None)
                self._gone[uid] = item
            else:
                return False
            self._bump()
        self._tell()
        return True

    def _replace_all(self, listing: Listing) -> None:
        """Take a whole list; what it lacks has been deleted unseen."""
        found = {
            str(metadata_of(item).get("uid")): item
            for item in listing.items
            if metadata_of(item).get("uid")
        }
        with self._changed:
            is_news = found != self._live or self._problem is not None or not self._is_synced
            self._gone |= {uid: item for uid, item in self._live.items() if uid not in found}
            for uid in found:
                self._gone.pop(uid, None)
            self._live = found
            self._is_synced = True
            self._problem = None
            if is_news:
                self._bump()
        if is_news:
            self._tell()

    def _note(self, problem: CreError) -> None:
        with self._changed:
            known = problem if isinstance(problem, ClusterProblem) else ClusterProblem(str(problem))
            is_news = str(self._problem) != str(known)
            self._problem = known
            if isinstance(known, ApiProblem) and self._refused_s is None:
                self._refused_s = time.monotonic()
            if is_news:
                self._bump()
        if is_news:
            self._tell()

    def _bump(self) -> None:
        self._generation += 1
        self._changed.notify_all()

    def _tell(self) -> None:
        if self._on_change is not None:
            self._on_change()


def _slim(item: dict[str, Any]) -> dict[str, Any]:
    """Drop what is most of an object and of no use: of a node its images, of any its field owners."""
    for name, useless in (("metadata", "managedFields"), ("status", "images")):
        inner = item.get(name)
        if isinstance(inner, dict):
            inner.pop(useless, None)
    return item


def _sorted(items: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    def order(item: Mapping[str, Any]) -> tuple[str, str, str]:
        metadata = metadata_of(item)
        return tuple(str(metadata.get(name) or "") for name in ("namespace", "name", "uid"))  # type: ignore[return-value]

    return tuple(sorted(items, key=order))
