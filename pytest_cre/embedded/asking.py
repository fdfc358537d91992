"""What a request asks for: its body, and the form in which the answer may come."""

import json
from typing import Literal

from aiohttp import web

from pytest_cre.embedded.bodies import BODY_LIMIT_BYTES, Body, parse_object
from pytest_cre.embedded.deletion import DeleteOptions
from pytest_cre.embedded.kinds import DELETE_OPTIONS, Json, Kind
from pytest_cre.embedded.options import Strictness, delete_options
from pytest_cre.embedded.status import ApiError, bad_request

Encoding = Literal["json", "yaml"]
_REPRESENTATIONS = "application/json, application/yaml"


async def read_body(request: web.BaseRequest) -> bytes:
    """Read a request's body; raises 413 for one that is too large."""
    data = bytearray()
    async for chunk in request.content.iter_any():
        data += chunk
        if len(data) > BODY_LIMIT_BYTES:
            raise ApiError(
                413,
                "RequestEntityTooLarge",
                f"Request entity too large: limit is {BODY_LIMIT_BYTES}",
            )
    return bytes(data)


async def read_object(request: web.BaseRequest, kind: Kind, strictness: Strictness) -> Body:
    """Read and decode the object that a request carries."""
    content_type = request.content_type if "Content-Type" in request.headers else ""
    return parse_object(await read_body(request), content_type, kind, strictness)


async def read_delete_options(request: web.BaseRequest) -> DeleteOptions:
    """Read how something is to be deleted, from body and query."""
    data = await read_body(request)
    body: Json = {}
    if data.strip():
        content_type = request.content_type if "Content-Type" in request.headers else ""
        _check_options_kind(data, content_type)
        try:
            body = parse_object(data, content_type, DELETE_OPTIONS, "Ignore").obj
        except ApiError as error:
            # Of these options the decoder's own words are passed on alone.
            _start, found, words = error.message.partition("cannot be handled as a DeleteOptions: ")
            raise bad_request(words) if found else error from None
    return delete_options(body, request.query)


def _check_options_kind(data: bytes, content_type: str) -> None:
    if content_type not in ("", "application/json"):
        return
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(found, dict) and found.get("kind") not in (None, "", "DeleteOptions"):
        raise bad_request(
            f'no kind "{found["kind"]}" is registered for version '
            f'"{found.get("apiVersion", "")}" in scheme "pkg/runtime/scheme.go:111"'
        )


def wanted_encoding(accept: str) -> Encoding | None:
    """Give the encoding that an Accept header allows, None where it allows none of ours."""
    for media_type in accept.split(","):
        name = media_type.partition(";")[0].strip()
        if name in ("", "*/*", "application/*", "application/json"):
            return "json"
        if name == "application/yaml":
            return "yaml"
    return None


def check_acceptable(request: web.BaseRequest, *, is_log: bool) -> Encoding:
    """Give the encoding of the answer; raises 406 where there is none that would do."""
    encoding = wanted_encoding(request.headers.get("Accept", ""))
    if encoding is not None:
        return encoding
    if is_log:
        text = f"only the following media types are accepted: {_REPRESENTATIONS}"
        raise ApiError(406, "NotAcceptable", text)
    text = f"406: Not Acceptable\n\nAvailable representations: {_REPRESENTATIONS}"
    raise ApiError(406, "NotAcceptable", text, {})
