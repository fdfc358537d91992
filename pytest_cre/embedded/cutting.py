"""Connections that end as they do when a machine fails."""

import asyncio
import socket
import struct
from contextlib import suppress
from typing import NoReturn

from aiohttp import web


def cut(request: web.BaseRequest) -> NoReturn:
    """Reset the connection; always raises `ConnectionResetError`."""
    reset(request.transport)
    raise ConnectionResetError


def reset(transport: asyncio.BaseTransport | None) -> None:
    """End a connection by RST, as a machine does that knows nothing of it any more."""
    if transport is None:
        return
    raw = transport.get_extra_info("socket")
    if raw is not None:
        with suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()
