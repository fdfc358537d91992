"""A digest of a catalog's content, whatever folder it was read from."""

import hashlib
import json
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_cre.catalog.loader import Catalog


_PLACES = ("place", "places")


def catalog_sha256(catalog: "Catalog") -> str:
    """Return the SHA-256 of everything in the catalog but the places it stands in."""
    text = json.dumps(_plain(catalog), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: object) -> object:
    if is_dataclass(value):
        names = (each.name for each in fields(value) if each.name not in _PLACES)
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        # The order of workload kinds is a preference, so it counts.
        return [[str(key), _plain(each)] for key, each in value.items()]
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
