"""Planted faults of the API: what is asked is answered wrongly, late, partly or not at all."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

from pytest_cre.embedded.answers import Handler, error_response, stream_maker
from pytest_cre.embedded.cutting import cut
from pytest_cre.embedded.distortions import DISTORTIONS, distorted
from pytest_cre.embedded.faultystreams import FaultyStream, StreamEnded
from pytest_cre.embedded.options import boolean
from pytest_cre.embedded.paths import Address, parse_path
from pytest_cre.embedded.status import ApiError, expired
from pytest_cre.embedded.store import HistoryGoneError
from pytest_cre.embedded.watching import error_event

if TYPE_CHECKING:
    from pytest_cre.embedded.registry import Registry
    from pytest_cre.simulator.apifaults import ApiFault, ApiSubject

Shut = Callable[[float], Awaitable[None]]
"""Closes every connection and refuses new ones for some seconds."""

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_DRIP_S = 0.05


@dataclass(slots=True)
class _Planted:
    fault: "ApiFault"
    seen: int = 0
    hits: int = 0
    seen_s: float = 0.0  # when the first matching request came
    hit_s: float = 0.0  # when it first struck


@dataclass(slots=True)
class FaultBook:
    """The faults of an API server, and what they have hit so far."""

    planted: list[_Planted] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)  # hits by action
    is_over: bool = False  # all is well from now on

    @classmethod
    def of(cls, faults: "Iterable[ApiFault]") -> "FaultBook":
        """Make a book in which nothing has happened yet."""
        return cls(planted=[_Planted(fault) for fault in faults])

    def strike(self, request: web.BaseRequest) -> "ApiFault | None":
        """Return the first fault that hits the request, None when it is spared."""
        if not self.planted or self.is_over:
            return None
        subject, now_s = _subject(request), time.monotonic()
        for each in self.planted:
            if each.fault.match.matches(subject) and _strikes(each, now_s):
                self.counts[each.fault.action] += 1
                return each.fault
        return None


def _strikes(planted: _Planted, now_s: float) -> bool:
    fault = planted.fault
    planted.seen += 1
    planted.seen_s = planted.seen_s or now_s
    if planted.seen <= fault.after_requests or now_s < planted.seen_s + fault.after_s:
        return False
    if (planted.seen - fault.after_requests - 1) % fault.every:
        return False
    is_used_up = fault.times is not None and planted.hits >= fault.times
    is_past = (
        fault.lasting_s is not None and planted.hits and (now_s > planted.hit_s + fault.lasting_s)
    )
    if is_used_up or is_past:
        return False
    planted.hits += 1
    planted.hit_s = planted.hit_s or now_s
    return True


def _subject(request: web.BaseRequest) -> "ApiSubject":
    from pytest_cre.simulator.apifaults import ApiSubject

    address = parse_path(request.path)
    client = request.headers.get("User-Agent", "")
    if address is None:
        verb = _VERBS.get(request.method, request.method.lower())
        return ApiSubject(verb=verb, resource=request.path, client=client)
    part = f"/{address.subresource}" if address.subresource else ""
    return ApiSubject(
        verb=_verb(request, address),
        resource=f"{address.kind.plural}{part}",
        namespace=address.namespace,
        name=address.name,
        client=client,
    )


def _verb(request: web.BaseRequest, address: Address) -> str:
    if request.method == "GET":
        is_watch = False
        with suppress(ApiError):
            is_watch = not address.subresource and boolean(request.query, "watch")
        return "watch" if is_watch else "get" if address.name else "list"
    if request.method == "DELETE":
        return "delete" if address.name else "deletecollection"
    return _VERBS.get(request.method, request.method.lower())


def faulty(handler: Handler, book: FaultBook, registry: "Registry", shut: Shut) -> Handler:
    """Let the faults of a book befall the requests."""
    if not book.planted:
        return handler
    front = _Front(handler, registry, shut)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        fault = book.strike(request)
        try:
            return await (handler(request) if fault is None else front.answer(request, fault))
        except ConnectionError:
            return web.Response()  # nobody gets it: the connection is gone

    return handle


class _Front:
    """Answers requests that a fault has hit."""

    def __init__(self, handler: Handler, registry: "Registry", shut: Shut) -> None:
        self._handler, self._registry, self._shut = handler, registry, shut

    async def answer(self, request: web.BaseRequest, fault: "ApiFault") -> web.StreamResponse:
        match fault.action:
            case "refuse":
                await self._shut(fault.seconds or 0.0)
                raise ConnectionResetError
            case "delay":
                await asyncio.sleep(fault.seconds or 0.0)
                return await self._handler(request)
            case "answer":
                return error_response(_error(fault))
            case "recreate":
                self._recreate(request, fault)
                return await self._handler(request)
            case "forget-history" if (error := self._forgotten(request, fault)) is not None:
                return await _told(request, error)
            case "black-hole" if not _is_stream(request):
                await _silence(fault)
                cut(request)
        return await self._spoilt(request, fault)

    async def _spoilt(self, request: web.BaseRequest, fault: "ApiFault") -> web.StreamResponse:
        token = stream_maker.set(lambda headers: FaultyStream(request, fault, headers))
        try:
            response = await self._handler(request)
        except StreamEnded as ended:
            return ended.stream
        finally:
            stream_maker.reset(token)
        if isinstance(response, FaultyStream) or not isinstance(response, web.Response):
            return response
        if fault.action in DISTORTIONS:
            return distorted(response, fault.action)
        if fault.action == "lose-answer":
            cut(request)
        if fault.action in ("reset", "close", "slow-drip"):
            return await _in_pieces(request, response, fault)
        return response

    def _forgotten(self, request: web.BaseRequest, fault: "ApiFault") -> ApiError | None:
        """Return the refusal of a watch that would need more history than there is."""
        address, version = parse_path(request.path), request.query.get("resourceVersion", "")
        if address is None or not version.isdigit() or version == "0":
            return None
        try:
            changes = self._registry.store.changes_after(address.kind, int(version))
        except HistoryGoneError:
            return None
        if len(changes) <= fault.lines:
            return None
        oldest = changes[-fault.lines].version if fault.lines else self._registry.store.version
        return expired(f"too old resource version: {version} ({oldest})")

    def _recreate(self, request: web.BaseRequest, fault: "ApiFault") -> None:
        """Put another object of the same name in the place of the first one that matches."""
        from fnmatch import fnmatchcase

        address = parse_path(request.path)
        if address is None:
            return
        store = self._registry.store
        for record in store.records(address.kind, address.namespace):
            if fnmatchcase(record.key[1], fault.object):
                obj = record.copy()
                obj["metadata"] |= {
                    "uid": self._registry.new_uid(),
                    "creationTimestamp": self._registry.now_text(),
                }
                store.remove(record.kind, record.key)
                store.put(record.kind, record.key, obj)
                return


def _error(fault: "ApiFault") -> ApiError:
    code = fault.code or 500
    details = None if fault.retry_after is None else {"retryAfterSeconds": fault.retry_after}
    return ApiError(code, _REASONS.get(code, ""), fault.message or "planted fault", details)


def _is_stream(request: web.BaseRequest) -> bool:
    query = request.query
    return query.get("watch") in ("true", "1") or query.get("follow") in ("true", "1")


async def _told(request: web.BaseRequest, error: ApiError) -> web.StreamResponse:
    """Answer a watch with nothing but an error, as an event."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    await response.write(error_event(error).line)
    await response.write_eof()
    return response


async def _silence(fault: "ApiFault") -> None:
    if fault.seconds is None:
        await asyncio.Event().wait()
    else:
        await asyncio.sleep(fault.seconds)


async def _in_pieces(
    request: web.BaseRequest, whole: web.Response, fault: "ApiFault"
) -> web.StreamResponse:
    """Send the half of an answer, or all of it slowly."""
    body = whole.body if isinstance(whole.body, bytes) else b""
    response = web.StreamResponse(status=whole.status, headers={"Content-Type": whole.content_type})
    response.enable_chunked_encoding()
    await response.prepare(request)
    if fault.action == "slow-drip":
        size = max(1, round(fault.bytes_per_second * _DRIP_S))
        for start in range(0, len(body), size):
            await response.write(body[start : start + size])
            await asyncio.sleep(_DRIP_S)
    else:
        await response.write(body[: len(body) // 2])
        if fault.action == "reset":
            await asyncio.sleep(0)
            cut(request)
    await response.write_eof()
    return response
