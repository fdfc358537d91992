"""The HTTP front: what is asked, and the answer as genuine servers give it."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from aiohttp import web

from pytest_cre.embedded import bodies
from pytest_cre.embedded.answers import encoded_response, json_response
from pytest_cre.embedded.deletion import DeleteOptions
from pytest_cre.embedded.discovery import discover, version_info
from pytest_cre.embedded.kinds import JOB, Json
from pytest_cre.embedded.listing import Lister, parse_version
from pytest_cre.embedded.paths import Address, parse_path
from pytest_cre.embedded.podactions import bind_by_request, evict_pod
from pytest_cre.embedded.podlog import locate_log, open_log
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.reviews import answer_review
from pytest_cre.embedded.selecting import Selection, parse_selection
from pytest_cre.embedded.status import (
    ApiError,
    forbidden_value,
    invalid_options,
    no_such_resource,
    resource_details,
    success,
)
from pytest_cre.embedded.store import Record
from pytest_cre.embedded.views import view_of
from pytest_cre.embedded.watching import Watch, WatchOptions

if TYPE_CHECKING:
    from aiohttp import ClientSession

_DEFAULT_WATCH_S = 3600
_ORPHANED_PODS_WARNING = (
    '299 - "child pods are preserved by default when jobs are deleted; set '
    "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
    'this warning"'
)


class ApiFront:
    """Turns requests into calls of the registry."""

    def __init__(
        self,
        registry: Registry,
        lister: Lister,
        *,
        kubelet_session: Callable[[], "ClientSession"],
        bookmark_interval_s: float,
        user: str,
    ) -> None:
        self._registry = registry
        self._lister = lister
        self._kubelet_session = kubelet_session
        self._bookmark_interval_s = bookmark_interval_s
        self._user = user

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; raises ApiError."""
        path = request.path
        if path in ("/version", "/version/"):
            return json_response(version_info())
        if path in ("/healthz", "/livez", "/readyz"):
            return web.Response(text="ok")
        address = parse_path(path)
        if address is not None:
            return await self._resource(request, address)
        if request.method == "POST":
            review = answer_review(path, await self._object(request, "Review"), self._user)
            if review is not None:
                return json_response(review, 201)
        document = discover(path, request.host)
        if document is not None:
            if request.method != "GET":
                raise _method_not_allowed()
            return json_response(document)
        if path.startswith(("/api/v1/", "/apis/batch/v1/", "/apis/coordination.k8s.io/v1/")):
            raise no_such_resource()
        return web.Response(text="404 page not found\n", status=404)

    async def _resource(self, request: web.BaseRequest, address: Address) -> web.StreamResponse:
        if address.subresource in ("binding", "eviction", "log"):
            return await self._pod_action(request, address)
        match request.method, bool(address.name):
            case "GET", True if not bodies.boolean(request.query, "watch"):
                record = self._registry.get(address.kind, address.namespace, address.name)
                return self._one(request, record)
            case "GET", _:
                if bodies.boolean(request.query, "watch"):
                    return await self._watch(request, address)
                return self._list(request, address)
            case "POST", False:
                return await self._create(request, address)
            case "PUT", True:
                return await self._replace(request, address)
            case "PATCH", True:
                return await self._patch(request, address)
            case "DELETE", True if not address.subresource:
                return await self._delete(request, address)
            case "DELETE", False if _can_delete_collection(address):
                return await self._delete_collection(request, address)
            case _:
                raise _method_not_allowed()

    def _one(self, request: web.BaseRequest, record: Record, code: int = 200) -> web.Response:
        view = view_of(request.headers.get("Accept", ""), request.query)
        if view.is_plain:
            return encoded_response(record.encoded_alone, code)
        return json_response(view.one(record, self._registry.now()), code)

    def _list(self, request: web.BaseRequest, address: Address) -> web.Response:
        query = request.query
        page = self._lister.page(
            address.kind,
            _selection(address, query),
            limit=max(bodies.integer(query, "limit"), 0),
            continue_token=query.get("continue", ""),
            resource_version=query.get("resourceVersion", ""),
        )
        view = view_of(request.headers.get("Accept", ""), query)
        if view.is_plain:
            return encoded_response(page.encoded())
        return json_response(
            view.many(address.kind, page.records, page.metadata(), self._registry.now())
        )

    async def _watch(self, request: web.BaseRequest, address: Address) -> web.StreamResponse:
        query = request.query
        version = _watch_version(query.get("resourceVersion", ""))
        with_initial_events = bodies.boolean(query, "sendInitialEvents")
        if with_initial_events and query.get("resourceVersionMatch") != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise invalid_options("ListOptions", forbidden_value("resourceVersionMatch", text))
        options = WatchOptions(
            after_version=version,
            with_initial_events=with_initial_events,
            with_bookmarks=bodies.boolean(query, "allowWatchBookmarks"),
            timeout_s=bodies.integer(query, "timeoutSeconds") or _DEFAULT_WATCH_S,
            bookmark_interval_s=self._bookmark_interval_s,
        )
        view = view_of(request.headers.get("Accept", ""), query)
        watch = Watch(
            self._registry.store, address.kind, _selection(address, query, address.name), options
        )
        watch.open()
        try:
            response = web.StreamResponse(
                headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
            )
            response.enable_chunked_encoding()
            await response.prepare(request)
            is_first = True
            async for events in watch.batches():
                if view.is_plain:
                    await response.write(b"".join(event.line for event in events))
                else:
                    now = self._registry.now()
                    for event in events:
                        await response.write(view.event_line(address.kind, event, now, is_first))
                        is_first = False
        finally:
            watch.close()
        await response.write_eof()
        return response

    async def _create(self, request: web.BaseRequest, address: Address) -> web.Response:
        if address.kind.namespaced and not address.namespace:
            raise _method_not_allowed()
        record = self._registry.create(
            address.kind,
            address.namespace,
            await self._object(request, address.kind.kind),
            dry_run=bodies.is_dry_run(request.query),
        )
        return self._one(request, record, 201)

    async def _replace(self, request: web.BaseRequest, address: Address) -> web.Response:
        obj = await self._object(request, address.kind.kind)
        registry, kind = self._registry, address.kind
        key = (address.namespace, address.name)
        dry_run = bodies.is_dry_run(request.query)
        if (
            kind.creates_on_replace
            and not address.subresource
            and not registry.store.get(kind, key)
        ):
            metadata = obj.get("metadata")
            if isinstance(metadata, dict):
                metadata.pop("resourceVersion", None)
                metadata.setdefault("name", address.name)
            record = registry.create(kind, address.namespace, obj, dry_run=dry_run)
            return self._one(request, record, 201)
        record = registry.update(
            kind,
            address.namespace,
            address.name,
            obj,
            subresource=address.subresource,
            dry_run=dry_run,
        )
        return self._one(request, record)

    async def _patch(self, request: web.BaseRequest, address: Address) -> web.Response:
        data = await _read_body(request)
        old = self._registry.get(address.kind, address.namespace, address.name)
        target = {"kind": address.kind.kind, "apiVersion": address.kind.api_version, **old.copy()}
        obj = bodies.apply_patch(target, data, request.content_type)
        record = self._registry.update(
            address.kind,
            address.namespace,
            address.name,
            obj,
            subresource=address.subresource,
            dry_run=bodies.is_dry_run(request.query),
        )
        return self._one(request, record)

    async def _delete(self, request: web.BaseRequest, address: Address) -> web.Response:
        options = await self._delete_options(request)
        kind = address.kind
        deletion = self._registry.delete(kind, address.namespace, address.name, options)
        headers = {}
        if kind is JOB and options.propagation is None:
            headers["Warning"] = _ORPHANED_PODS_WARNING
        if deletion.is_gone and not kind.returns_deleted:
            uid = deletion.record.uid
            details = resource_details(kind, address.name, uid=uid)
            return json_response(success(details), 200, headers)
        return encoded_response(deletion.record.encoded_alone, 200, headers)

    async def _delete_collection(self, request: web.BaseRequest, address: Address) -> web.Response:
        options = await self._delete_options(request)
        selection = _selection(address, request.query)
        page = self._lister.page(
            address.kind, selection, limit=0, continue_token="", resource_version=""
        )
        for record in page.records:
            namespace, name = record.key
            self._registry.delete(address.kind, namespace, name, options)
        return encoded_response(page.encoded())

    async def _pod_action(self, request: web.BaseRequest, address: Address) -> web.StreamResponse:
        namespace, name = address.namespace, address.name
        match request.method, address.subresource:
            case "GET", "log":
                return await self._log(request, namespace, name)
            case "POST", "binding":
                binding = await self._object(request, "Binding")
                bind_by_request(self._registry, namespace, name, binding)
            case "POST", "eviction":
                body = await self._object(request, "Eviction")
                options = body.get("deleteOptions") or {}
                evict_pod(
                    self._registry,
                    namespace,
                    name,
                    bodies.parse_delete_options(
                        json.dumps(options).encode(), "application/json", request.query
                    ),
                )
            case _:
                raise _method_not_allowed()
        return json_response(success(code=201), 201)

    async def _log(self, request: web.BaseRequest, namespace: str, name: str) -> web.StreamResponse:
        source = locate_log(self._registry, namespace, name, request.query)
        if source.url is None:
            return web.Response(status=204)
        upstream = await open_log(self._kubelet_session(), source)
        async with upstream:
            response = web.StreamResponse(headers={"Content-Type": "text/plain"})
            response.enable_chunked_encoding()
            await response.prepare(request)
            async for chunk in upstream.content.iter_any():
                await response.write(chunk)
        await response.write_eof()
        return response

    async def _object(self, request: web.BaseRequest, kind_name: str) -> Json:
        data = await _read_body(request)
        content_type = request.content_type if "Content-Type" in request.headers else ""
        return bodies.parse_object(data, content_type, kind_name)

    async def _delete_options(self, request: web.BaseRequest) -> DeleteOptions:
        data = await _read_body(request)
        content_type = request.content_type if "Content-Type" in request.headers else ""
        return bodies.parse_delete_options(data, content_type, request.query)


def _watch_version(text: str) -> int:
    """Read the version that a watch starts after; one of the future is simply waited for."""
    try:
        return parse_version(text)
    except ValueError as error:
        raise ApiError(500, "", str(error)) from None


def _selection(address: Address, query: Mapping[str, str], name: str = "") -> Selection:
    return parse_selection(
        address.kind,
        address.namespace,
        query.get("labelSelector", ""),
        query.get("fieldSelector", ""),
        name,
    )


async def _read_body(request: web.BaseRequest) -> bytes:
    data = bytearray()
    async for chunk in request.content.iter_any():
        data += chunk
        if len(data) > bodies.BODY_LIMIT_BYTES:
            raise ApiError(
                413,
                "RequestEntityTooLarge",
                f"Request entity too large: limit is {bodies.BODY_LIMIT_BYTES}",
            )
    return bytes(data)


def _can_delete_collection(address: Address) -> bool:
    kind = address.kind
    return kind.has_collection_delete and kind.namespaced == bool(address.namespace)


def _method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})
