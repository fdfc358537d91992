"""Answers that go on for a while: watches, and logs that are followed."""

from typing import TYPE_CHECKING

from aiohttp import ClientPayloadError, web

from pytest_cre.embedded.answers import open_stream
from pytest_cre.embedded.kinds import Kind
from pytest_cre.embedded.listing import parse_version
from pytest_cre.embedded.options import boolean, check_list_options, integer
from pytest_cre.embedded.podlog import locate_log, open_log
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.selecting import Selection
from pytest_cre.embedded.status import ApiError
from pytest_cre.embedded.store import Key
from pytest_cre.embedded.views import view_of
from pytest_cre.embedded.watching import Watch, WatchOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import ClientSession

_DEFAULT_WATCH_S = 3600


async def answer_watch(
    request: web.BaseRequest,
    registry: Registry,
    kind: Kind,
    selection: Selection,
    bookmark_interval_s: float,
) -> web.StreamResponse:
    """Tell what happens to a selection of a kind, until the time is up or the client is gone."""
    query = request.query
    check_list_options(query, is_watch=True)
    options = WatchOptions(
        after_version=_watch_version(query.get("resourceVersion", "")),
        with_initial_events=boolean(query, "sendInitialEvents"),
        with_bookmarks=boolean(query, "allowWatchBookmarks"),
        timeout_s=integer(query, "timeoutSeconds") or _DEFAULT_WATCH_S,
        bookmark_interval_s=bookmark_interval_s,
    )
    view = view_of(request.headers.get("Accept", ""), query)
    watch = Watch(registry.store, kind, selection, options)
    watch.open()
    try:
        response = await open_stream(
            request,
            {"Content-Type": "application/json", "Cache-Control": "no-cache, private"},
        )
        is_first = True
        async for events in watch.batches():
            if view.is_plain:
                await response.write(b"".join(event.line for event in events))
            else:
                now = registry.now()
                for event in events:
                    await response.write(view.event_line(kind, event, now, is_first))
                    is_first = False
    finally:
        watch.close()
    await response.write_eof()
    return response


async def answer_log(
    request: web.BaseRequest,
    registry: Registry,
    key: Key,
    kubelet_session: "Callable[[], ClientSession]",
) -> web.StreamResponse:
    """Pass on a container's log from its kubelet as it comes."""
    source = locate_log(registry, *key, request.query)
    if source.url is None:
        return web.Response(status=204)
    upstream = await open_log(kubelet_session(), source)
    async with upstream:
        response = await open_stream(request, {"Content-Type": "text/plain"})
        try:
            async for chunk in upstream.content.iter_any():
                await response.write(chunk)
        except ClientPayloadError:  # the kubelet broke off, so this ends in the same way
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError from None
    await response.write_eof()
    return response


def _watch_version(text: str) -> int:
    """Read the version that a watch starts after; one of the future is simply waited for."""
    try:
        return parse_version(text)
    except ValueError as error:
        raise ApiError(500, "", str(error)) from None
