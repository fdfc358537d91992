"""The few calls that set a control plane up, made as its administrator."""

import http.client
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT_S = 10.0


class Refusal(Exception):
    """An answer that says no."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"{status}: {words}")
        self.status = status


class Api:
    """One API server. Every call has its own connection, so calls from threads need no lock."""

    def __init__(self, server: str, *, token: str, authority_file: Path) -> None:
        self._address = urlsplit(server)
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": "pytest-cre-setup"}
        self._context = ssl.create_default_context(cafile=str(authority_file))

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the answer's object; raises `Refusal`, or `OSError` when there is no answer."""
        content = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({"Content-Type": "application/json"} if content else {})
        connection = http.client.HTTPSConnection(
            str(self._address.hostname),
            self._address.port,
            timeout=_TIMEOUT_S,
            context=self._context,
        )
        try:
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            raw = response.read()
        except http.client.HTTPException as problem:
            raise OSError(f"no answer to {method} {path}: {problem!r}") from None
        finally:
            connection.close()
        if response.status >= 400:
            raise Refusal(response.status, _message(raw))
        return json.loads(raw) if raw[:1] in (b"{", b"[") else raw.decode()

    def create(self, path: str, body: Mapping[str, Any]) -> None:
        """Create an object; one that is there already is fine."""
        try:
            self.call("POST", path, body)
        except Refusal as refusal:
            if refusal.status != 409:
                raise

    def is_gone(self, path: str) -> bool:
        """Return whether there is certainly no such object."""
        try:
            self.call("GET", path)
        except Refusal as refusal:
            return refusal.status == 404
        except OSError:
            return False
        return False

    def answers(self, path: str) -> bool:
        """Return whether a GET succeeds now."""
        try:
            self.call("GET", path)
        except (OSError, Refusal):
            return False
        return True


def _message(raw: bytes) -> str:
    try:
        return str(json.loads(raw)["message"])
    except (ValueError, KeyError, TypeError):
        return raw[:300].decode("utf-8", "replace")
