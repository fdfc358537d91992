"""Whether the cluster answers at all: what a person who waits wants to know."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

# An API server that was started again answers before it knows its roles and accounts.
RECOVERY_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Requests were sent and none was answered for this long; `words` say what became of them."""

    lasted_s: float
    words: str


class Contact:
    """The requests in flight and the last answer. Safe for threads."""

    def __init__(self, server: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._clock = clock
        self._lock = threading.Lock()
        self._sent_s: dict[object, float] = {}
        self._answered_s = clock()
        self._failed_s: float | None = None  # when the first request since then was sent
        self._broken_s: float | None = None  # when a request last failed
        self._words = ""

    def sent(self) -> object:
        """Note that a request goes out; hand the mark to `answered` or `failed`."""
        mark = object()
        with self._lock:
            self._sent_s[mark] = self._clock()
        return mark

    def answered(self, mark: object) -> None:
        """Note an answer, be it a refusal."""
        with self._lock:
            self._sent_s.pop(mark, None)
            self._answered_s = self._clock()
            self._failed_s = None
            self._words = ""

    def failed(self, mark: object, words: str) -> None:
        """Note that no answer came, or one that only says that the server cannot serve."""
        with self._lock:
            sent_s = self._sent_s.pop(mark, self._clock())
            self._broken_s = self._clock()
            if self._failed_s is None:
                self._failed_s = sent_s
            self._words = words

    @property
    def is_recovering(self) -> bool:
        """Return whether requests failed so lately that a refusal may not be meant."""
        with self._lock:
            return self._broken_s is not None and self._clock() - self._broken_s < RECOVERY_S

    @property
    def silence(self) -> Silence | None:
        """Return how long nothing has been answered; None when nothing waits for an answer."""
        with self._lock:
            waiting_s = [*self._sent_s.values()]
            if self._failed_s is not None:
                waiting_s.append(self._failed_s)
            if not waiting_s:
                return None
            since_s = max(self._answered_s, min(waiting_s))
            words = self._words or f"{self._server}: does not answer"
            return Silence(lasted_s=self._clock() - since_s, words=words)
