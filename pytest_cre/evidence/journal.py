"""Evidence of an item that still runs, on disk up to the last flush: what a kill -9 leaves.

    DIR/<item>.partial/<group>/attempt-<n>/{group,pods,events,problems,clocks,spec,logs}.json
                                          /logs/<nnnn>-<pod>.log

Logs only grow. `logs.json` tells how much of each had reached the disk, with its checksum; it is
replaced last. The folder goes away when the item's whole evidence has been written.
"""

import dataclasses
import hashlib
import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_cre.errors import EvidenceProblem
from pytest_cre.evidence.files import file_name, read_bytes, read_json, replace_json
from pytest_cre.evidence.model import GroupEvidence, LogStream, Problem, WorkflowEvidence
from pytest_cre.evidence.store import group_facts, group_from, masked_group

if TYPE_CHECKING:
    from hashlib import _Hash

SUFFIX = ".partial"
CUT_OFF = Problem(
    code="interrupted", message="the run was killed; this is the evidence up to its last flush"
)


class GrowingLog(Protocol):
    """The log of a container that still runs."""

    @property
    def stream(self) -> LogStream:
        """Return whose log it is, without the bytes."""

    @property
    def whole_bytes(self) -> int:
        """Return the size of the whole lines, which are there for good."""

    def read(self, start: int, end: int) -> bytes:
        """Return these bytes."""


@dataclasses.dataclass(slots=True)
class _Written:
    path: str
    size: int
    digest: "_Hash"


class Journal:
    """One item's partial evidence. Safe for the threads of its groups."""

    def __init__(self, item_folder: Path) -> None:
        self._folder = item_folder.with_name(item_folder.name + SUFFIX)
        self._lock = threading.Lock()
        self._logs: dict[tuple[Path, str, int], _Written] = {}
        shutil.rmtree(self._folder, ignore_errors=True)

    def flush(self, evidence: GroupEvidence, logs: Sequence[GrowingLog]) -> None:
        """Write what is known of an attempt; `evidence` comes without logs.

        Raises `EvidenceProblem` when the disk refuses.
        """
        folder = self._folder / file_name(evidence.group) / f"attempt-{evidence.attempt}"
        with self._lock:
            try:
                (folder / "logs").mkdir(parents=True, exist_ok=True)
                entries = [self._append(folder, log) for log in logs]
                for name, value in group_facts(masked_group(evidence)).items():
                    replace_json(folder / f"{name}.json", value)
                replace_json(folder / "logs.json", entries)
            except OSError as error:
                raise EvidenceProblem(f"{folder}: cannot be written: {error}") from error

    def discard(self) -> None:
        """Delete the partial evidence: the whole has been written, or nothing may be kept."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _append(self, folder: Path, log: GrowingLog) -> dict[str, object]:
        stream = log.stream
        key = (folder, stream.pod, stream.restart_count)
        if key not in self._logs:
            number = sum(known[0] == folder for known in self._logs)
            path = f"logs/{number:04}-{file_name(stream.pod)}.log"
            self._logs[key] = _Written(path, 0, hashlib.sha256())
        written = self._logs[key]
        end = log.whole_bytes
        if end > written.size or not (folder / written.path).exists():
            news = log.read(written.size, end)
            with (folder / written.path).open("ab") as file:
                file.write(news)
                file.flush()
                os.fsync(file.fileno())
            written.digest.update(news)
            written.size = end
        return {
            "file": written.path,
            "size": written.size,
            "sha256": written.digest.hexdigest(),
        } | {
            field.name: getattr(stream, field.name)
            for field in dataclasses.fields(stream)
            if field.name != "data"
        }


def has_partial(item_folder: Path) -> bool:
    """Return whether an item was cut off and left partial evidence."""
    return item_folder.with_name(item_folder.name + SUFFIX).is_dir()


def read_partial(item_folder: Path, *, entry: str, scale: str) -> WorkflowEvidence:
    """Return what a killed run left of an item; each group carries the problem `interrupted`.

    Groups whose first flush was cut off are left out. Raises `EvidenceProblem` for damage.
    """
    root = item_folder.with_name(item_folder.name + SUFFIX)
    folders = sorted(path.parent for path in root.glob("*/attempt-*/logs.json"))
    groups = []
    for folder in folders:
        group = group_from(folder, [_log_from(folder, each) for each in _log_entries(folder)])
        groups.append(dataclasses.replace(group, problems=(*group.problems, CUT_OFF)))
    return WorkflowEvidence(
        entry=entry,
        scale=scale,
        groups=tuple(groups),
        problems=() if groups else (CUT_OFF,),
    )


def _log_entries(folder: Path) -> list[dict[str, object]]:
    entries = read_json(folder / "logs.json", list)
    if not all(isinstance(each, dict) for each in entries):
        raise EvidenceProblem(f"{folder / 'logs.json'}: must hold a list of mappings")
    return entries


def _log_from(folder: Path, entry: dict[str, object]) -> dict[str, object]:
    known = dict(entry)
    path, size = str(known.pop("file", "")), known.pop("size", None)
    digest = known.pop("sha256", None)
    if not path.startswith("logs/") or ".." in path or not isinstance(size, int):
        raise EvidenceProblem(f"{folder / 'logs.json'}: each log must name its file and size")
    data = read_bytes(folder / path)[:size]
    if hashlib.sha256(data).hexdigest() != digest:
        raise EvidenceProblem(f"{folder / path}: was changed after the run (checksum differs)")
    return {**known, "data": data}
