"""Options of requests, in the query and in DeleteOptions, checked as genuine servers do."""

import json
from collections.abc import Mapping, Sequence
from typing import Literal, cast, get_args

from pytest_cre.embedded.deletion import DeleteOptions, Propagation
from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.status import (
    Cause,
    bad_request,
    forbidden_value,
    invalid_options,
    invalid_value,
    unsupported_value,
)

# What becomes of fields that a kind does not have.
Strictness = Literal["Ignore", "Strict", "Warn"]
_STRICTNESSES = ("", "Ignore", "Strict", "Warn")


def integer(query: Mapping[str, str], name: str, default: int = 0) -> int:
    """Read a whole number from the query."""
    text = query.get(name, "")
    if not text:
        return default
    try:
        if len(text) > 19:
            raise ValueError
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def boolean(query: Mapping[str, str], name: str) -> bool:
    """Read a truth value from the query, as Go's query conversion does."""
    if name not in query:
        return False
    return query[name].lower() not in ("false", "0")


def write_options(query: Mapping[str, str], name: str) -> tuple[bool, Strictness]:
    """Give whether a write is a dry run, and how strict its body is to be read; raises 422."""
    causes = _dry_run_causes([query["dryRun"]] if query.get("dryRun") else [])
    strictness = query.get("fieldValidation", "")
    if strictness not in _STRICTNESSES:
        causes.append(unsupported_value("fieldValidation", strictness, _STRICTNESSES))
    if causes:
        raise invalid_options(name, causes)
    return query.get("dryRun") == "All", cast("Strictness", strictness or "Warn")


def delete_options(body: Json, query: Mapping[str, str]) -> DeleteOptions:
    """Join decoded DeleteOptions with the query, which counts where the body is silent."""
    grace_s = body.get("gracePeriodSeconds")
    if grace_s is None and query.get("gracePeriodSeconds"):
        grace_s = integer(query, "gracePeriodSeconds")
    propagation = body.get("propagationPolicy") or query.get("propagationPolicy") or None
    orphan = body.get("orphanDependents")
    if orphan is None and query.get("orphanDependents"):
        orphan = boolean(query, "orphanDependents")
    dry_run = body.get("dryRun") or ([query["dryRun"]] if query.get("dryRun") else [])
    causes: list[Cause] = []
    if propagation is not None and orphan is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(invalid_value("propagationPolicy", propagation, text))
    elif propagation not in (None, *get_args(Propagation)):
        policies = ("Foreground", "Background", "Orphan", "nil")
        causes.append(unsupported_value("propagationPolicy", propagation, policies))
    causes += _dry_run_causes(dry_run)
    if causes:
        raise invalid_options("DeleteOptions", causes)
    if propagation is None and orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    preconditions = body.get("preconditions") or {}
    return DeleteOptions(
        grace_s=grace_s,
        propagation=cast("Propagation | None", propagation),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run=bool(dry_run),
    )


def check_list_options(query: Mapping[str, str], *, is_watch: bool) -> None:
    """Refuse combinations of list and watch options that make no sense, with 422."""
    match = query.get("resourceVersionMatch", "")
    version = query.get("resourceVersion", "")
    causes: list[Cause] = []
    if is_watch:
        if "sendInitialEvents" in query:
            if match != "NotOlderThan":
                text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                causes.append(forbidden_value("resourceVersionMatch", text))
            if match not in ("", "NotOlderThan"):
                causes.append(unsupported_value("resourceVersionMatch", match, ("NotOlderThan",)))
        elif match:
            text = (
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
            causes.append(forbidden_value("resourceVersionMatch", text))
    else:
        causes += _match_causes(match, version)
        if "sendInitialEvents" in query:
            text = "sendInitialEvents is forbidden for list"
            causes.append(forbidden_value("sendInitialEvents", text))
    if causes:
        raise invalid_options("ListOptions", causes)


def _match_causes(match: str, version: str) -> list[Cause]:
    field = "resourceVersionMatch"
    causes: list[Cause] = []
    if match and not version:
        text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        causes.append(forbidden_value(field, text))
    if match not in ("", "Exact", "NotOlderThan"):
        causes.append(unsupported_value(field, match, ("Exact", "NotOlderThan", "")))
    if match == "Exact" and version == "0":
        text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        causes.append(forbidden_value(field, text))
    return causes


def _dry_run_causes(values: Sequence[str]) -> list[Cause]:
    if all(value == "All" for value in values):
        return []
    shown = json.dumps(list(values), separators=(",", ":"))
    return [
        Cause(
            reason="FieldValueNotSupported",
            message=f'Unsupported value: {shown}: supported values: "All"',
            field="dryRun",
        )
    ]
