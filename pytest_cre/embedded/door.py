"""The server's listening socket, which can be shut for a while."""

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from pytest_cre.embedded.cutting import reset

if TYPE_CHECKING:
    import ssl

    from pytest_cre.embedded.certificate import ServingIdentity

_HOST = "127.0.0.1"


class Door:
    """Where connections come in."""

    def __init__(self, identity: "ServingIdentity") -> None:
        self._context: ssl.SSLContext = identity.context
        self._runner: web.ServerRunner | None = None
        self._site: web.TCPSite | None = None
        self._opening: asyncio.Task[None] | None = None
        self.port = 0

    async def open(self, runner: web.ServerRunner, port: int) -> None:
        """Listen on this port, 0 for any free one."""
        self._runner = runner
        self._site = web.TCPSite(runner, _HOST, port, ssl_context=self._context)
        await self._site.start()
        self.port = runner.addresses[0][1]

    async def shut(self, seconds: float) -> None:
        """Cut every connection and refuse new ones for some seconds; returns at once."""
        runner, site = self._runner, self._site
        if runner is None or site is None:
            return
        self._site = None
        await site.stop()
        server = runner.server
        for connection in server.connections if isinstance(server, web.Server) else ():
            reset(connection.transport)
        self._opening = asyncio.create_task(self._open_after(runner, seconds))

    async def _open_after(self, runner: web.ServerRunner, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.open(runner, self.port)

    async def close(self) -> None:
        """Open no more."""
        if self._opening is not None:
            self._opening.cancel()
