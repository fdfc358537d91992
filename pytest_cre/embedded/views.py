"""The forms in which a client can ask for objects: whole, as table rows, metadata only."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pytest_cre.embedded.kinds import Json, Kind
from pytest_cre.embedded.status import bad_request
from pytest_cre.embedded.store import Record, event_line
from pytest_cre.embedded.tables import columns_of, row_cells
from pytest_cre.embedded.watching import Event

Form = Literal["plain", "table", "metadata"]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One client's choice of form."""

    form: Form
    include_object: Literal["None", "Metadata", "Object"]

    @property
    def is_plain(self) -> bool:
        """Whether objects are sent whole."""
        return self.form == "plain"

    def one(self, record: Record, now: datetime) -> Json:
        """Give one object in this form."""
        if self.form == "metadata":
            return _metadata_only(record)
        metadata = {"resourceVersion": record.obj["metadata"].get("resourceVersion", "")}
        return self._table(record.kind, [record], metadata, now)

    def many(self, kind: Kind, records: list[Record], metadata: Json, now: datetime) -> Json:
        """Give a list in this form."""
        if self.form == "metadata":
            return {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": [_metadata_only(record) for record in records],
            }
        return self._table(kind, records, metadata, now)

    def event_line(self, kind: Kind, event: Event, now: datetime, is_first: bool) -> bytes:
        """Give one line of a watch in this form."""
        if event.record is None:
            if event.type != "BOOKMARK" or self.form == "metadata":
                return event.line
            metadata = json.loads(event.line)["object"]["metadata"]
            body = self._table(kind, [], {"resourceVersion": metadata["resourceVersion"]}, now)
            bookmark = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
            body["rows"] = [{"cells": [], "object": bookmark}]
        else:
            body = self.one(event.record, now)
        if self.form == "table" and not is_first:
            # Only the first event of a watch carries the headers.
            body["columnDefinitions"] = None
        return event_line(event.type, json.dumps(body, separators=(",", ":")).encode())

    def _table(self, kind: Kind, records: list[Record], metadata: Json, now: datetime) -> Json:
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": columns_of(kind),
            "rows": [
                {"cells": row_cells(kind, record.obj, now), "object": self._row_object(record)}
                for record in records
            ],
        }

    def _row_object(self, record: Record) -> Json | None:
        match self.include_object:
            case "None":
                return None
            case "Object":
                kind = record.kind
                return {"kind": kind.kind, "apiVersion": kind.api_version, **record.obj}
            case _:
                return _metadata_only(record)


PLAIN = View(form="plain", include_object="Metadata")


def view_of(accept: str, query: Mapping[str, str]) -> View:
    """Read what form a request wants, from its Accept header."""
    for media_type in accept.split(","):
        parameters = media_type.replace(" ", "").split(";")
        if parameters[0] != "application/json" or "v=v1beta1" in parameters:
            continue
        if "as=Table" in parameters:
            wanted = query.get("includeObject", "")
            if wanted not in ("", "None", "Metadata", "Object"):
                raise bad_request(
                    "Unable to convert to Table as requested: includeObject: Invalid value: "
                    f"\"{wanted}\": must be 'Metadata', 'Object', 'None', or empty"
                )
            if wanted == "None":
                return View(form="table", include_object="None")
            if wanted == "Object":
                return View(form="table", include_object="Object")
            return View(form="table", include_object="Metadata")
        if "as=PartialObjectMetadata" in parameters or "as=PartialObjectMetadataList" in parameters:
            return View(form="metadata", include_object="Metadata")
        break
    return PLAIN


def _metadata_only(record: Record) -> Json:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": record.obj["metadata"],
    }
