"""Requests through the official client: its configuration, credentials, TLS, proxies and pool.

The client's models, `Watch` and retries are not used: from 35 to 37 the models refused objects that
every server takes, logs came garbled, and method signatures changed. What is used here did not.
"""

import inspect
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_cre.cluster.contact import Contact
from pytest_cre.cluster.kubeconfig import (
    context_namespace,
    kubeconfig_files,
    own_namespace,
    proxy_url,
)
from pytest_cre.errors import ClusterProblem, UsageProblem

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

KUBECONFIG_REMEDY = (
    "give --kubeconfig FILE (--cre-kubeconfig to pytest), or `pytest-cre simulate` makes one"
)
POOL_SIZE = 1024  # one connection per followed log and watch, and some to spare
PIECE_BYTES = 65536
# Silence is noticed by the kernel too: probed after 30 s, dead after 3 unanswered probes.
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 3))

# The client keeps the certificates of all kubeconfigs in one dictionary, which threads must not share.
_loading = threading.Lock()


class Unanswered(ClusterProblem):
    """No answer arrived; whether the request was done is not known."""


class Unusable(ClusterProblem):
    """The server cannot be talked to at all, and trying again would not help."""


class Refused(Exception):
    """An answer that is not 2xx; only the client sees it."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.body = body


class Access:
    """Configuration and connection pool of one cluster. Safe for threads and across forks."""

    def __init__(self, kubeconfig: str | None, context: str | None) -> None:
        self._arguments = (kubeconfig, context)
        self._lock = threading.Lock()
        self.namespace = "default"
        self.reload()
        self.contact = Contact(self.server)

    @property
    def server(self) -> str:
        """Return the URL of the API server."""
        return str(self._configuration.host).rstrip("/")

    @property
    def proxy(self) -> str | None:
        """Return the URL of the proxy in between, if any."""
        return self._configuration.proxy or None

    def reload(self, stale: object = None) -> None:
        """Read the configuration again; not when another thread has replaced `stale` already.

        Raises `UsageProblem` for a configuration that cannot be used.
        """
        with self._lock:
            if stale is None or stale is self._api:
                self._load()

    @property
    def generation(self) -> object:
        """Return a mark of the configuration in use, for `reload`."""
        return self._api

    def _load(self) -> None:
        import kubernetes.client
        import kubernetes.config

        config: Any = kubernetes.config  # not typed in every version
        kubeconfig, context = self._arguments
        configuration: Any = kubernetes.client.Configuration()
        configuration.connection_pool_maxsize = POOL_SIZE
        configuration.retries = False  # ours know deadlines and what may be repeated
        in_pod = kubeconfig is None and context is None and not _has_kubeconfig()
        try:
            if in_pod and "KUBERNETES_SERVICE_HOST" in os.environ:
                config.load_incluster_config(client_configuration=configuration)
                self.namespace = own_namespace()
            else:
                with _loading:
                    _forget_lost_files(config.kube_config)
                    config.load_kube_config(
                        config_file=kubeconfig, context=context, client_configuration=configuration
                    )
                self.namespace = context_namespace(kubeconfig, context)
                # Clients before 37 ignore the kubeconfig's own proxy.
                configuration.proxy = proxy_url(kubeconfig, context) or configuration.proxy
        except Exception as problem:  # noqa: BLE001 - it raises what its YAML and exec parts raise
            words = " ".join(str(problem).split())[:300] or type(problem).__name__
            name = kubeconfig or "of the environment"
            if not kubeconfig_files(kubeconfig):
                words = f"there is no such file; {KUBECONFIG_REMEDY}"
            raise UsageProblem(f"kubeconfig {name} cannot be used: {words}") from None
        if is_loopback(configuration.host):
            configuration.proxy = None
        try:
            self._api: Any = kubernetes.client.ApiClient(configuration)
        except (OSError, ValueError) as problem:
            raise UsageProblem(f"{configuration.host}: TLS or proxy settings: {problem}") from None
        self._rest: Any = self._api.rest_client
        self._rest.pool_manager.connection_pool_kw["socket_options"] = _socket_options()
        self._configuration = configuration
        self._pid = os.getpid()

    def open(
        self,
        method: str,
        url: str,
        *,
        accept: str,
        body: Mapping[str, Any] | None = None,
        timeouts_s: tuple[float, float],
    ) -> "BaseHTTPResponse":
        """Send a request and return the answer unread; `url` is path and query.

        Raises `Refused` for any answer but 2xx, `Unanswered` when there is none, `Unusable` when
        there never will be.
        """
        import kubernetes.client
        import urllib3

        if self._pid != os.getpid():  # two processes must not share a TLS connection
            self.reload()
        with self._lock:
            rest, configuration = self._rest, self._configuration
            # Reading the setting runs the exec plugin or reads the rotated token, so one at a time.
            headers = {
                str(each["key"]): str(each["value"])
                for each in configuration.auth_settings().values()
                if each["in"] == "header" and each["value"]
            }
        headers |= {"Accept": accept, "User-Agent": "pytest-cre"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        more = {} if _is_raw(rest) else {"_preload_content": False}
        try:
            answer = rest.request(
                method,
                f"{configuration.host.rstrip('/')}{url}",
                headers=headers,
                body=body,
                _request_timeout=timeouts_s,
                **more,
            )
        except kubernetes.client.ApiException as refusal:
            if not refusal.status:  # how the client wraps TLS trouble
                raise self._silence(refusal) from None
            raise Refused(refusal.status, refusal.headers or {}, _as_bytes(refusal.body)) from None
        except (urllib3.exceptions.HTTPError, OSError) as problem:
            raise self._silence(problem) from None
        response: BaseHTTPResponse = getattr(answer, "response", answer)
        if not 200 <= response.status <= 299:
            try:
                body_read = response.read(PIECE_BYTES)
            except (urllib3.exceptions.HTTPError, OSError):
                body_read = b""
            finally:
                response.close()
            raise Refused(response.status, response.headers, body_read)
        return response

    def _silence(self, problem: Exception) -> ClusterProblem:
        words = transport_words(problem)
        via = f" via proxy {self.proxy}" if self.proxy else ""
        if "No such file" in words:  # a cleaner of temporary files took the certificates
            self.reload(self._api)
            return Unanswered(f"{self.server}{via}: {words}")
        kind = Unusable if "certificate" in words.lower() else Unanswered
        return kind(f"{self.server}{via}: {words}")


def pieces(response: "BaseHTTPResponse") -> Iterator[bytes]:
    """Yield the body as it arrives, whatever the framing."""
    if getattr(response, "chunked", False) or not hasattr(response, "read1"):
        yield from response.stream(PIECE_BYTES)
        return
    while piece := response.read1(PIECE_BYTES):
        yield piece


def cut(response: "BaseHTTPResponse") -> None:
    """End a stream that another thread is reading; that thread sees it end or fail."""
    connection = getattr(response, "_connection", None)
    sock = getattr(connection, "sock", None)
    if sock is None:
        return
    try:
        # Below TLS: closing it in an orderly way would wait for the lock of the reading thread.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        return  # it has ended by itself


def stream_errors() -> tuple[type[Exception], ...]:
    """Return what reading a body raises when it breaks, or when it is cut from another thread."""
    import urllib3

    return (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError)


def transport_words(problem: Exception) -> str:
    """Return in a few words why there was no answer."""
    cause = getattr(problem, "reason", None) or problem
    text = " ".join(str(cause).split())
    if "CERTIFICATE_VERIFY_FAILED" in text:
        if "Missing Authority Key Identifier" in text or "key usage" in text:
            return (
                "its CA certificate lacks extensions that Python 3.13 and later demand, "
                f"though kubectl takes it: {text[:200]}"
            )
        return f"its certificate is not trusted: {text[:200]}"
    for words in ("Connection refused", "timed out", "Name or service not known"):
        if words in text:
            return f"does not answer: {words}"
    return f"does not answer: {text[:200] or type(problem).__name__}"


def is_loopback(host: str | None) -> bool:
    """Return whether a URL is on this machine."""
    name = urlsplit(host or "").hostname or ""
    return name in ("localhost", "::1") or name.startswith("127.")


def _is_raw(rest: Any) -> bool:
    """Return whether this client's request function always leaves the body to the caller."""
    return "_preload_content" not in inspect.signature(rest.request).parameters


def _as_bytes(body: object) -> bytes:
    return body if isinstance(body, bytes) else str(body or "").encode()


def _has_kubeconfig() -> bool:
    return bool(os.environ.get("KUBECONFIG")) or Path("~/.kube/config").expanduser().is_file()


def _forget_lost_files(module: Any) -> None:
    """Make the client write inline certificates again where their files have vanished."""
    known = getattr(module, "_temp_files", None)
    if isinstance(known, dict):
        for content in [each for each, name in known.items() if not Path(name).exists()]:
            del known[content]


def _socket_options() -> list[tuple[int, int, int]]:
    from urllib3.connection import HTTPConnection

    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return [*HTTPConnection.default_socket_options, *options]
