"""JSON Schemas of the YAML files, for editors: the same forms that reading checks by."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from pytest_cre.catalog.architecture_document import ArchitectureDocument
from pytest_cre.catalog.documents import ProfileDocument
from pytest_cre.catalog.entry_document import EntryDocument
from pytest_cre.catalog.limits_file import LimitsDocument
from pytest_cre.catalog.platform_document import PlatformDocument
from pytest_cre.catalog.site_document import SiteDocument

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_INHERITED = ("OptionDocument", "WorkloadDocument")
FORMS: Mapping[str, type[BaseModel]] = {
    "entry": EntryDocument,
    "log-profile": ProfileDocument,
    "architecture": ArchitectureDocument,
    "platform": PlatformDocument,
    "limits": LimitsDocument,
    "site": SiteDocument,
}


def json_schema(name: str) -> dict[str, Any]:
    """Return the schema of one kind of file.

    An entry that extends another need not repeat what it takes from there, so only entries without
    `extends` must be whole, and no part of one must be.
    """
    form = FORMS[name]
    schema = form.model_json_schema(by_alias=True, mode="validation")
    required = schema.pop("required", [])
    if name == "entry":
        schema["if"] = {"required": ["extends"]}
        schema["else"] = {"required": required}
        for part in _INHERITED:
            schema["$defs"][part].pop("required", None)
    elif required:
        schema["required"] = required
    return {"$schema": DIALECT, **schema}
