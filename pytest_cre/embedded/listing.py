"""Lists, whole or in pages that all show the same moment."""

import base64
import json
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from pytest_cre.embedded.kinds import Json, Kind
from pytest_cre.embedded.selecting import Selection
from pytest_cre.embedded.status import ApiError, bad_request, expired
from pytest_cre.embedded.store import Record, Store

_SNAPSHOTS_KEPT = 64
_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a list, or all of it."""

    kind: Kind
    records: list[Record]
    version: int
    continue_token: str
    remaining: int | None

    def metadata(self) -> Json:
        """Give the list's own metadata."""
        metadata: Json = {"resourceVersion": str(self.version)}
        if self.continue_token:
            metadata["continue"] = self.continue_token
            if self.remaining is not None:
                metadata["remainingItemCount"] = self.remaining
        return metadata

    def encoded(self) -> bytes:
        """Give the JSON text of the list, joined from the stored texts of its objects."""
        head = json.dumps(
            {
                "kind": f"{self.kind.kind}List",
                "apiVersion": self.kind.api_version,
                "metadata": self.metadata(),
            },
            separators=(",", ":"),
        )
        items = b",".join(record.encoded for record in self.records)
        return head[:-1].encode() + b',"items":[' + items + b"]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    version: int
    records: list[Record]
    made_at_s: float
    is_filtered: bool


class Lister:
    """Answers list requests and remembers what pages were begun."""

    def __init__(
        self,
        store: Store,
        *,
        snapshot_lifetime_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._lifetime_s = snapshot_lifetime_s
        self._monotonic = monotonic
        self._snapshots: OrderedDict[str, _Snapshot] = OrderedDict()

    def page(
        self,
        kind: Kind,
        selection: Selection,
        *,
        limit: int,
        continue_token: str,
        resource_version: str,
    ) -> Page:
        """Give the objects of a selection; at most `limit` of them when it is not 0.

        Raises 410 when the token's moment is no longer known, 504 for a version of the future.
        """
        if continue_token:
            if resource_version not in ("", "0"):
                raise bad_request("specifying resource version is not allowed when using continue")
            token, snapshot, start = self._resume(kind, continue_token)
        else:
            check_list_version(resource_version, self._store.version)
            records = [
                record
                for record in self._store.records(kind, selection.namespace)
                if selection.covers(record)
            ]
            snapshot = _Snapshot(
                version=self._store.version,
                records=records,
                made_at_s=self._monotonic(),
                is_filtered=not selection.is_everything,
            )
            token, start = "", 0
        end = start + limit if limit else len(snapshot.records)
        left = len(snapshot.records) - end
        next_token = ""
        if left > 0:
            token = token or f"{kind.plural}-{snapshot.version}-{len(snapshot.records)}-{limit}"
            token = self._keep(token, snapshot)
            next_token = _encode_token(token, end)
        return Page(
            kind=kind,
            records=snapshot.records[start:end],
            version=snapshot.version,
            continue_token=next_token,
            remaining=None if snapshot.is_filtered else left,
        )

    def _keep(self, token: str, snapshot: _Snapshot) -> str:
        known = self._snapshots.get(token)
        while known is not None and known.records != snapshot.records:
            token += "+"
            known = self._snapshots.get(token)
        self._snapshots[token] = snapshot
        self._snapshots.move_to_end(token)
        while len(self._snapshots) > _SNAPSHOTS_KEPT:
            self._snapshots.popitem(last=False)
        return token

    def _resume(self, kind: Kind, text: str) -> tuple[str, _Snapshot, int]:
        token, start = _decode_token(text)
        snapshot = self._snapshots.get(token)
        if not token.startswith(f"{kind.plural}-"):
            raise bad_request(
                "invalid continue token: continue key is not valid: it belongs to another resource"
            )
        if snapshot is None or self._monotonic() - snapshot.made_at_s > self._lifetime_s:
            self._snapshots.pop(token, None)
            raise expired(_EXPIRED)
        return token, snapshot, start


def parse_version(text: str) -> int:
    """Read a resource version; raises ValueError, worded as genuine servers do."""
    if not text:
        return 0
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise ValueError(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": '
            "invalid syntax"
        )
    return int(text)


def check_list_version(text: str, current: int) -> None:
    """Refuse rubbish with 400, and with 504 a version that is yet to come."""
    try:
        version = parse_version(text)
    except ValueError as error:
        raise bad_request(f"invalid resource version: {error}") from None
    if version > current:
        raise ApiError(
            504,
            "Timeout",
            f"Timeout: Too large resource version: {version}, current: {current}",
            {
                "causes": [
                    {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
                ],
                "retryAfterSeconds": 1,
            },
        )


def _encode_token(token: str, start: int) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "at": token, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode_token(text: str) -> tuple[str, int]:
    try:
        padded = text + "=" * (-len(text) % 4)
        token = json.loads(base64.urlsafe_b64decode(padded.encode()))
        at, start = token["at"], token["start"]
    except (ValueError, KeyError, TypeError):
        raise bad_request(
            "invalid continue token: continue key is not valid: it cannot be decoded"
        ) from None
    if not isinstance(at, str) or not isinstance(start, int) or start < 0:
        raise bad_request("invalid continue token: continue key is not valid: it cannot be decoded")
    return at, start
