"""The kubelet's own server: container logs over HTTPS, under a certificate of its own."""

import asyncio
import re
import ssl
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pytest_cre.simulator.faults import Action, Fault
from pytest_cre.simulator.logbuffer import LogBuffer, LogOptions
from pytest_cre.simulator.nodeobjects import NODE_ADDRESS

if TYPE_CHECKING:
    from aiohttp import web

    from pytest_cre.simulator.container import Container
    from pytest_cre.simulator.pod import PodRun

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)")
_STOP_S = 0.5
_FEW_BYTES = 2000

FindPod = Callable[[str, str], "PodRun | None"]
IsLost = Callable[[str], bool]


class LogServer:
    """Serves the logs of all simulated nodes at one address."""

    def __init__(self, find_pod: FindPod, is_lost: IsLost) -> None:
        self._find_pod, self._is_lost = find_pod, is_lost
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self) -> None:
        """Listen on a free port."""
        from aiohttp import web

        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        app.router.add_get("/healthz", _healthz)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_STOP_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, NODE_ADDRESS, 0, ssl_context=serving_context())
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening and end every stream."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _logs(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        place = request.match_info
        pod = self._find_pod(place["namespace"], place["pod"])
        if pod is None:
            return web.Response(status=404, text=f'pod "{place["pod"]}" not found\n')
        if self._is_lost(pod.node.name):
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError
        try:
            options = log_options(request.query)
        except ValueError as problem:
            return web.Response(status=400, text=f"{problem}\n")
        container = pod.find(place["container"])
        if container is None:
            words = f'container "{place["container"]}" not found in pod "{pod.name}"\n'
            return web.Response(status=404, text=words)
        log: LogBuffer | None = container.log
        if request.query.get("previous") == "true":
            log = container.previous_log
            if log is None:
                words = f'previous terminated container "{container.name}" in pod "{pod.name}" not found'
                return web.Response(status=400, text=words)
        if log is None:
            reason = container.state.waiting[0]
            words = (
                f'container "{container.name}" in pod "{pod.name}" is waiting to start: {reason}'
            )
            return web.Response(status=400, text=words)
        log.requests += 1
        if refusal := _striking(container, log, "log-refuse"):
            words = refusal.message or "the container runtime does not answer"
            return web.Response(status=refusal.code, text=words)
        return await self._send(request, pod, container, log, options)

    async def _send(
        self,
        request: "web.Request",
        pod: "PodRun",
        container: "Container",
        log: LogBuffer,
        options: LogOptions,
    ) -> "web.StreamResponse":
        from aiohttp import web

        is_reset = _striking(container, log, "log-reset") is not None
        is_cut = is_reset or _striking(container, log, "log-eof") is not None
        left = _share(pod.uid, log) if is_cut else None
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        async for data in log.read(options):
            if self._is_lost(pod.node.name):
                await asyncio.Event().wait()  # an open connection to a lost node is just silent
            await response.write(data[:left])
            left = None if left is None else max(0, left - len(data))
            if left == 0:
                break
        if is_reset and request.transport is not None:
            request.transport.abort()
        await response.write_eof()
        return response


def _striking(container: "Container", log: LogBuffer, action: Action) -> Fault | None:
    """Return the fault of this kind that hits this request for the log, the newest one so far."""
    holding = container.holding(action)
    return next((each for each in holding if not each.reads or log.requests <= each.reads), None)


def _share(pod_uid: str, log: LogBuffer) -> int:
    """Return after how many bytes a reading breaks off: each one elsewhere, the same in each run."""
    digest = blake2b(f"{pod_uid}/{log.requests}".encode(), digest_size=4).digest()
    return 1 + int.from_bytes(digest) * max(log.kept_bytes, _FEW_BYTES) // (1 << 32)


async def _healthz(request: "web.Request") -> "web.Response":  # noqa: ARG001
    from aiohttp import web

    return web.Response(text="ok")


def log_options(query: Mapping[str, str]) -> LogOptions:
    """Return the options of a log request; raises `ValueError` in one line."""
    since_ns = None
    if text := query.get("sinceTime"):
        since_ns = _since_ns(text)
    elif "sinceSeconds" in query:
        since_ns = time.time_ns() - _whole(query, "sinceSeconds", 1) * 1_000_000_000
    return LogOptions(
        is_following=query.get("follow") in ("true", "1"),
        has_timestamps=query.get("timestamps") in ("true", "1"),
        since_ns=since_ns,
        tail_lines=_whole(query, "tailLines", 0) if "tailLines" in query else None,
        limit_bytes=_whole(query, "limitBytes", 1) if "limitBytes" in query else None,
    )


def _whole(query: Mapping[str, str], name: str, lowest: int) -> int:
    text = str(query[name])
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < lowest:
        raise ValueError(f"{name} must be a whole number of at least {lowest}, got {text[:40]!r}")
    return int(text)


def _since_ns(text: str) -> int:
    """Return a time to the second below: API servers pass on no fraction of it."""
    found = _TIME.fullmatch(text)
    if not found:
        raise ValueError(f"sinceTime must be an RFC 3339 time, got {text[:40]!r}")
    moment = datetime.fromisoformat(found[1] + ("+00:00" if found[2] == "Z" else found[2]))
    return int(moment.timestamp()) * 1_000_000_000


def serving_context() -> ssl.SSLContext:
    """Return TLS settings with a new self-signed certificate, as kubelets make them."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "simulated-kubelet")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=30))
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory(prefix="pytest-cre-") as folder:
        file = Path(folder, "kubelet.pem")
        file.touch(mode=0o600)
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context.load_cert_chain(file)
    return context
