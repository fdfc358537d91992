"""Which kubeconfig files are our own to replace and to delete: others are somebody's clusters."""

import json
import os
from pathlib import Path

OWN_PREFIX = "pytest-cre-"
_MOST_BYTES = 1 << 20  # ours have a few thousand


def check_replaceable(path: Path) -> None:
    """Raise `ValueError` in one line where the path is taken by anything but a file of ours."""
    if os.path.lexists(path) and not _is_own(path):
        raise ValueError(
            f"kubeconfig {path}: exists and is not one of pytest-cre's; delete it or name another"
        )


def delete_own(path: Path, content: bytes) -> None:
    """Delete the file if it still is what we wrote, byte for byte."""
    if path.is_file() and _read(path) == content:
        path.unlink(missing_ok=True)


def _is_own(path: Path) -> bool:
    """Return whether every cluster, context and user of the file is ours.

    Ours are JSON: a file that another tool has written again is YAML, and no longer ours.
    """
    if path.is_symlink() or not path.is_file():
        return False
    try:
        config = json.loads(_read(path))
        names = [
            each["name"] for part in ("clusters", "contexts", "users") for each in config[part]
        ]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    return bool(names) and all(str(name).startswith(OWN_PREFIX) for name in names)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES)
