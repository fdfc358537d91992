"""The JSON report of `dcgmi diag --json`, of DCGM 2 to 4: one row per test and GPU.

Up to version 3 the document is named "DCGM GPU Diagnostic" and results carry `gpu_id` or `gpu_ids` (a
number, a text, or several with commas), or neither where a test is of the whole node. From version 4
on it is named "DCGM Diagnostic", results name an entity, and each test has a summary.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_cre.measure.logtext import Line, quoted
from pytest_cre.measure.model import (
    DiagnosticGpu,
    DiagnosticMeasurement,
    DiagnosticResult,
    DiagnosticStatus,
)

NEEDLES = (b'"DCGM ', b"nable to ")
MARK = b'"DCGM '  # of a document that stands on one line

_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
_UNREACHABLE = re.compile(
    r"[Uu]nable to (?:establish a connection to the specified host|connect to host engine).*"
)
_STATUSES: Mapping[str, DiagnosticStatus] = {
    "pass": "pass",
    "fail": "fail",
    "warn": "warn",
    "warning": "warn",
    "skip": "skip",
    "skipped": "skip",
    "not run": "not-run",
    "notrun": "not-run",
    "not_run": "not-run",
}
_LONGEST_TEXT = 500
_MOST_MESSAGES = 20
_MOST_GPU_IDS = 1024

Json = object


def is_report(document: Mapping[str, Json]) -> bool:
    """Return whether a JSON document is a diagnostic's report, or several in a row."""
    return any(isinstance(document.get(root), dict) for root in _ROOTS) or bool(
        _iterations(document)
    )


@dataclass(slots=True)
class EngineReader:
    """Notes that the host engine could not be reached, which no report tells."""

    words: str | None = None

    def line(self, line: Line) -> bool:
        """Take a line; return whether something was taken from it."""
        if b"nable to " not in line.text:
            return False
        found = _UNREACHABLE.search(line.text.decode(errors="replace"))
        if found is None:
            return False
        self.words = self.words or quoted(found[0], _LONGEST_TEXT)
        return True


@dataclass(slots=True, kw_only=True)
class _Report:
    """One report of one pod."""

    results: list[DiagnosticResult] = field(default_factory=list)
    gpus: list[DiagnosticGpu] = field(default_factory=list)
    dcgm_version: str | None = None
    driver_version: str | None = None
    error: str | None = None


def assemble(
    documents: Sequence[tuple[str, Mapping[str, Json]]],
    *,
    unreachable: str | None,
    gpus_planned: int | None,
    failure: str | None,
) -> tuple[DiagnosticMeasurement, frozenset[str]]:
    """Return the results of all reports, by pod, and what is wrong with them.

    A GPU counts as measured when a test of its own passed, failed or warned. `gpus_planned` None: what
    the reports list. `failure` is what the logs tell besides.
    """
    reports = [
        _report(pod, each)
        for pod, document in documents
        for each in (_iterations(document) or [document])
    ]
    results = [result for report in reports for result in report.results]
    gpus = _merged([gpu for report in reports for gpu in report.gpus])
    tested = {
        (each.pod, each.gpu)
        for each in results
        if each.gpu is not None and each.status in ("pass", "fail", "warn")
    }
    known = len(gpus) or None
    wanted = gpus_planned if gpus_planned is not None else known
    errors = [report.error for report in reports if report.error] + ([failure] if failure else [])
    unreachable = unreachable or next((each for each in errors if _UNREACHABLE.search(each)), None)
    reasons: set[str] = set()
    if any(each.status == "fail" for each in results):
        reasons.add("failed-tests")
    if any(each.status == "not-run" for each in results):
        reasons.add("tests-not-run")
    if reports and not any(each.status in ("pass", "fail", "warn") for each in results):
        reasons.add("no-tests")
    elif reports and (wanted is None or max(len(tested), _node_wide(results, gpus)) < wanted):
        reasons.add("fewer-gpus")
    if unreachable is not None:
        reasons.add("no-engine")
    elif errors:
        reasons.add("failure")
    return (
        DiagnosticMeasurement(
            results=tuple(results),
            gpus=tuple(gpus),
            gpus_planned=wanted,
            dcgm_version=next((each.dcgm_version for each in reports if each.dcgm_version), None),
            driver_version=next(
                (each.driver_version for each in reports if each.driver_version), None
            ),
            failure=errors[0] if errors else unreachable,
        ),
        frozenset(reasons),
    )


def _node_wide(results: Sequence[DiagnosticResult], gpus: Sequence[DiagnosticGpu]) -> int:
    """Return the GPUs listed, where every test is of the node as a whole: level 1 before DCGM 4."""
    is_node_wide = bool(results) and all(each.gpu is None for each in results)
    return len(gpus) if is_node_wide else 0


def _iterations(document: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """Return the reports of a run with `--iterations`."""
    given = document.get("iterations")
    return [each for each in _list(given) if isinstance(each, dict) and is_report(each)]


def _report(pod: str, document: Mapping[str, Json]) -> _Report:
    root = next(
        (each for name in _ROOTS if isinstance(each := document.get(name), dict)), dict[str, Json]()
    )
    facts = {**_mapping(document.get("metadata")), **document, **root}
    report = _Report(
        dcgm_version=_text(facts.get("version")) or _text(facts.get("DCGM Version")),
        driver_version=_text(facts.get("Driver Version Detected")),
        error=_text(root.get("runtime_error")),
        gpus=_listed_gpus(pod, document, facts),
    )
    for category in _list(root.get("test_categories")):
        name = _text(_mapping(category).get("category")) or ""
        for test in _list(_mapping(category).get("tests")):
            report.results += _test_results(pod, name, _mapping(test))
    seen = {each.gpu for each in report.results if each.gpu is not None}
    listed = {each.gpu for each in report.gpus}
    report.gpus += [
        DiagnosticGpu(pod=pod, gpu=gpu, serial=None, device_id=None)
        for gpu in sorted(seen - listed)
    ]
    return report


def _test_results(pod: str, category: str, test: Mapping[str, Json]) -> list[DiagnosticResult]:
    name = _text(test.get("name"))
    if name is None:
        return []  # DCGM 3 pads its lists with null
    found = []
    for result in map(_mapping, _list(test.get("results"))):
        if "status" not in result:
            continue
        for gpu, entity in _entities(result):
            found.append(_result(pod, category, name, result, gpu=gpu, entity=entity))
    summary = _mapping(test.get("test_summary"))
    status = _status(summary.get("status"))
    # A test may fail as a whole, for a reason that is no single GPU's.
    if summary and not any(each.status == status for each in found):
        found.append(_result(pod, category, name, summary, gpu=None, entity="node"))
    return found


def _result(
    pod: str,
    category: str,
    test: str,
    result: Mapping[str, Json],
    *,
    gpu: int | None,
    entity: str,
) -> DiagnosticResult:
    return DiagnosticResult(
        pod=pod,
        category=category,
        test=test,
        gpu=gpu,
        entity=entity,
        status=_status(result.get("status")),
        messages=tuple(_messages(result)),
    )


def _entities(result: Mapping[str, Json]) -> list[tuple[int | None, str]]:
    """Return what a result is about: GPU numbers with their names, or another entity, or the node."""
    group, number = _text(result.get("entity_group")), _whole(result.get("entity_id"))
    if group is not None:
        if group.upper() == "GPU" and number is not None:
            return [(number, f"GPU {number}")]
        return [(None, group if number is None else f"{group} {number}")]
    given = result.get("gpu_ids", result.get("gpu_id"))
    parts = given.split(",") if isinstance(given, str) else [given]
    numbers = [number for part in parts[:_MOST_GPU_IDS] if (number := _whole(part)) is not None]
    return [(number, f"GPU {number}") for number in numbers] or [(None, "node")]


def _messages(result: Mapping[str, Json]) -> Iterator[str]:
    """Yield warnings, then information, each once; both come as texts, lists or objects."""
    told: dict[str, None] = {}
    for name in ("warnings", "warning", "info"):
        for each in _list(result.get(name)) or [result.get(name)]:
            inner = _mapping(each)
            text = _text(inner.get("warning", inner.get("warnings"))) if inner else _text(each)
            if text:
                told[text] = None
    yield from list(told)[:_MOST_MESSAGES]


def _listed_gpus(
    pod: str, document: Mapping[str, Json], facts: Mapping[str, Json]
) -> list[DiagnosticGpu]:
    """Return the GPUs that a report lists apart from its results."""
    found = []
    for group in map(_mapping, _list(document.get("entity_groups"))):
        if (_text(group.get("entity_group")) or "").upper() != "GPU":
            continue
        for entity in map(_mapping, _list(group.get("entities"))):
            number = _whole(entity.get("entity_id"))
            if number is not None:
                found.append(
                    DiagnosticGpu(
                        pod=pod,
                        gpu=number,
                        serial=_text(entity.get("serial_num")),
                        device_id=_text(entity.get("device_id")),
                    )
                )
    serials = _mapping(facts.get("GPU Device Serials"))
    for number, device in enumerate(_list(facts.get("GPU Device IDs"))[:_MOST_GPU_IDS]):
        serial = _text(serials.get(str(number)))
        found.append(DiagnosticGpu(pod=pod, gpu=number, serial=serial, device_id=_text(device)))
    return found


def _merged(gpus: Sequence[DiagnosticGpu]) -> list[DiagnosticGpu]:
    """Return each GPU once, by pod and number; what says more wins."""
    found: dict[tuple[str, int], DiagnosticGpu] = {}
    for each in gpus:
        key = (each.pod, each.gpu)
        if key not in found or found[key].serial is None:
            found[key] = each
    return [found[key] for key in sorted(found)]


def _status(value: Json) -> DiagnosticStatus:
    """Return a status; what is none of the known ones tells of no result."""
    return _STATUSES.get(value.strip().lower() if isinstance(value, str) else "", "not-run")


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _text(value: Json) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return quoted(" ".join(str(value).split()), _LONGEST_TEXT) or None


def _whole(value: Json) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 0 <= value < 10**6 else None
    text = value.strip() if isinstance(value, str) else ""
    return int(text) if re.fullmatch("[0-9]{1,6}", text) else None
