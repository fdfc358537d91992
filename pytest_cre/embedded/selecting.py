"""Label and field selectors of lists, watches and bulk deletions."""

from collections.abc import Callable
from dataclasses import dataclass

from pytest_cre.embedded.kinds import EVENT, JOB, NAMESPACE, NODE, POD, SECRET, Json, Kind
from pytest_cre.embedded.status import bad_request
from pytest_cre.embedded.store import Record
from pytest_cre.formats.selector import parse_selector

# Field selectors by kind and path; each kind also has metadata.name and metadata.namespace.
_FIELDS: dict[Kind, tuple[str, ...]] = {
    POD: (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    NODE: ("spec.unschedulable",),
    NAMESPACE: ("status.phase",),
    SECRET: ("type",),
    JOB: ("status.successful",),
    EVENT: (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
}
_ALWAYS = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a kind a request means."""

    namespace: str
    is_everything: bool
    matches: Callable[[Json], bool]

    def covers(self, record: Record) -> bool:
        """Whether an object belongs to the selection."""
        if self.namespace and record.key[0] != self.namespace:
            return False
        return self.is_everything or self.matches(record.obj)


def parse_selection(kind: Kind, namespace: str, labels_text: str, fields_text: str) -> Selection:
    """Read the selectors of a request; raises 400 for those that a server does not know."""
    tests: list[Callable[[Json], bool]] = []
    if labels_text:
        try:
            selector = parse_selector(labels_text)
        except ValueError as error:
            raise bad_request(f"unable to parse requirement: {error}") from None
        tests.append(lambda obj: selector.matches(obj["metadata"].get("labels") or {}))
    if fields_text:
        tests += _field_tests(kind, fields_text)
    return Selection(
        namespace=namespace,
        is_everything=not tests,
        matches=lambda obj: all(test(obj) for test in tests),
    )


def _field_tests(kind: Kind, text: str) -> list[Callable[[Json], bool]]:
    tests: list[Callable[[Json], bool]] = []
    for term in text.split(","):
        if not term:
            continue
        field, operator, wanted = _split_term(term)
        if field not in _ALWAYS and kind not in _FIELDS:
            names = ", ".join(f'"{name}"' for name in _ALWAYS)
            raise bad_request(f'"{field}" is not a known field selector: only {names}')
        if field not in (*_ALWAYS, *_FIELDS.get(kind, ())):
            raise bad_request(f"field label not supported: {field}")
        tests.append(_field_test(field, operator, wanted))
    return tests


def _split_term(term: str) -> tuple[str, str, str]:
    for operator in ("!=", "==", "="):
        field, found, value = term.partition(operator)
        if found:
            return field, operator, value
    raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")


def _field_test(field: str, operator: str, wanted: str) -> Callable[[Json], bool]:
    path = field.split(".")
    want_equal = operator != "!="

    def test(obj: Json) -> bool:
        return (_field_text(obj, path) == wanted) == want_equal

    return test


def _field_text(obj: Json, path: list[str]) -> str:
    if path == ["status", "successful"]:
        path = ["status", "succeeded"]
    value: object = obj
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    if path == ["source"]:
        value = value.get("component") if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        if path[-1] in ("unschedulable", "hostNetwork"):
            return "false"
        return "0" if path[-1] == "succeeded" else ""
    return str(value)
