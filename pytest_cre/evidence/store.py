"""Evidence on disk: written atomically, read back equal, damage noticed.

    DIR/<domain>.<variant>@<scale>/workflow.json
                                  /SHA256SUMS
                                  /<group>/attempt-<n>/{group,pods,events,problems,clocks,spec,logs}.json
                                                      /logs/<nnnn>-<pod>.log
                                                      /SHA256SUMS

Each `SHA256SUMS` can be checked with `sha256sum -c`; that of the item covers those of its groups.
"""

import dataclasses
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_cre.errors import EvidenceProblem
from pytest_cre.evidence.masking import mask_manifest
from pytest_cre.evidence.model import GroupEvidence, WorkflowEvidence

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCHEMA = "cre.evidence/1"
CHECKSUMS = "SHA256SUMS"
WORKFLOW_FILE = "workflow.json"
_Facts = TypeVar("_Facts")
_Json = TypeVar("_Json", dict[str, Any], list[Any])
_CLOCKS = ("queue_s", "start_s", "run_s")
_OWN_FILES = ("pods", "events", "problems")
_CHECKSUM_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9@._/-]+)")


def masked(evidence: WorkflowEvidence) -> WorkflowEvidence:
    """Return the evidence as it may be kept; reading it back gives exactly this."""
    groups = tuple(
        dataclasses.replace(
            group, manifests=tuple(mask_manifest(manifest) for manifest in group.manifests)
        )
        for group in evidence.groups
    )
    return dataclasses.replace(evidence, groups=groups)


def write_workflow(root: Path, evidence: WorkflowEvidence) -> Path:
    """Write one item below `root` and return its folder; an older one is replaced as a whole.

    Raises `EvidenceProblem` when the disk refuses.
    """
    evidence = masked(evidence)
    folder = root / f"{_safe(evidence.entry.replace('/', '.'))}@{_safe(evidence.scale)}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _replacing(folder) as new:
            paths = []
            for group in evidence.groups:
                path = f"{_safe(group.group)}/attempt-{group.attempt}"
                _write_group(new / path, group)
                paths.append(path)
            facts = {
                field: getattr(evidence, field) for field in ("entry", "scale", "leftovers")
            } | {
                "schema": SCHEMA,
                "groups": paths,
                "excluded": [dataclasses.asdict(each) for each in evidence.excluded],
                "problems": [dataclasses.asdict(each) for each in evidence.problems],
            }
            _write_json(new / WORKFLOW_FILE, facts)
            _write_checksums(new, [WORKFLOW_FILE, *(f"{path}/{CHECKSUMS}" for path in paths)])
    except OSError as error:
        raise EvidenceProblem(f"{folder}: cannot be written: {error}") from error
    return folder


def read_workflow(folder: Path) -> WorkflowEvidence:
    """Return one item's evidence; raises `EvidenceProblem` where anything is missing or changed."""
    _verify(folder)
    facts = _read_json(folder / WORKFLOW_FILE, dict)
    if facts.pop("schema", None) != SCHEMA:
        raise EvidenceProblem(f"{folder / WORKFLOW_FILE}: not written as {SCHEMA}")
    paths = facts.get("groups")
    if not isinstance(paths, list) or not all(_is_inside(path) for path in paths):
        raise EvidenceProblem(f"{folder / WORKFLOW_FILE}: 'groups' must list folders")
    facts["groups"] = [_read_group(folder / path) for path in paths]
    return _validate(_workflow_adapter(), facts, folder / WORKFLOW_FILE)


def read_store(root: Path) -> tuple[WorkflowEvidence, ...]:
    """Return every item below `root`, or of `root` itself, sorted by folder name."""
    if (root / WORKFLOW_FILE).is_file():
        return (read_workflow(root),)
    if not root.is_dir():
        raise EvidenceProblem(f"{root}: no such folder")
    folders = sorted(path.parent for path in root.glob(f"[!.]*/{WORKFLOW_FILE}"))
    if not folders:
        raise EvidenceProblem(f"{root}: holds no evidence ({WORKFLOW_FILE} in a folder per entry)")
    return tuple(read_workflow(folder) for folder in folders)


def _write_group(folder: Path, group: GroupEvidence) -> None:
    (folder / "logs").mkdir(parents=True)
    facts = dataclasses.asdict(group)
    del facts["logs"]
    own = {name: facts.pop(name) for name in _OWN_FILES}
    own["spec"] = facts.pop("manifests")
    own["clocks"] = {name: facts.pop(name) for name in _CLOCKS}
    own["group"] = facts
    own["logs"] = []
    names = []
    for index, log in enumerate(group.logs):
        name = f"logs/{index:04}-{_safe(log.pod)}.log"
        _write_bytes(folder / name, log.data)
        entry = {"file": name} | {
            field.name: getattr(log, field.name)
            for field in dataclasses.fields(log)
            if field.name != "data"
        }
        own["logs"].append(entry)
        names.append(name)
    for name, value in own.items():
        _write_json(folder / f"{name}.json", value)
    _write_checksums(folder, [*(f"{name}.json" for name in own), *names])
    _sync_folder(folder / "logs")


def _read_group(folder: Path) -> GroupEvidence:
    _verify(folder)
    facts = _read_json(folder / "group.json", dict)
    facts |= {name: _read_json(folder / f"{name}.json", list) for name in _OWN_FILES}
    facts |= _read_json(folder / "clocks.json", dict)
    facts["manifests"] = _read_json(folder / "spec.json", list)
    logs = []
    for entry in _read_json(folder / "logs.json", list):
        if not isinstance(entry, dict) or not _is_inside(entry.get("file")):
            raise EvidenceProblem(f"{folder / 'logs.json'}: each log must name its file")
        data = _read_bytes(folder / entry.pop("file"))
        logs.append({**entry, "data": data})
    facts["logs"] = logs
    return _validate(_group_adapter(), facts, folder / "group.json")


def _workflow_adapter() -> "TypeAdapter[WorkflowEvidence]":
    from pydantic import TypeAdapter

    return TypeAdapter(WorkflowEvidence)


def _group_adapter() -> "TypeAdapter[GroupEvidence]":
    from pydantic import TypeAdapter

    return TypeAdapter(GroupEvidence)


def _validate(adapter: "TypeAdapter[_Facts]", facts: Mapping[str, object], place: Path) -> _Facts:
    from pydantic import ValidationError

    try:
        return adapter.validate_python(facts)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise EvidenceProblem(f"{place}: {where}: {first['msg']}") from error


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """Give a new folder that takes the place of `folder` at once, or leaves no trace."""
    new = folder.with_name(f".{folder.name}.new-{os.getpid()}")
    old = folder.with_name(f".{folder.name}.old-{os.getpid()}")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        _sync_folder(new)
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
        _sync_folder(folder.parent)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _write_checksums(folder: Path, names: list[str]) -> None:
    lines = [
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in sorted(names)
    ]
    _write_bytes(folder / CHECKSUMS, "".join(lines).encode())


def _verify(folder: Path) -> None:
    """Raise `EvidenceProblem` unless every file that the checksums name is there, unchanged."""
    listing = folder / CHECKSUMS
    for line in _read_bytes(listing).decode(errors="replace").splitlines():
        match = _CHECKSUM_LINE.fullmatch(line)
        if match is None or not _is_inside(match[2]):
            raise EvidenceProblem(f"{listing}: not a checksum line: {line[:80]!r}")
        path = folder / match[2]
        if hashlib.sha256(_read_bytes(path)).hexdigest() != match[1]:
            raise EvidenceProblem(f"{path}: was changed after the run (checksum differs)")


def _is_inside(path: object) -> bool:
    return (
        isinstance(path, str)
        and not path.startswith("/")
        and all(part not in ("", ".", "..") for part in path.split("/"))
    )


def _safe(text: str) -> str:
    """Return the text as part of a file name."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:120].lstrip(".") or "_"


def _write_json(path: Path, value: object) -> None:
    _write_bytes(
        path, (json.dumps(value, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()
    )


def _write_bytes(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EvidenceProblem(f"{path}: cannot be read: {error.strerror}") from error


def _read_json(path: Path, kind: type[_Json]) -> _Json:
    try:
        value = json.loads(_read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise EvidenceProblem(f"{path}: not JSON: {error}") from error
    if not isinstance(value, kind):
        raise EvidenceProblem(f"{path}: must hold a JSON {kind.__name__}")
    return value
