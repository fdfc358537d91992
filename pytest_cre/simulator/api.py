"""The few calls that a kubelet makes of an API server, over HTTP or HTTPS."""

import asyncio
import json
import logging
import random
import ssl
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pytest_cre.simulator.apifaults import SIMULATOR_AGENT

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

Json = Any

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

_LOG = logging.getLogger(__name__)
_REQUEST_TIMEOUT_S = 30.0
_WATCH_S = (120, 180)  # the server ends a watch after this, drawn anew each time
_SILENCE_S = 20.0  # how much longer a watch may be silent before it counts as dead
_PAGE = 500
_BACKOFF_S = (0.05, 3.0)


class ApiRefusal(Exception):
    """An answer that says no."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason


class ApiClient:
    """A client of one API server. Trouble that may pass is retried until it has passed."""

    def __init__(self, server: str, *, token: str | None, ca_file: str | None) -> None:
        self._server = server.rstrip("/")
        self._headers = {"User-Agent": SIMULATOR_AGENT}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._ssl: ssl.SSLContext | bool = True
        if ca_file and server.startswith("https"):
            self._ssl = ssl.create_default_context(cafile=ca_file)
        self._session: ClientSession | None = None

    async def __aenter__(self) -> Self:
        from aiohttp import ClientSession, ClientTimeout, TCPConnector

        self._session = ClientSession(
            connector=TCPConnector(limit=48, ssl=self._ssl),
            headers=self._headers,
            timeout=ClientTimeout(total=_REQUEST_TIMEOUT_S),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(
        self,
        verb: str,
        path: str,
        body: Json = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Json:
        """Return the answer's object; raises `ApiRefusal` for what the server will not change."""
        from aiohttp import ClientError

        data = None if body is None else json.dumps(body).encode()
        delay_s = _BACKOFF_S[0]
        while True:
            try:
                return await self._once(verb, path, data, query, content_type)
            except ApiRefusal as refusal:
                if refusal.status != 429 and refusal.status < 500:
                    raise
                _LOG.debug("%s %s: %s", verb, path, refusal)
            except (ClientError, OSError, TimeoutError, json.JSONDecodeError) as problem:
                _LOG.debug("%s %s: %r", verb, path, problem)
            await asyncio.sleep(delay_s * random.uniform(0.5, 1.0))  # noqa: S311
            delay_s = min(delay_s * 2, _BACKOFF_S[1])

    async def _once(
        self,
        verb: str,
        path: str,
        data: bytes | None,
        query: Mapping[str, str] | None,
        content_type: str,
    ) -> Json:
        headers = {"Content-Type": content_type} if data is not None else None
        async with self._open.request(
            verb, self._server + path, data=data, params=query, headers=headers
        ) as response:
            raw = await response.read()
            if response.status >= 400:
                raise _refusal(response.status, raw)
            return json.loads(raw)

    @property
    def _open(self) -> "ClientSession":
        if self._session is None:
            raise RuntimeError("the client is used before it was entered")
        return self._session

    async def list_all(self, path: str, query: Mapping[str, str]) -> tuple[list[Json], str]:
        """Return every object of a list, page by page, and the list's version."""
        while True:
            items: list[Json] = []
            page_query = {**query, "limit": str(_PAGE)}
            try:
                while True:
                    page = await self.call("GET", path, query=page_query)
                    items.extend(page.get("items") or ())
                    metadata = page.get("metadata") or {}
                    if not metadata.get("continue"):
                        return items, metadata.get("resourceVersion", "")
                    page_query["continue"] = metadata["continue"]
            except ApiRefusal as refusal:
                if refusal.status != 410:  # the first page is too old to be continued
                    raise

    async def follow(self, path: str, query: Mapping[str, str]) -> AsyncIterator[tuple[str, Json]]:
        """Yield `("LISTED", [objects])` and then each event, anew after every loss; never ends."""
        from aiohttp import ClientError

        delay_s = _BACKOFF_S[0]
        while True:
            items, version = await self.list_all(path, query)
            yield "LISTED", items
            try:
                async for kind, item in self.watch(path, query, version):
                    delay_s = _BACKOFF_S[0]
                    yield kind, item
            except ApiRefusal as refusal:
                _LOG.debug("watch of %s: %s", path, refusal)
            except (ClientError, OSError, TimeoutError, ValueError) as problem:
                _LOG.debug("watch of %s: %r", path, problem)
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, _BACKOFF_S[1])

    async def watch(
        self, path: str, query: Mapping[str, str], version: str
    ) -> AsyncIterator[tuple[str, Json]]:
        """Yield events of one watch after another, as long as the last version can be resumed."""
        from aiohttp import ClientTimeout

        while True:
            timeout_s = random.randint(*_WATCH_S)  # noqa: S311 - so that watches do not end together
            watch_query = {
                **query,
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": version,
                "timeoutSeconds": str(timeout_s),
            }
            timeout = ClientTimeout(total=None, sock_connect=10, sock_read=timeout_s + _SILENCE_S)
            async with self._open.get(
                self._server + path, params=watch_query, timeout=timeout
            ) as response:
                if response.status >= 400:
                    raise _refusal(response.status, await response.read())
                async for event in _events(response):
                    kind, item = event["type"], event["object"]
                    if kind == "ERROR":
                        raise _refusal(int(item.get("code") or 500), json.dumps(item).encode())
                    version = item["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        yield kind, item


async def _events(response: "ClientResponse") -> AsyncIterator[Json]:
    """Yield the objects of a stream of JSON lines, whatever their length."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                event = json.loads(line)
                if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
                    raise ValueError("a line of the watch is no event")
                yield event


def _refusal(status: int, raw: bytes) -> ApiRefusal:
    try:
        answer = json.loads(raw)
        return ApiRefusal(status, str(answer.get("reason")), str(answer.get("message")))
    except (ValueError, AttributeError):
        return ApiRefusal(status, "", raw[:200].decode("utf-8", "replace"))
