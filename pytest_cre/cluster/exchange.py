"""One request and its answer: tried again where that may help, refused in one line where not."""

import gc
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from pytest_cre.cluster.objects import part
from pytest_cre.cluster.retry import PASSING_STATUSES, RetryPolicy
from pytest_cre.cluster.transport import (
    Access,
    Refused,
    Unanswered,
    Unusable,
    pieces,
    stream_errors,
    transport_words,
)
from pytest_cre.errors import ClusterProblem, UsageProblem

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

CONNECT_TIMEOUT_S = 5.0
ANSWER_DEADLINE_S = 120.0  # for a whole answer, however slowly it drips
_REFUSAL_LIMIT = 400
_LARGE_BYTES = 1 << 20

T = TypeVar("T")


class ApiProblem(ClusterProblem):
    """An answer that refuses a request. `status` is the HTTP code, `reason` the API's word.

    `may_pass`: the same request may well be answered soon.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        reason: str,
        retry_after_s: float | None = None,
        may_pass: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.may_pass = may_pass

    @property
    def is_missing(self) -> bool:
        """Return whether the object asked for does not exist, which is certain."""
        return self.status == 404 and not self.may_pass


class Conflict(ApiProblem):
    """The object changed since it was read, or the name is taken by somebody else (409)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, and the words for it in a problem: `create jobs default/name`."""

    method: str
    path: str
    words: str
    query: Mapping[str, str] | None = None
    body: Mapping[str, Any] | None = None
    may_be_unserved: bool = False  # a 404 is an answer, though it names no object

    @property
    def url(self) -> str:
        """Return path and query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


class Exchange:
    """Sends requests to one cluster. Raises `ApiProblem` for refusals, else `ClusterProblem`."""

    def __init__(self, access: Access, retry: RetryPolicy) -> None:
        self.access = access
        self.retry = retry

    def json(self, request: Request) -> dict[str, Any]:
        """Send a request that may be repeated, until it is answered or the budget ends."""
        return self.persist(lambda: self.once(request))

    def persist(self, attempt: Callable[[], T]) -> T:
        """Repeat an attempt that says "later" or gets no answer, until the budget ends."""
        pauses = self.retry.pauses()
        while True:
            asked_s = None
            try:
                return attempt()
            except ApiProblem as problem:
                if not problem.may_pass:
                    raise
                asked_s = problem.retry_after_s
                is_refusal = problem.status not in PASSING_STATUSES
                last: ClusterProblem = problem
            except Unanswered as problem:
                is_refusal = False
                last = problem
            if not pauses.wait(asked_s, is_refusal=is_refusal):
                raise last

    def _with_credentials(self, attempt: Callable[[], T]) -> T:
        """Make an attempt; after a 401 once more, with the configuration read again."""
        generation = self.access.generation
        try:
            return attempt()
        except ApiProblem as problem:
            if problem.status != 401:
                raise
            try:
                self.access.reload(generation)
            except UsageProblem:
                raise problem from None  # it may just be written anew
            return attempt()

    def _settled(self, attempt: Callable[[], T]) -> T:
        """Make an attempt; right after an outage a refusal of our rights is no answer yet."""
        try:
            return self._with_credentials(attempt)
        except ApiProblem as problem:
            if problem.status in (401, 403) and self.access.contact.is_recovering:
                raise Unanswered(f"{problem} (the server has just come back)") from None
            raise

    def once(self, request: Request) -> dict[str, Any]:
        """Send a request and return the answer, not repeated but for expired credentials."""
        return self._settled(lambda: self._answer(request))

    def _answer(self, request: Request) -> dict[str, Any]:
        response = self._open(request, "application/json", self.retry.read_timeout_s)
        deadline = time.monotonic() + ANSWER_DEADLINE_S
        parts = []
        try:
            for piece in pieces(response):
                parts.append(piece)
                if time.monotonic() > deadline:
                    raise Unanswered(
                        f"{self.access.server}: {request.words}: the answer does not end"
                    )
            response.release_conn()
        except stream_errors() as problem:
            raise Unanswered(
                f"{self.access.server}: {request.words}: {transport_words(problem)}"
            ) from None
        finally:
            response.close()
        try:
            found = _parsed(b"".join(parts))
        except (ValueError, RecursionError):
            raise Unanswered(
                f"{self.access.server}: {request.words}: the answer is not JSON"
            ) from None
        return found if isinstance(found, dict) else {}

    def _open(self, request: Request, accept: str, read_timeout_s: float) -> "BaseHTTPResponse":
        contact = self.access.contact
        mark = contact.sent()
        try:
            response = self.access.open(
                request.method,
                request.url,
                accept=accept,
                body=request.body,
                timeouts_s=(min(CONNECT_TIMEOUT_S, read_timeout_s), read_timeout_s),
            )
        except Refused as refusal:
            refused = self._refusal(request, refusal)
            if refused.status in PASSING_STATUSES:
                contact.failed(mark, str(refused))
            else:
                contact.answered(mark)
            raise refused from None
        except (Unanswered, Unusable) as problem:
            known = type(problem)(f"{problem} ({request.words})")
            contact.failed(mark, str(known))
            raise known from None
        except BaseException:
            contact.failed(mark, f"{self.access.server}: {request.words}: broken off")
            raise
        contact.answered(mark)
        return response

    def _refusal(self, request: Request, refusal: Refused) -> ApiProblem:
        """Return the problem that a refusing answer tells, with what was asked of whom."""
        try:
            told = json.loads(refusal.body)
        except (ValueError, RecursionError):
            told = None
        status = told if isinstance(told, dict) else {}
        reason = str(status.get("reason") or "")
        text = str(status.get("message") or "") or refusal.body.decode(errors="replace")
        message = " ".join(text.split())[:_REFUSAL_LIMIT]
        code = " ".join(filter(None, (str(refusal.status), reason)))
        line = f"{self.access.server}: {request.words}: {code}" + (
            f": {message}" if message else ""
        )
        kind = Conflict if refusal.status == 409 else ApiProblem
        asked = refusal.headers.get("Retry-After")
        details = part(status, "details")
        # A server that restarts an extension, or knows its kind no more for a moment, names none.
        is_unserved = refusal.status == 404 and not details.get("name")
        return kind(
            line,
            status=refusal.status,
            reason=reason,
            retry_after_s=_seconds(asked or details.get("retryAfterSeconds")),
            may_pass=refusal.status in (401, *PASSING_STATUSES)
            or (is_unserved and not request.may_be_unserved),
        )

    @contextmanager
    def stream(
        self, request: Request, accept: str, read_timeout_s: float
    ) -> "Iterator[BaseHTTPResponse]":
        """Open an answer that is read as it arrives, with `transport.pieces`."""
        response = self._settled(lambda: self._open(request, accept, read_timeout_s))
        try:
            yield response
        finally:
            response.close()  # what was not read must not reach the pool


def _parsed(data: bytes) -> object:
    if len(data) < _LARGE_BYTES or not gc.isenabled():
        return json.loads(data)
    # A page of nodes is a hundred thousand objects and no garbage: looking for some takes longer
    # than parsing does.
    gc.disable()
    try:
        return json.loads(data)
    finally:
        gc.enable()


def _seconds(text: object) -> float | None:
    """Return how long the server asks to wait, at most a minute; None where it asks for nothing."""
    digits = str(text or "")
    return min(float(digits), 60.0) if digits.isascii() and digits.isdigit() else None
