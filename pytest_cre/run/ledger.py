"""What this process is about to create, and did: on disk before it happens.

One JSON line per step, so that after `kill -9` a later sweep knows what to look for. What is about
to be created is on the disk first; what came of it may be lost with the machine, for a sweep finds
that out. One file per process; a torn last line is ignored.
"""

import json
import os
import platform
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_cre.errors import EvidenceProblem

SUFFIX = ".ledger.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An object of ours. `uid` None: the create was announced, its answer never arrived."""

    api_version: str
    kind: str
    namespace: str
    name: str
    run_id: str
    uid: str | None = None
    is_deleted: bool = False
    is_kept: bool = False  # the user asked to keep it

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return what identifies the object in the cluster besides its UID."""
        return (self.api_version, self.kind, self.namespace, self.name)


class Ledger:
    """The ledger file of this process; safe for threads. Raises `EvidenceProblem` on disk trouble."""

    def __init__(self, path: Path, run_id: str) -> None:
        self.path = path
        self.run_id = run_id
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise EvidenceProblem(f"ledger {path}: cannot be opened: {error.strerror}") from error
        self._append({"step": "open", "run": run_id, "host": platform.node(), "pid": os.getpid()})

    def announce(self, manifest: Mapping[str, object]) -> Recorded:
        """Record, before the request is sent, that the manifest's object will be created."""
        recorded = _recorded(manifest, self.run_id)
        self._append(_line("create", recorded), is_synced=True)
        return recorded

    def created(self, recorded: Recorded, uid: str) -> Recorded:
        """Record the UID that the cluster gave the object."""
        recorded = replace(recorded, uid=uid)
        self._append(_line("created", recorded))
        return recorded

    def deleted(self, recorded: Recorded) -> None:
        """Record that the object is gone."""
        self._append(_line("deleted", recorded))

    def keep(self, manifests: Iterable[Mapping[str, object]]) -> None:
        """Record that the user wants the objects of these manifests to stay."""
        for manifest in manifests:
            self._append(_line("kept", _recorded(manifest, self.run_id)))

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def _append(self, line: Mapping[str, object], *, is_synced: bool = False) -> None:
        data = (json.dumps(line, sort_keys=True) + "\n").encode()
        try:
            with self._lock:
                os.write(self._descriptor, data)
                if is_synced:
                    os.fsync(self._descriptor)
        except OSError as error:
            raise EvidenceProblem(f"ledger {self.path}: cannot be written: {error}") from error


def _recorded(manifest: Mapping[str, object], run_id: str) -> Recorded:
    metadata = manifest.get("metadata")
    fields = metadata if isinstance(metadata, Mapping) else {}
    return Recorded(
        api_version=str(manifest.get("apiVersion", "")),
        kind=str(manifest.get("kind", "")),
        namespace=str(fields.get("namespace", "")),
        name=str(fields.get("name", "")),
        run_id=run_id,
    )


def _line(step: str, recorded: Recorded) -> Mapping[str, object]:
    return {
        "step": step,
        "apiVersion": recorded.api_version,
        "kind": recorded.kind,
        "namespace": recorded.namespace,
        "name": recorded.name,
        "run": recorded.run_id,
        "uid": recorded.uid,
    }


def read_ledger(path: Path) -> tuple[Recorded, ...]:
    """Return each object of a ledger in its last known state, in the order of creation."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise EvidenceProblem(f"ledger {path}: cannot be read: {error.strerror}") from error
    found: dict[tuple[str, str, str, str], Recorded] = {}
    for line in lines:
        recorded = _parse(line)
        if recorded is not None:
            known = found.get(recorded.key)
            uid = recorded.uid or (known.uid if known and not known.is_deleted else None)
            found[recorded.key] = replace(recorded, uid=uid)
    return tuple(found.values())


def read_ledgers(
    paths: Iterable[Path], run_id: str, *, has_deleted: bool = False
) -> tuple[Recorded, ...]:
    """Return the objects of one run that these ledgers know, without those that were deleted."""
    return tuple(
        recorded
        for path in sorted(paths)
        for recorded in read_ledger(path)
        if recorded.run_id == run_id and (has_deleted or not recorded.is_deleted)
    )


def has_kept(paths: Iterable[Path]) -> bool:
    """Return whether the user asked to keep an object that one of these ledgers knows."""
    return any(recorded.is_kept for path in sorted(paths) for recorded in read_ledger(path))


def ledger_folder(environ: Mapping[str, str]) -> Path:
    """Return where ledgers lie: in the user's state folder, where `pytest-cre cleanup` looks."""
    state = environ.get("XDG_STATE_HOME") or f"{environ.get('HOME') or '/tmp'}/.local/state"  # noqa: S108
    return Path(state) / "pytest-cre"


def ledgers_of(folder: Path, run_id: str) -> tuple[Path, ...]:
    """Return the ledgers of a run, of all its processes."""
    return tuple(path for path, opened in _opened_in(folder) if opened.run_id == run_id)


def ended_runs(folder: Path) -> list[str]:
    """Return the runs that have ledgers here, all of processes of this host that have ended.

    The folder may lie on a disk that several hosts share: of their processes nothing is known.
    """
    ended: dict[str, bool] = {}
    for _, opened in _opened_in(folder):
        has_ended = opened.host == platform.node() and not _lives(opened.process_id)
        ended[opened.run_id] = ended.get(opened.run_id, True) and has_ended
    return [run_id for run_id, has_ended in ended.items() if has_ended]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """The first line of a ledger: who writes it."""

    run_id: str
    host: str
    process_id: int


def _opened_in(folder: Path) -> list[tuple[Path, _Opened]]:
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            with path.open("rb") as file:
                fields = json.loads(file.readline(4096))
            opened = _Opened(
                run_id=str(fields["run"]), host=str(fields["host"]), process_id=int(fields["pid"])
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue  # not a ledger, or one without any object in it
        found.append((path, opened))
    return found


def _lives(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _parse(line: bytes) -> Recorded | None:
    """Return what a line says, or None for one that was torn by a crash."""
    try:
        fields = json.loads(line)
        uid = fields["uid"]
        return Recorded(
            api_version=str(fields["apiVersion"]),
            kind=str(fields["kind"]),
            namespace=str(fields["namespace"]),
            name=str(fields["name"]),
            run_id=str(fields["run"]),
            uid=uid if isinstance(uid, str) else None,
            is_deleted=fields["step"] == "deleted",
            is_kept=fields["step"] == "kept",
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
