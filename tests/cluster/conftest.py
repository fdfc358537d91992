"""A scripted API server: each test says how it answers, and how it fails."""

import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from pytest_cre.cluster.client import Client, connect
from pytest_cre.cluster.local import start_process
from pytest_cre.cluster.retry import RetryPolicy

TOKEN = "first-token"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the server was asked."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    time_s: float


class Reply:
    """How to answer. One of these calls per request."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self._handler = handler

    def json(self, body: Any, status: int = 200, **headers: str) -> None:
        self.data(json.dumps(body).encode(), status, **headers)

    def data(self, body: bytes, status: int = 200, **headers: str) -> None:
        self._start(status, {"Content-Length": str(len(body)), **headers})
        self._handler.wfile.write(body)

    def refuse(self, status: int, reason: str, message: str = "", **headers: str) -> None:
        body = {"kind": "Status", "status": "Failure", "code": status, "reason": reason}
        if (status, reason) == (404, "NotFound"):  # genuine servers name the object
            body["details"] = {"name": urlsplit(self._handler.path).path.split("/")[-1]}
        self.json(body | {"message": message or reason.lower()}, status, **headers)

    def chunks(self, chunks: Iterable[bytes | float], *, is_ended: bool = True) -> None:
        """Write chunks; a number sleeps that long; without an end the connection just closes."""
        self._start(200, {"Transfer-Encoding": "chunked"})
        for chunk in chunks:
            if isinstance(chunk, float):
                time.sleep(chunk)
            elif chunk:
                self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        if is_ended:
            self._handler.wfile.write(b"0\r\n\r\n")
        else:
            self._handler.close_connection = True

    def drop(self) -> None:
        """Close without an answer."""
        self._handler.close_connection = True
        self._handler.connection.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """Reset the connection, in the middle of whatever was written."""
        self._handler.wfile.flush()
        sock = self._handler.connection
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._handler.close_connection = True
        sock.close()

    def _start(self, status: int, headers: dict[str, str]) -> None:
        self._handler.send_response(status)
        self._handler.send_header("Content-Type", "application/json")
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-"), value)
        self._handler.end_headers()


Answer = Callable[[Request, Reply], None]


@dataclass(kw_only=True)
class ScriptedServer:
    """A running server and what it was asked."""

    url: str
    kubeconfig: Path
    requests: list[Request] = field(default_factory=list)
    tokens: set[str] = field(default_factory=lambda: {TOKEN})

    def client(self, retry: RetryPolicy | None = None) -> Client:
        return connect(
            kubeconfig=str(self.kubeconfig), context=None, namespace=None, retry=retry or quick()
        )


def write_kubeconfig(path: Path, url: str, token: str = TOKEN, **cluster: str) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url, **cluster}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(config))
    return path


def quick(budget_s: float = 5.0) -> RetryPolicy:
    """Return a patience with pauses of milliseconds."""
    return RetryPolicy(budget_s=budget_s, first_pause_s=0.005, longest_pause_s=0.02)


@pytest.fixture(name="quick")
def _quick() -> Callable[..., RetryPolicy]:
    return quick


@pytest.fixture(name="write_kubeconfig")
def _write_kubeconfig() -> Callable[..., Path]:
    return write_kubeconfig


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[Answer], ScriptedServer]]:
    """Start a server that gives each request to a function of the test."""
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Answer) -> ScriptedServer:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_one(self) -> None:
                url = urlsplit(self.path)
                length = int(self.headers.get("Content-Length") or 0)
                data = self.rfile.read(length)
                request = Request(
                    method=self.command,
                    path=url.path,
                    query=dict(parse_qsl(url.query)),
                    headers={name.lower(): value for name, value in self.headers.items()},
                    body=json.loads(data) if data else None,
                    time_s=time.monotonic(),
                )
                scripted.requests.append(request)
                reply = Reply(self)
                token = request.headers.get("authorization", "").removeprefix("Bearer ")
                if token not in scripted.tokens:
                    reply.refuse(401, "Unauthorized", "Unauthorized")
                    return
                try:
                    answer(request, reply)
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_DELETE = handle_one  # noqa: N815

            def log_message(self, *args: object) -> None:
                """Keep quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *args: object) -> None:
                """A reset connection is what tests do."""

        server = Server(("127.0.0.1", 0), Handler)
        servers.append(server)
        url = f"http://127.0.0.1:{server.server_port}"
        kubeconfig = write_kubeconfig(tmp_path / f"kubeconfig-{len(servers)}", url)
        scripted = ScriptedServer(url=url, kubeconfig=kubeconfig)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return scripted

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def embedded_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Serve an embedded cluster without nodes, over TLS."""
    folder = tmp_path_factory.mktemp("embedded")
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "pytest_cre.embedded", "serve", "--no-simulator"]
    command += ["--parent-pipe", "--kubeconfig-out", str(kubeconfig)]
    cluster = start_process(command, kubeconfig, folder / "log", timeout_s=20)
    yield kubeconfig
    cluster.stop()


@contextmanager
def _eventually(timeout_s: float = 5.0) -> Iterator[Callable[[Callable[[], object]], None]]:
    def wait(is_true: Callable[[], object]) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_true():
            assert time.monotonic() < deadline, "it never happened"
            time.sleep(0.005)

    yield wait


@pytest.fixture
def eventually() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Wait until something is true, at most five seconds."""
    with _eventually() as wait:
        yield wait
