"""Files of evidence: written whole, synced to disk, and proven unchanged when they are read."""

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

if TYPE_CHECKING:
    from pydantic import TypeAdapter

CHECKSUMS = "SHA256SUMS"
_Facts = TypeVar("_Facts")
_Json = TypeVar("_Json", dict[str, Any], list[Any])
_CHECKSUM_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9@._/-]+)")


def validated(adapter: "TypeAdapter[_Facts]", facts: Mapping[str, object], place: Path) -> _Facts:
    """Return the facts as what the adapter makes; raises `EvidenceProblem` that names the field."""
    from pydantic import ValidationError

    try:
        return adapter.validate_python(facts)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise EvidenceProblem(f"{place}: {where}: {first['msg']}") from error


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Give a new folder that takes the place of `folder` at once, or leaves no trace."""
    new = folder.with_name(f".{folder.name}.new-{os.getpid()}")
    old = folder.with_name(f".{folder.name}.old-{os.getpid()}")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        sync_folder(new)
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
        sync_folder(folder.parent)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def replace_json(path: Path, value: object) -> None:
    """Write a file so that a reader sees the old one or the whole new one, whatever kills us."""
    new = path.with_name(f".{path.name}.new-{os.getpid()}")
    try:
        write_json(new, value)
        new.replace(path)
        sync_folder(path.parent)
    finally:
        new.unlink(missing_ok=True)


def write_checksums(folder: Path, names: list[str]) -> None:
    """Write the checksums of these files, as `sha256sum -c` reads them."""
    lines = [
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in sorted(names)
    ]
    write_bytes(folder / CHECKSUMS, "".join(lines).encode())


def verify_checksums(folder: Path) -> None:
    """Raise `EvidenceProblem` unless every file that the checksums name is there, unchanged."""
    listing = folder / CHECKSUMS
    for line in read_bytes(listing).decode(errors="replace").splitlines():
        match = _CHECKSUM_LINE.fullmatch(line)
        if match is None or not is_inside(match[2]):
            raise EvidenceProblem(f"{listing}: not a checksum line: {line[:80]!r}")
        path = folder / match[2]
        if hashlib.sha256(read_bytes(path)).hexdigest() != match[1]:
            raise EvidenceProblem(f"{path}: was changed after the run (checksum differs)")


def is_inside(path: object) -> bool:
    """Return whether the value is a relative path that stays below its folder."""
    return (
        isinstance(path, str)
        and not path.startswith("/")
        and all(part not in ("", ".", "..") for part in path.split("/"))
    )


def file_name(text: str) -> str:
    """Return the text as part of a file name."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:120].lstrip(".") or "_"


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON, with sorted keys, and sync it to disk."""
    write_bytes(
        path, (json.dumps(value, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()
    )


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file and sync it to disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes; raises `EvidenceProblem`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise EvidenceProblem(f"{path}: cannot be read: {error.strerror}") from error


def read_json(path: Path, kind: type[_Json]) -> _Json:
    """Return a file's JSON value of this type; raises `EvidenceProblem`."""
    try:
        value = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise EvidenceProblem(f"{path}: not JSON: {error}") from error
    if not isinstance(value, kind):
        raise EvidenceProblem(f"{path}: must hold a JSON {kind.__name__}")
    return value
