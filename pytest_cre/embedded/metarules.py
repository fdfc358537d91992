"""Rules of `metadata`: names, labels, owners, and what an update may not touch."""

import re
from collections.abc import Mapping

from pytest_cre.embedded.kinds import NAMESPACE, SERVICE, Json, Kind
from pytest_cre.embedded.status import Cause, forbidden_value, invalid_value, required

_LABEL_PATTERN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_PATTERN = rf"{_LABEL_PATTERN}(\.{_LABEL_PATTERN})*"
_QUALIFIED_PATTERN = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_PATTERN = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_DNS_LABEL = re.compile(_LABEL_PATTERN)
_DNS_SUBDOMAIN = re.compile(_SUBDOMAIN_PATTERN)
_QUALIFIED_NAME = re.compile(_QUALIFIED_PATTERN)
_LABEL_VALUE = re.compile(_VALUE_PATTERN)
_ANNOTATIONS_LIMIT_BYTES = 256 * 1024
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
# What the server alone decides; a client's values are ignored.
SERVER_FIELDS = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)


def dns_label_problem(value: str) -> str | None:
    """Say why a value is no RFC 1123 label, None when it is one."""
    if len(value) > 63:
        return "must be no more than 63 characters"
    if _DNS_LABEL.fullmatch(value):
        return None
    return (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
        f"regex used for validation is '{_LABEL_PATTERN}')"
    )


def dns_subdomain_problem(value: str) -> str | None:
    """Say why a value is no RFC 1123 subdomain, None when it is one."""
    if len(value) > 253:
        return "must be no more than 253 characters"
    if _DNS_SUBDOMAIN.fullmatch(value):
        return None
    return (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
        "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
        f"regex used for validation is '{_SUBDOMAIN_PATTERN}')"
    )


def _label_name_problem(name: str) -> str | None:
    return "must not contain dots" if "." in name else dns_label_problem(name)


def label_key_problem(key: str, noun: str = "a qualified name") -> str | None:
    """Say why a text is no label or annotation key, None when it is one."""
    prefix, slash, name = key.rpartition("/")
    if slash and "/" in prefix:
        return (
            f"{noun} must consist of alphanumeric characters, '-', '_' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
            f"'123-abc', regex used for validation is '{_QUALIFIED_PATTERN}') with an optional "
            "DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
    if slash:
        if not prefix:
            return "prefix part must be non-empty"
        problem = dns_subdomain_problem(prefix)
        if problem:
            return f"prefix part {problem}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    if _QUALIFIED_NAME.fullmatch(name):
        return None
    return (
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "
        "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "
        f"used for validation is '{_QUALIFIED_PATTERN}')"
    )


def label_value_problem(value: str) -> str | None:
    """Say why a text is no label value, None when it is one."""
    if len(value) > 63:
        return "must be no more than 63 bytes"
    if _LABEL_VALUE.fullmatch(value):
        return None
    return (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
        "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
        f"'my_value',  or '12345', regex used for validation is '{_VALUE_PATTERN}')"
    )


def label_causes(labels: Mapping[str, str], field: str) -> list[Cause]:
    """Check a map of labels."""
    causes: list[Cause] = []
    for key in sorted(labels):
        problem = label_key_problem(key, "a valid label key")
        if problem:
            causes.append(invalid_value(field, key, problem))
        problem = label_value_problem(labels[key])
        if problem:
            causes.append(invalid_value(field, labels[key], problem))
    return causes


def matches_label_selector(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether labels meet a LabelSelector; an empty one is met by all."""
    wanted = (selector.get("matchLabels") or {}).items()
    return all(labels.get(key) == value for key, value in wanted) and all(
        meets_requirement(one, labels) for one in selector.get("matchExpressions") or []
    )


def meets_requirement(requirement: Json, labels: Mapping[str, str]) -> bool:
    """Whether labels meet one requirement (`key`, `operator`, `values`) of a selector."""
    value = labels.get(requirement.get("key", ""))
    values: list[str] = requirement.get("values") or []
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            try:
                left, right = int(value or ""), int(values[0])
            except (ValueError, IndexError):
                return False
            return left > right if operator == "Gt" else left < right
        case _:
            return False


def metadata_causes(kind: Kind, metadata: Json) -> list[Cause]:
    """Check the metadata of an object that is about to be written."""
    causes: list[Cause] = []
    name = metadata.get("name", "")
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    else:
        problem = (
            _label_name_problem(name)
            if kind in (NAMESPACE, SERVICE)
            else dns_subdomain_problem(name)
        )
        if problem:
            # A generated name is shown with the prefix that it was made from.
            prefix = metadata.get("generateName", "")
            if prefix and dns_subdomain_problem(prefix.rstrip("-") or "-"):
                causes.append(invalid_value("metadata.generateName", prefix, problem))
            causes.append(invalid_value("metadata.name", name, problem))
    causes += label_causes(metadata.get("labels") or {}, "metadata.labels")
    annotations: dict[str, str] = metadata.get("annotations") or {}
    for key in sorted(annotations):
        problem = label_key_problem(key.lower())
        if problem:
            causes.append(invalid_value("metadata.annotations", key, problem))
    size_bytes = sum(len(key.encode()) + len(text.encode()) for key, text in annotations.items())
    if size_bytes > _ANNOTATIONS_LIMIT_BYTES:
        causes.append(
            Cause(
                reason="FieldValueTooLong",
                message=f"Too long: may not be more than {_ANNOTATIONS_LIMIT_BYTES} bytes",
                field="metadata.annotations",
            )
        )
    causes += _owner_causes(metadata.get("ownerReferences") or [])
    for index, finalizer in enumerate(metadata.get("finalizers") or []):
        problem = label_key_problem(finalizer)
        if problem:
            causes.append(invalid_value("metadata.finalizers", finalizer, problem))
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(invalid_value(f"metadata.finalizers[{index}]", finalizer, text))
    return causes


def _owner_causes(owners: list[Json]) -> list[Cause]:
    causes: list[Cause] = []
    controllers: list[str] = []
    for index, owner in enumerate(owners):
        at = f"metadata.ownerReferences[{index}]"
        causes += [
            required(f"{at}.{field}", "must not be empty")
            for field in ("apiVersion", "kind", "name", "uid")
            if not owner.get(field)
        ]
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            text = "/v1, Kind=Event is disallowed from being an owner"
            causes.append(invalid_value(at, _shown_owner(owner), text))
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        text = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        shown = [_shown_owner(owner) for owner in owners]
        causes.append(invalid_value("metadata.ownerReferences", shown, text))
    return causes


def _shown_owner(owner: Json) -> Json:
    fields = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    return {field: owner[field] for field in fields if field in owner}


def fixed_metadata_causes(new: Json, old: Json) -> list[Cause]:
    """Check that a patch leaves alone what is fixed once an object exists."""
    return [
        invalid_value(f"metadata.{field}", new[field], "field is immutable")
        for field in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")
        if field in new and new[field] != old.get(field)
    ]


def metadata_update_causes(kind: Kind, new: Json, old: Json) -> list[Cause]:
    """Check what an update wants to change in the metadata."""
    causes = metadata_causes(kind, new)
    if old.get("deletionTimestamp"):
        added = [f for f in new.get("finalizers") or [] if f not in (old.get("finalizers") or [])]
        if added:
            shown = ", ".join(f'"{finalizer}"' for finalizer in added)
            causes.append(
                forbidden_value(
                    "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, "
                    f"found new finalizers []string{{{shown}}}",
                )
            )
    return causes
