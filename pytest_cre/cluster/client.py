"""Kubernetes over raw JSON: plain dicts in and out, every request bounded."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_cre.cluster.contact import Silence
from pytest_cre.cluster.exchange import (
    ApiProblem,
    Conflict,
    Exchange,
    Request,
)
from pytest_cre.cluster.objects import (
    EVERY_CLUSTER,
    JOB,
    JOB_SET,
    MPI_JOB,
    POD,
    TRAIN_JOB,
    ResourceKind,
    entries,
    kind_of,
    metadata_of,
    part,
)
from pytest_cre.cluster.retry import RetryPolicy
from pytest_cre.cluster.transport import Access, Unanswered
from pytest_cre.errors import ClusterProblem

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

    from pytest_cre.catalog.entry import WorkloadKind

__all__ = ["ApiProblem", "Client", "Conflict", "Listing", "connect"]

RUN_LABEL = "cre.pytest.org/run"
PREFLIGHT_BUDGET_S = 3.0
PAGE_SIZE = 500
# Otherwise fields that the API server does not know are dropped, and pods lack what was asked for.
_STRICT = {"fieldValidation": "Strict"}
_WORKLOADS: "Mapping[WorkloadKind, ResourceKind]" = {
    "indexedJob": JOB,
    "jobSet": JOB_SET,
    "mpiJob": MPI_JOB,
    "trainJob": TRAIN_JOB,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One page of a list, or a whole one, with the version to watch from."""

    items: tuple[dict[str, Any], ...]
    resource_version: str


def connect(
    *,
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    retry: RetryPolicy | None = None,
) -> "Client":
    """Return a client for the kubeconfig's cluster, or for the one this process runs in.

    The namespace is the one given, else the context's, else `default`. Contacts nothing. Raises
    `UsageProblem` for a kubeconfig that cannot be used.
    """
    return Client(Access(kubeconfig, context), namespace=namespace, retry=retry or RetryPolicy())


class Client:
    """One cluster. Safe for threads. Raises `ApiProblem` for refusals, else `ClusterProblem`."""

    def __init__(self, access: Access, *, namespace: str | None, retry: RetryPolicy) -> None:
        self._access = access
        self._exchange = Exchange(access, retry)
        self.retry = retry
        self.namespace = namespace or access.namespace

    @property
    def server(self) -> str:
        """Return the URL of the API server."""
        return self._access.server

    @property
    def silence(self) -> Silence | None:
        """Return how long no request of anybody has been answered; None when none waits."""
        return self._access.contact.silence

    @property
    def proxy(self) -> str | None:
        """Return the URL of the proxy on the way to the server, if any."""
        return self._access.proxy

    def with_retry(self, retry: RetryPolicy) -> "Client":
        """Return the same client with another patience."""
        return Client(self._access, namespace=self.namespace, retry=retry)

    # What the server is

    def preflight(self) -> str:
        """Return the server's version; raises within seconds where there is no server."""
        brief = replace(self.retry, budget_s=PREFLIGHT_BUDGET_S, first_pause_s=0.5)
        return self.with_retry(brief).version()

    def version(self) -> str:
        """Return the version of the server, such as `v1.37.2`."""
        request = Request(method="GET", path="/version", words="get version")
        return str(self._exchange.json(request).get("gitVersion") or "unknown")

    def served_workloads(self) -> "frozenset[WorkloadKind]":
        """Return the workload kinds that the cluster serves."""
        return frozenset(name for name, kind in _WORKLOADS.items() if self.serves(kind))

    def serves(self, kind: ResourceKind) -> bool:
        """Return whether the cluster serves a kind at the version that we speak."""
        request = Request(
            method="GET",
            path=kind.api_path,
            words=f"get {kind.api_version}",
            may_be_unserved=True,
        )
        try:
            found = self._exchange.json(request)
        except ApiProblem as problem:
            if problem.status in (403, 404):
                return False
            raise
        return any(each.get("name") == kind.plural for each in entries(found, "resources"))

    def can_i(
        self, verb: str, kind: ResourceKind, *, subresource: str = "", all_namespaces: bool = False
    ) -> bool:
        """Return whether our credentials allow the verb on the kind, in the client's namespace."""
        asked = {
            "verb": verb,
            "group": kind.group,
            "version": kind.version,
            "resource": kind.plural,
            "subresource": subresource,
        }
        if kind.is_namespaced and not all_namespaces:
            asked["namespace"] = self.namespace
        request = Request(
            method="POST",
            path="/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            words="create selfsubjectaccessreviews",
            may_be_unserved=True,
            body={
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": asked},
            },
        )
        return part(self._exchange.json(request), "status").get("allowed") is True

    # Reading

    def get(
        self, kind: ResourceKind, name: str, namespace: str | None = None
    ) -> dict[str, Any] | None:
        """Return an object, or None when there is none of this name."""
        try:
            return self._exchange.json(self._request("get", "GET", kind, name, namespace))
        except ApiProblem as problem:
            if problem.is_missing:
                return None
            raise

    def pages(
        self,
        kind: ResourceKind,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE_SIZE,
        is_served: bool = False,
    ) -> Iterator[Listing]:
        """Yield a list page by page; `ApiProblem` 410 when the server forgot where it was.

        Of a kind that a cluster may lack a 404 is the answer, unless it `is_served` for certain.
        """
        query = {"limit": str(limit)}
        if label_selector:
            query["labelSelector"] = label_selector
        if field_selector:
            query["fieldSelector"] = field_selector
        request = self._request("list", "GET", kind, None, namespace)
        is_served = is_served or kind.group in EVERY_CLUSTER
        request = replace(request, may_be_unserved=not is_served)
        if all_namespaces:
            where = " of all namespaces" if kind.is_namespaced else ""
            request = replace(request, path=kind.path(), words=f"list {kind.plural}{where}")
        token = ""
        while True:
            asked = {**query, **({"continue": token} if token else {})}
            page = self._exchange.json(replace(request, query=asked))
            metadata = metadata_of(page)
            yield Listing(
                items=tuple(each for each in entries(page, "items") if isinstance(each, dict)),
                resource_version=str(metadata.get("resourceVersion") or ""),
            )
            following = str(metadata.get("continue") or "")
            if not following:
                return
            if following == token:
                raise ClusterProblem(f"{self.server}: {request.words}: the server repeats a page")
            token = following

    def list(
        self,
        kind: ResourceKind,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE_SIZE,
        slim: Callable[[dict[str, Any]], dict[str, Any]] = lambda item: item,
        is_served: bool = False,
    ) -> Listing:
        """Return a whole list, as of one moment; starts over when the server forgot that moment.

        `slim` makes each item smaller before the next page is read.
        """
        for _ in range(3):
            items: tuple[dict[str, Any], ...] = ()
            version = ""
            try:
                for page in self.pages(
                    kind,
                    namespace=namespace,
                    all_namespaces=all_namespaces,
                    label_selector=label_selector,
                    field_selector=field_selector,
                    limit=limit,
                    is_served=is_served,
                ):
                    items += tuple(map(slim, page.items))
                    version = page.resource_version
            except ApiProblem as problem:
                if problem.status != 410:
                    raise
                continue
            return Listing(items=items, resource_version=version)
        raise ClusterProblem(f"{self.server}: list {kind.plural}: it expired three times")

    # Writing

    def create_or_adopt(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object, or take the one that a request whose answer was lost has created.

        Names are deterministic, so an object of this name with our run label is ours. A field that
        the API server does not know is refused, not dropped. Raises `Conflict` when the name belongs
        to somebody else, or its object is being deleted.
        """
        kind, metadata = kind_of(manifest), metadata_of(manifest)
        name, namespace = str(metadata["name"]), str(metadata.get("namespace") or self.namespace)
        request = self._request("create", "POST", kind, None, namespace, body=manifest)
        request = replace(request, words=f"create {kind.plural} {namespace}/{name}", query=_STRICT)

        def attempt() -> dict[str, Any]:
            try:
                return self._exchange.once(request)
            except ApiProblem as problem:
                if problem.status != 409:
                    raise
                found = self.get(kind, name, namespace)
                if found is None:  # gone since
                    raise Unanswered(str(problem)) from None
                return self._adopt(request, manifest, found)
            except Unanswered:
                # It may have been done: look before it is tried again.
                found = self.get(kind, name, namespace)
                if found is None:
                    raise
                return self._adopt(request, manifest, found)

        return self._exchange.persist(attempt)

    def _adopt(
        self, request: Request, manifest: Mapping[str, Any], found: dict[str, Any]
    ) -> dict[str, Any]:
        ours = part(metadata_of(manifest), "labels").get(RUN_LABEL)
        theirs = part(metadata_of(found), "labels").get(RUN_LABEL)
        is_dying = bool(metadata_of(found).get("deletionTimestamp"))
        if ours is not None and ours == theirs and not is_dying:
            return found
        owner = f"run {theirs}" if theirs else "somebody else"
        state = "is still being deleted" if ours == theirs else f"exists and belongs to {owner}"
        raise Conflict(
            f"{self.server}: {request.words}: the object {state}",
            status=409,
            reason="AlreadyExists",
        )

    def replace(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Replace an object at the version it was read; raises `Conflict` when it has changed."""
        kind, metadata = kind_of(manifest), metadata_of(manifest)
        return self._exchange.json(
            self._request(
                "update",
                "PUT",
                kind,
                str(metadata["name"]),
                str(metadata.get("namespace") or "") or None,
                body=manifest,
            )
        )

    def delete(
        self,
        kind: ResourceKind,
        name: str,
        *,
        uid: str,
        namespace: str | None = None,
        grace_period_s: int | None = None,
    ) -> bool:
        """Delete the object of this UID and, in the background, all it owns.

        True when it goes or is gone; False when it changed so often that the server would not
        delete it. A namesake with another UID is never touched.
        """
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        query = {"propagationPolicy": "Background"}
        if grace_period_s is not None:
            options["gracePeriodSeconds"] = grace_period_s
            query["gracePeriodSeconds"] = str(grace_period_s)
        request = self._request("delete", "DELETE", kind, name, namespace, body=options)
        for _ in range(3):
            try:
                self._exchange.json(replace(request, query=query))
            except ApiProblem as problem:
                if problem.is_missing:
                    return True
                if problem.status != 409:
                    raise
                found = self.get(kind, name, namespace)
                if found is None or metadata_of(found).get("uid") != uid:
                    return True
                continue
            return True
        return False

    # Streams

    @contextmanager
    def open_log(
        self,
        pod: str,
        container: str,
        *,
        follow: bool,
        since_time: str | None = None,
        since_seconds: int | None = None,
        timestamps: bool = True,
        previous: bool = False,
        limit_bytes: int | None = None,
        read_timeout_s: float = 30.0,
    ) -> "Iterator[BaseHTTPResponse]":
        """Open a container's log; read it with `transport.pieces`.

        Raises `ApiProblem` for a refusal and `ClusterProblem` where nothing answers; while it is
        read a lost connection raises what urllib3 raises.
        """
        query = {
            "container": container,
            "follow": follow,
            "sinceTime": since_time,
            "sinceSeconds": since_seconds,
            "timestamps": timestamps,
            "previous": previous,
            "limitBytes": limit_bytes,
        }
        request = self._request("get", "GET", POD, pod, None)
        request = replace(
            request,
            path=f"{request.path}/log",
            words=f"get pods/log {self.namespace}/{pod}",
            query=_texts(query),
        )
        with self._exchange.stream(request, "*/*", read_timeout_s) as response:
            yield response

    @contextmanager
    def open_watch(
        self,
        kind: ResourceKind,
        *,
        resource_version: str,
        timeout_s: int,
        read_timeout_s: float,
        all_namespaces: bool = False,
        label_selector: str = "",
        field_selector: str = "",
    ) -> "Iterator[BaseHTTPResponse]":
        """Open a watch, one JSON document a line, with bookmarks; raises as `open_log` does."""
        query = {
            "watch": True,
            "allowWatchBookmarks": True,
            "resourceVersion": resource_version,
            "timeoutSeconds": timeout_s,
            "labelSelector": label_selector or None,
            "fieldSelector": field_selector or None,
        }
        request = self._request("watch", "GET", kind, None, None)
        if all_namespaces:
            request = replace(request, path=kind.path(), words=f"watch {kind.plural}")
        with self._exchange.stream(
            replace(request, query=_texts(query)), "application/json", read_timeout_s
        ) as response:
            yield response

    # One request

    def _request(
        self,
        verb: str,
        method: str,
        kind: ResourceKind,
        name: str | None,
        namespace: str | None,
        body: Mapping[str, Any] | None = None,
    ) -> Request:
        where = (namespace or self.namespace) if kind.is_namespaced else None
        words = f"{verb} {kind.plural}"
        if name is not None:
            words += f" {where}/{name}" if where else f" {name}"
        elif where:
            words += f" in {where}"
        return Request(method=method, path=kind.path(where, name), words=words, body=body)


def _texts(query: Mapping[str, object]) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in query.items()
        if value is not None and value is not False
    }
