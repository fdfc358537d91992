"""Answers of the HTTP front, and the two walls around it: the token, and the catching of errors."""

import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar

from aiohttp import web

from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.status import ApiError, internal

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
MakeStream = Callable[[Mapping[str, str]], web.StreamResponse]
# Of the request that is being answered; one with a planted fault has a stream of its own.
stream_maker: ContextVar[MakeStream] = ContextVar(
    "stream_maker", default=lambda headers: web.StreamResponse(headers=headers)
)
_LOG = logging.getLogger("pytest_cre.embedded")


async def open_stream(request: web.BaseRequest, headers: Mapping[str, str]) -> web.StreamResponse:
    """Begin an answer that is sent bit by bit."""
    response = stream_maker.get()(headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    return response


def guarded(handler: Handler, *, token: str) -> Handler:
    """Demand the bearer token of every request."""
    expected = f"Bearer {token}".encode()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, expected):
            return error_response(ApiError(401, "Unauthorized", "Unauthorized"))
        return await handler(request)

    return handle


def bounded(handler: Handler) -> Handler:
    """Turn what is raised into an answer, so that no request can hurt another."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await handler(request)
        except ApiError as error:
            return error_response(error)
        except ConnectionError:
            # The client went away in the middle of a stream; there is no one to answer.
            raise
        except Exception as error:  # noqa: BLE001 - one bad request must not hurt the others
            _LOG.exception("%s %s", request.method, request.path)
            return error_response(internal(f"{type(error).__name__}: {error}"))

    return handle


def with_warnings(response: web.Response, warnings: Sequence[str]) -> web.Response:
    """Add warnings, one header each, to an answer."""
    for text in warnings:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{quoted}"')
    return response


def yaml_response(response: web.Response) -> web.Response:
    """Give an answer in JSON as one in YAML."""
    import yaml

    body = response.body
    if response.content_type != "application/json" or not isinstance(body, bytes):
        return response
    text = yaml.safe_dump(json.loads(body), sort_keys=True, allow_unicode=True)
    return web.Response(
        body=text.encode(),
        status=response.status,
        headers={"Cache-Control": "no-cache, private"},
        content_type="application/yaml",
    )


def error_response(error: ApiError) -> web.Response:
    """Give the answer that carries an error."""
    headers = {}
    retry_after_s = (error.details or {}).get("retryAfterSeconds")
    if retry_after_s:
        headers["Retry-After"] = str(retry_after_s)
    return json_response(error.status(), error.code, headers)


def json_response(
    body: Json, code: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Give a JSON answer."""
    return encoded_response(json.dumps(body, separators=(",", ":")).encode(), code, headers)


def encoded_response(
    body: bytes, code: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Give an answer whose JSON text is there already."""
    return web.Response(
        body=body,
        status=code,
        headers={"Cache-Control": "no-cache, private", **(headers or {})},
        content_type="application/json",
    )
