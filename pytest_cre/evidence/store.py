"""Evidence on disk: written atomically, read back equal, damage noticed.

    DIR/<domain>.<variant>@<scale>/workflow.json
                                  /SHA256SUMS
                                  /<group>/attempt-<n>/{group,pods,events,problems,clocks,spec,logs}.json
                                                      /logs/<nnnn>-<pod>.log
                                                      /SHA256SUMS

Each `SHA256SUMS` can be checked with `sha256sum -c`; that of the item covers those of its groups.
"""

import dataclasses
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.errors import EvidenceProblem
from pytest_cre.evidence.files import (
    CHECKSUMS,
    file_name,
    is_inside,
    read_bytes,
    read_json,
    replacing,
    sync_folder,
    validated,
    verify_checksums,
    write_bytes,
    write_checksums,
    write_json,
)
from pytest_cre.evidence.masking import mask_manifest
from pytest_cre.evidence.model import GroupEvidence, WorkflowEvidence

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCHEMA = "cre.evidence/1"
WORKFLOW_FILE = "workflow.json"
_CLOCKS = ("queue_s", "start_s", "run_s")
_OWN_FILES = ("pods", "events", "problems")


def masked(evidence: WorkflowEvidence) -> WorkflowEvidence:
    """Return the evidence as it may be kept; reading it back gives exactly this."""
    return dataclasses.replace(evidence, groups=tuple(map(masked_group, evidence.groups)))


def masked_group(group: GroupEvidence) -> GroupEvidence:
    """Return a group's evidence as it may be kept."""
    return dataclasses.replace(group, manifests=tuple(map(mask_manifest, group.manifests)))


def folder_name(entry: str, scale: str, nth: int = 0) -> str:
    """Return the folder of an item; `nth` counts the items of a run with this entry and scale."""
    name = f"{file_name(entry.replace('/', '.'))}@{file_name(scale)}"
    return f"{name}.{nth + 1}" if nth else name


def write_workflow(folder: Path, evidence: WorkflowEvidence) -> None:
    """Write one item into this folder; an older one is replaced as a whole.

    Raises `EvidenceProblem` when the disk refuses.
    """
    evidence = masked(evidence)
    root = folder.parent
    try:
        root.mkdir(parents=True, exist_ok=True)
        with replacing(folder) as new:
            paths = []
            for group in evidence.groups:
                path = f"{file_name(group.group)}/attempt-{group.attempt}"
                _write_group(new / path, group)
                paths.append(path)
            facts = {
                field: getattr(evidence, field)
                for field in ("entry", "scale", "kind", "kind_reason", "leftovers")
            } | {
                "schema": SCHEMA,
                "groups": paths,
                "excluded": [dataclasses.asdict(each) for each in evidence.excluded],
                "problems": [dataclasses.asdict(each) for each in evidence.problems],
            }
            if evidence.diagnosis is not None:
                facts["diagnosis"] = dataclasses.asdict(evidence.diagnosis)
            write_json(new / WORKFLOW_FILE, facts)
            write_checksums(new, [WORKFLOW_FILE, *(f"{path}/{CHECKSUMS}" for path in paths)])
    except OSError as error:
        raise EvidenceProblem(f"{folder}: cannot be written: {error}") from error


def read_workflow(folder: Path) -> WorkflowEvidence:
    """Return one item's evidence; raises `EvidenceProblem` where anything is missing or changed."""
    verify_checksums(folder)
    facts = read_json(folder / WORKFLOW_FILE, dict)
    if facts.pop("schema", None) != SCHEMA:
        raise EvidenceProblem(f"{folder / WORKFLOW_FILE}: not written as {SCHEMA}")
    paths = facts.get("groups")
    if not isinstance(paths, list) or not all(is_inside(path) for path in paths):
        raise EvidenceProblem(f"{folder / WORKFLOW_FILE}: 'groups' must list folders")
    facts["groups"] = [_read_group(folder / path) for path in paths]
    return validated(_workflow_adapter(), facts, folder / WORKFLOW_FILE)


def group_facts(group: GroupEvidence) -> dict[str, object]:
    """Return a group's facts, but for its logs, by the name of the file that holds them."""
    facts = dataclasses.asdict(dataclasses.replace(group, logs=()))
    del facts["logs"]
    files: dict[str, object] = {name: facts.pop(name) for name in _OWN_FILES}
    files["spec"] = facts.pop("manifests")
    files["clocks"] = {name: facts.pop(name) for name in _CLOCKS}
    return files | {"group": facts}


def group_from(folder: Path, logs: list[dict[str, object]]) -> GroupEvidence:
    """Return the group that `group_facts` were written of; raises `EvidenceProblem`."""
    facts = read_json(folder / "group.json", dict)
    facts |= {name: read_json(folder / f"{name}.json", list) for name in _OWN_FILES}
    facts |= read_json(folder / "clocks.json", dict)
    facts["manifests"] = read_json(folder / "spec.json", list)
    return validated(_group_adapter(), facts | {"logs": logs}, folder / "group.json")


def _write_group(folder: Path, group: GroupEvidence) -> None:
    (folder / "logs").mkdir(parents=True)
    entries, names = [], []
    for index, log in enumerate(group.logs):
        name = f"logs/{index:04}-{file_name(log.pod)}.log"
        write_bytes(folder / name, log.data)
        about = {
            field.name: getattr(log, field.name)
            for field in dataclasses.fields(log)
            if field.name != "data"
        }
        entries.append({"file": name} | about)
        names.append(name)
    for file, value in (group_facts(group) | {"logs": entries}).items():
        write_json(folder / f"{file}.json", value)
        names.append(f"{file}.json")
    write_checksums(folder, names)
    sync_folder(folder / "logs")


def _read_group(folder: Path) -> GroupEvidence:
    verify_checksums(folder)
    logs = []
    for entry in read_json(folder / "logs.json", list):
        if not isinstance(entry, dict) or not is_inside(entry.get("file")):
            raise EvidenceProblem(f"{folder / 'logs.json'}: each log must name its file")
        data = read_bytes(folder / entry.pop("file"))
        logs.append({**entry, "data": data})
    return group_from(folder, logs)


@cache
def _workflow_adapter() -> "TypeAdapter[WorkflowEvidence]":
    from pydantic import TypeAdapter

    return TypeAdapter(WorkflowEvidence)


@cache
def _group_adapter() -> "TypeAdapter[GroupEvidence]":
    from pydantic import TypeAdapter

    return TypeAdapter(GroupEvidence)
