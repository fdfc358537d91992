"""The HTTP front: what is asked, and the answer as genuine servers give it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from aiohttp import web

from pytest_cre.embedded.answers import (
    encoded_response,
    json_response,
    with_warnings,
    yaml_response,
)
from pytest_cre.embedded.asking import (
    check_acceptable,
    read_body,
    read_delete_options,
    read_object,
)
from pytest_cre.embedded.bodies import JSON_PATCH, apply_patch, check_patch_type
from pytest_cre.embedded.discovery import discover, is_in_served_version, version_info
from pytest_cre.embedded.kinds import BINDING, EVICTION, JOB
from pytest_cre.embedded.listing import Lister
from pytest_cre.embedded.options import (
    boolean,
    check_list_options,
    delete_options,
    integer,
    write_options,
)
from pytest_cre.embedded.paths import Address, parse_path
from pytest_cre.embedded.podactions import bind_by_request, evict_pod
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.reviews import answer_review, review_kind
from pytest_cre.embedded.status import (
    ApiError,
    bad_request,
    no_such_resource,
    resource_details,
    success,
)
from pytest_cre.embedded.store import Record
from pytest_cre.embedded.streams import answer_log, answer_watch
from pytest_cre.embedded.views import view_of

if TYPE_CHECKING:
    from aiohttp import ClientSession

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
        address = parse_path(path)
        if address is not None:
            is_log = address.subresource == "log"
            encoding = check_acceptable(request, is_log=is_log)
            response = await self._resource(request, address)
            if encoding == "yaml" and not is_log and isinstance(response, web.Response):
                return yaml_response(response)
            return response
        review = review_kind(path)
        if review is not None:
            if request.method != "POST":
                raise _method_not_allowed()
            body = await read_object(request, review, "Ignore")
            answer = answer_review(review, body.obj, self._user, self._registry)
            return json_response(answer, 201)
        return self._about(request, path)

    def _about(self, request: web.BaseRequest, path: str) -> web.Response:
        """Answer what is asked about the server itself."""
        if path in ("/healthz", "/livez", "/readyz"):
            return web.Response(text="ok")
        document = version_info() if path in ("/version", "/version/") else None
        document = document or discover(path, request.host)
        if document is not None:
            if request.method != "GET":
                raise _method_not_allowed()
            return json_response(document)
        if is_in_served_version(path):
            raise no_such_resource()
        return web.Response(text="404 page not found\n", status=404)

    async def _resource(self, request: web.BaseRequest, address: Address) -> web.StreamResponse:
        if address.subresource in ("binding", "eviction", "log"):
            return await self._pod_action(request, address)
        match request.method, bool(address.name):
            case "GET", True:
                record = self._registry.get(address.kind, address.namespace, address.name)
                return self._one(request, record)
            case "GET", _:
                if boolean(request.query, "watch"):
                    return await answer_watch(
                        request,
                        self._registry,
                        address.kind,
                        address.selection(request.query),
                        self._bookmark_interval_s,
                    )
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
        check_list_options(query, is_watch=False)
        page = self._lister.page(
            address.kind,
            address.selection(query),
            limit=max(integer(query, "limit"), 0),
            continue_token=query.get("continue", ""),
            resource_version=query.get("resourceVersion", ""),
        )
        view = view_of(request.headers.get("Accept", ""), query)
        if view.is_plain:
            return encoded_response(page.encoded())
        return json_response(
            view.many(address.kind, page.records, page.metadata(), self._registry.now())
        )

    async def _create(self, request: web.BaseRequest, address: Address) -> web.Response:
        kind = address.kind
        if kind.namespaced and not address.namespace:
            raise _method_not_allowed()
        dry_run, strictness = write_options(request.query, "CreateOptions")
        body = await read_object(request, kind, strictness)
        record = self._registry.create(kind, address.namespace, body.obj, dry_run=dry_run)
        return with_warnings(self._one(request, record, 201), body.warnings)

    async def _replace(self, request: web.BaseRequest, address: Address) -> web.Response:
        registry, kind, namespace = self._registry, address.kind, address.namespace
        dry_run, strictness = write_options(request.query, "UpdateOptions")
        body = await read_object(request, kind, strictness)
        is_new = registry.store.get(kind, (namespace, address.name)) is None
        if kind.creates_on_replace and not address.subresource and is_new:
            metadata = body.obj.setdefault("metadata", {})
            metadata.pop("resourceVersion", None)
            metadata.setdefault("name", address.name)
            record = registry.create(kind, namespace, body.obj, dry_run=dry_run)
            return with_warnings(self._one(request, record, 201), body.warnings)
        record = registry.update(
            kind,
            namespace,
            address.name,
            body.obj,
            subresource=address.subresource,
            dry_run=dry_run,
        )
        return with_warnings(self._one(request, record), body.warnings)

    async def _patch(self, request: web.BaseRequest, address: Address) -> web.Response:
        registry, kind = self._registry, address.kind
        dry_run, strictness = write_options(request.query, "PatchOptions")
        check_patch_type(request.content_type)
        data = await read_body(request)
        old = registry.get(kind, address.namespace, address.name)
        target = {"kind": kind.kind, "apiVersion": kind.api_version, **old.obj}
        if address.subresource == "status" and request.content_type != JSON_PATCH:
            # What a status patch cannot change need not be gone through.
            target.pop("spec", None)
        body = apply_patch(target, data, request.content_type, kind, strictness)
        record = registry.update(
            kind,
            address.namespace,
            address.name,
            body.obj,
            subresource=address.subresource,
            dry_run=dry_run,
            is_patch=True,
        )
        return with_warnings(self._one(request, record), body.warnings)

    async def _delete(self, request: web.BaseRequest, address: Address) -> web.Response:
        options = await read_delete_options(request)
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
        options = await read_delete_options(request)
        selection = address.selection(request.query)
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
                key = (namespace, name)
                return await answer_log(request, self._registry, key, self._kubelet_session)
            case "POST", "binding":
                body = await read_object(request, BINDING, "Ignore")
                bind_by_request(self._registry, namespace, name, body.obj)
            case "POST", "eviction":
                eviction = (await read_object(request, EVICTION, "Ignore")).obj
                if eviction.get("metadata", {}).get("name", name) != name:
                    raise bad_request("name in URL does not match name in Eviction object")
                options = delete_options(eviction.get("deleteOptions") or {}, request.query)
                evict_pod(self._registry, namespace, name, options)
            case _:
                raise _method_not_allowed()
        return json_response(success(code=201), 201)


def _can_delete_collection(address: Address) -> bool:
    kind = address.kind
    return kind.has_collection_delete and kind.namespaced == bool(address.namespace)


def _method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})
