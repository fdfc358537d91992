"""Watches and logs on which a planted fault lies."""

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from aiohttp import web

from pytest_cre.embedded.cutting import cut
from pytest_cre.embedded.distortions import DISTORTIONS, distort

if TYPE_CHECKING:
    from pytest_cre.embedded.kinds import Json
    from pytest_cre.simulator.apifaults import ApiFault

_DRIP_S = 0.05
_GARBAGE = b'{"type":"MODIFIED","object":{"kind":"Po\xff\n'


class StreamEnded(ConnectionError):
    """The stream has been ended cleanly, before its source had."""

    def __init__(self, stream: web.StreamResponse) -> None:
        super().__init__("ended by a planted fault")
        self.stream = stream


class FaultyStream(web.StreamResponse):
    """A stream of lines; some come through before it goes wrong."""

    def __init__(
        self, request: web.BaseRequest, fault: "ApiFault", headers: Mapping[str, str]
    ) -> None:
        super().__init__(headers=headers)
        self._asked, self._fault = request, fault
        self._left = fault.lines
        self._held = b""

    async def write(self, data: "bytes | bytearray | memoryview") -> None:
        """Take output; whole lines are sent, or what the fault makes of them."""
        *lines, self._held = (self._held + bytes(data)).split(b"\n")
        for line in lines:
            await self._line(line + b"\n")

    async def write_eof(self, data: bytes = b"") -> None:
        """End the stream with what is left of the last line."""
        rest, self._held = self._held + data, b""
        await super().write_eof(rest)

    async def _line(self, line: bytes) -> None:
        action = self._fault.action
        if action in DISTORTIONS:
            await super().write(_distorted_event(line, action))
            return
        match action:
            case "duplicate-events":
                await super().write(line + line)
            case "no-bookmarks":
                if not line.startswith(b'{"type":"BOOKMARK"'):
                    await super().write(line)
            case "slow-drip":
                await self._drip(line)
            case _ if self._left > 0:
                self._left -= 1
                await super().write(line)
            case "black-hole":
                await self._silence()
            case "reset" | "lose-answer":
                await super().write(line[: len(line) // 2])
                await asyncio.sleep(0)
                cut(self._asked)
            case "close":
                await self._end()
            case "garbage-line":
                await super().write(_GARBAGE)
                self._left = 1 << 60
                await super().write(line)
            case "error-event":
                await super().write(_error_event(self._fault))
                await self._end()
            case _:
                await super().write(line)

    async def _drip(self, line: bytes) -> None:
        size = max(1, round(self._fault.bytes_per_second * _DRIP_S))
        for start in range(0, len(line), size):
            await super().write(line[start : start + size])
            await asyncio.sleep(_DRIP_S)

    async def _silence(self) -> None:
        if self._fault.seconds is None:
            await asyncio.Event().wait()
        else:
            await asyncio.sleep(self._fault.seconds)
        cut(self._asked)

    async def _end(self) -> None:
        self._held = b""
        await super().write_eof()
        raise StreamEnded(self)


def _error_event(fault: "ApiFault") -> bytes:
    status: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "planted fault",
    }
    if fault.code is not None:
        status |= {"code": fault.code, "reason": "Expired" if fault.code == 410 else ""}
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


def _distorted_event(line: bytes, action: str) -> bytes:
    if not line.startswith(b"{"):
        return line  # a log
    event = json.loads(line)
    if event.get("type") in ("ADDED", "MODIFIED", "DELETED"):
        distort(event["object"], action)
    return json.dumps(event).encode() + b"\n"
