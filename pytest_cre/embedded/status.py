"""Errors of the API and the Status objects that carry them, worded as genuine servers do."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_cre.embedded.kinds import Json, Kind


class ApiError(Exception):
    """A request that is refused; carries the whole answer."""

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> Json:
        """Give the Status object that is sent as the body."""
        body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that is wrong with one field of an object."""

    reason: str
    message: str
    field: str


def success(details: Json | None = None, code: int | None = None) -> Json:
    """Give the Status object of a request that needs no other answer."""
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        body["details"] = details
    if code is not None:
        body["code"] = code
    return body


def resource_details(kind: Kind, name: str, **more: object) -> Json:
    """Name the object concerned, as `details` of a Status does."""
    details: Json = {}
    if name:
        details["name"] = name
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.plural
    details.update(more)
    return details


def not_found(kind: Kind, name: str) -> ApiError:
    """404 for an object."""
    return ApiError(
        404,
        "NotFound",
        f'{kind.qualified_plural} "{name}" not found',
        resource_details(kind, name),
    )


def no_such_resource() -> ApiError:
    """404 for a resource type that a served group does not have."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(kind: Kind, name: str) -> ApiError:
    """409 for a second create."""
    return ApiError(
        409,
        "AlreadyExists",
        f'{kind.qualified_plural} "{name}" already exists',
        resource_details(kind, name),
    )


def conflict(kind: Kind, name: str, why: str, subresource: str = "") -> ApiError:
    """409 for a write that lost a race or whose precondition does not hold."""
    resource = f"{kind.plural}/{subresource}" if subresource else kind.qualified_plural
    details = resource_details(kind, name)
    if subresource:
        details["kind"] = resource
    return ApiError(
        409, "Conflict", f'Operation cannot be fulfilled on {resource} "{name}": {why}', details
    )


def failed_precondition(kind: Kind, name: str, why: str) -> ApiError:
    """409 for a deletion whose precondition does not hold; these messages name the kind."""
    error = conflict(kind, name, why)
    message = f'Operation cannot be fulfilled on {kind.qualified_kind} "{name}": {why}'
    return ApiError(409, "Conflict", message, {**(error.details or {}), "kind": kind.kind})


def foreign_uid(kind: Kind, key: tuple[str, str], given: str, found: str) -> ApiError:
    """409 for a write that means another object of the same name."""
    path = "/".join(part for part in ("/registry", kind.storage_name, *key) if part)
    return conflict(
        kind,
        key[1],
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {given}, UID in object "
        f"meta: {found}",
    )


def modified(kind: Kind, name: str) -> ApiError:
    """409 for a write based on an outdated version."""
    why = (
        "the object has been modified; please apply your changes to the latest version "
        "and try again"
    )
    return conflict(kind, name, why)


def forbidden(kind: Kind, name: str, why: str, causes: Sequence[Cause] = ()) -> ApiError:
    """403 by a rule of the server, not by a missing permission."""
    details = resource_details(kind, name)
    if causes:
        details["causes"] = causes_as_json(causes)
    return ApiError(
        403, "Forbidden", f'{kind.qualified_plural} "{name}" is forbidden: {why}', details
    )


def bad_request(message: str) -> ApiError:
    """400 for a request that makes no sense."""
    return ApiError(400, "BadRequest", message)


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> ApiError:
    """422 for an object whose fields break a rule; `causes` is not empty."""
    causes = list(dict.fromkeys(causes))
    text = _joined(causes)
    details: Json = {"name": name, "group": kind.group, "kind": kind.kind}
    details = {key: value for key, value in details.items() if value}
    details["causes"] = causes_as_json(causes)
    return ApiError(422, "Invalid", f'{kind.qualified_kind} "{name}" is invalid: {text}', details)


def invalid_options(name: str, causes: Sequence[Cause]) -> ApiError:
    """422 for options of a request, such as ListOptions."""
    details = {"group": "meta.k8s.io", "kind": name, "causes": causes_as_json(causes)}
    return ApiError(422, "Invalid", f'{name}.meta.k8s.io "" is invalid: {_joined(causes)}', details)


def invalid_patch(shown: str, why: str) -> ApiError:
    """422 for a patch that leads to no object of the kind; `shown` is what was tried."""
    cause = Cause(
        reason="FieldValueInvalid", message=f"Invalid value: {_quoted(shown)}: {why}", field="patch"
    )
    return ApiError(
        422, "Invalid", f' "" is invalid: {_joined([cause])}', {"causes": causes_as_json([cause])}
    )


def expired(message: str) -> ApiError:
    """410 for a resource version or page token that is too old."""
    return ApiError(410, "Expired", message)


def internal(message: str) -> ApiError:
    """500 with a cause."""
    return ApiError(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        {"causes": [{"message": message}]},
    )


def causes_as_json(causes: Sequence[Cause]) -> list[Json]:
    """Give causes as `details` of a Status lists them."""
    return [
        {
            key: value
            for key, value in (("reason", c.reason), ("message", c.message), ("field", c.field))
            if value
        }
        for c in causes
    ]


def _joined(causes: Sequence[Cause]) -> str:
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def required(field: str, detail: str = "") -> Cause:
    """Say that a field must be given."""
    return Cause(
        reason="FieldValueRequired",
        message=f"Required value: {detail}" if detail else "Required value",
        field=field,
    )


def invalid_value(field: str, value: object, detail: str) -> Cause:
    """Say that a field's value breaks a rule."""
    shown = (
        str(value)
        if isinstance(value, int) and not isinstance(value, bool)
        else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    )
    return Cause(
        reason="FieldValueInvalid", message=f"Invalid value: {shown}: {detail}", field=field
    )


def unsupported_value(field: str, value: object, choices: Sequence[str]) -> Cause:
    """Say that a field's value is none of the allowed ones."""
    allowed = ", ".join(f'"{choice}"' for choice in choices)
    return Cause(
        reason="FieldValueNotSupported",
        message=f'Unsupported value: "{value}": supported values: {allowed}',
        field=field,
    )


def forbidden_value(field: str, detail: str) -> Cause:
    """Say that a field may not be given or changed here."""
    return Cause(reason="FieldValueForbidden", message=f"Forbidden: {detail}", field=field)
