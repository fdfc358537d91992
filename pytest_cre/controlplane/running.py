"""Which control planes `up` has started, so that `down` finds them: one locked file each."""

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pytest_cre.controlplane.recipe import cache_folder
from pytest_cre.errors import ClusterProblem

_POLL_S = 0.05


@contextmanager
def registered(environ: Mapping[str, str], programs: Path | None) -> Iterator[None]:
    """Be known to `down` while the context lasts; the kernel ends it if we are killed."""
    folder = _folder(environ)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{os.getpid()}.json"
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump({"pid": os.getpid(), "programs": _name(programs)}, file)
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def end_all(
    environ: Mapping[str, str], programs: Path | None, *, patience_s: float
) -> tuple[int, ...]:
    """End what runs from this folder of programs, None: all; return the process ids.

    Raises `ClusterProblem` when one does not end in time.
    """
    ended = []
    for path in sorted(_folder(environ).glob("*.json")):
        pid = _living(path, programs)
        if pid is None:
            continue
        os.kill(pid, signal.SIGTERM)
        deadline_s = time.monotonic() + patience_s
        while _living(path, programs) is not None:
            if time.monotonic() > deadline_s:
                raise ClusterProblem(f"control plane: process {pid} still runs")
            time.sleep(_POLL_S)
        ended.append(pid)
    return tuple(ended)


def _living(path: Path, programs: Path | None) -> int | None:
    """Return the process of a file that is still locked; removes one that nobody holds."""
    try:
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                record = json.loads(file.read())
                is_meant = programs is None or record["programs"] == _name(programs)
                return int(record["pid"]) if is_meant else None
            path.unlink(missing_ok=True)
    except (FileNotFoundError, ValueError):
        pass  # it ended just now, or only just started
    return None


def _folder(environ: Mapping[str, str]) -> Path:
    return cache_folder(environ) / "running"


def _name(programs: Path | None) -> str | None:
    return None if programs is None else str(programs.resolve())
