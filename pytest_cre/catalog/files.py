"""Files of suites and profiles: which there are, of which form each is, what it holds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Generic, TypeVar

from pydantic import BaseModel

from pytest_cre.catalog.architecture import Architecture
from pytest_cre.catalog.architecture_document import ArchitectureDocument, architecture_from
from pytest_cre.catalog.checks import (
    architecture_problems,
    entry_problems,
    platform_problems,
    profile_problems,
)
from pytest_cre.catalog.convert import entry_from, entry_name, profile_from
from pytest_cre.catalog.documents import ProfileDocument
from pytest_cre.catalog.entry import CatalogEntry
from pytest_cre.catalog.entry_document import EntryDocument
from pytest_cre.catalog.extend import extended
from pytest_cre.catalog.limits_file import (
    LimitsDocument,
    LimitsFile,
    limits_file_from,
    limits_file_problems,
)
from pytest_cre.catalog.logprofile import LogProfile
from pytest_cre.catalog.platform import Platform
from pytest_cre.catalog.platform_document import PlatformDocument, platform_from
from pytest_cre.errors import CatalogProblem
from pytest_cre.formats.yaml import YamlDocument, YamlProblem, parse_yaml, problems

LOGS, ARCHITECTURES, PLATFORMS, LIMITS = "logs", "architectures", "platforms", "limits"
ENTRIES = "suites"
PROFILES = (LOGS, ARCHITECTURES, PLATFORMS, LIMITS)
LARGEST_BYTES = 16 * 1024 * 1024
NONE: Mapping[str, Path] = MappingProxyType({})

Named = TypeVar("Named", CatalogEntry, LogProfile, Architecture, Platform, LimitsFile)


@dataclass(frozen=True, slots=True)
class Form(Generic[Named]):
    """One kind of file: its model, what it becomes, and what may be wrong with that."""

    model: type[BaseModel]
    convert: Callable[[YamlDocument, Path], Named]
    problems: Callable[[Named, YamlDocument], Iterator[str]]

    def read(self, path: Path, entries: Mapping[str, Path] = NONE) -> Named:
        """Return what the file holds; raises `CatalogProblem` for its first mistake.

        `entries` are the files of entries that it may extend, by name.
        """
        document = read_document(path, entries)
        try:
            found = self.convert(document, path)
        except YamlProblem as problem:
            raise CatalogProblem(str(problem)) from None
        for line in self.problems(found, document):
            raise CatalogProblem(line)
        return found

    def lint(
        self, path: Path, entries: Mapping[str, Path] = NONE
    ) -> tuple[Named | None, tuple[str, ...]]:
        """Return what the file holds, where that can be told, and a line per mistake."""
        try:
            document = read_document(path, entries)
        except CatalogProblem as problem:
            return None, (str(problem),)
        lines = problems(document, self.model)
        if lines:
            return None, lines
        found = self.convert(document, path)
        return found, tuple(self.problems(found, document))


ENTRY_FORM = Form(EntryDocument, entry_from, entry_problems)
PROFILE_FORM = Form(ProfileDocument, profile_from, profile_problems)
ARCHITECTURE_FORM = Form(ArchitectureDocument, architecture_from, architecture_problems)
PLATFORM_FORM = Form(PlatformDocument, platform_from, platform_problems)
LIMITS_FORM = Form(LimitsDocument, limits_file_from, limits_file_problems)


def read_document(path: Path, entries: Mapping[str, Path] = NONE) -> YamlDocument:
    """Return the file's only document, with what it extends; raises `CatalogProblem`."""
    document = _own_document(path)
    try:
        return extended(document, entries, _own_document)
    except YamlProblem as problem:
        raise CatalogProblem(str(problem)) from None


def read_text(path: Path) -> str:
    """Return what a file holds; raises `CatalogProblem` where it cannot be read as text."""
    place = f"{shown(path)}:1:1"
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise CatalogProblem(f"{place}: larger than {LARGEST_BYTES} bytes")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise CatalogProblem(f"{place}: byte {problem.start} is not UTF-8") from None
    except OSError as problem:
        raise CatalogProblem(f"{place}: cannot be read: {problem.strerror}") from None


# An entry that many extend is parsed once; nobody changes what a document holds.
_parsed = lru_cache(maxsize=256)(parse_yaml)


def _own_document(path: Path) -> YamlDocument:
    try:
        return _parsed(read_text(path), shown(path))
    except YamlProblem as problem:
        raise CatalogProblem(str(problem)) from None


def suite_files(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield each `<domain>/<variant>.yaml`; raises `CatalogProblem` for a folder without any."""
    for folder in _distinct(folders):
        found = [
            path
            for path in _yaml_files(folder, "*/*")
            if not path.parent.name.startswith((".", "_"))
        ]
        if not found:
            words = "a folder that holds" if folder.is_dir() else "a folder, with"
            raise CatalogProblem(f"{shown(folder)}: a catalog is {words} <domain>/<variant>.yaml")
        yield from found


def entry_files(paths: Iterable[Path]) -> dict[str, Path]:
    """Return files of entries by the names that their paths give them."""
    return {entry_name(path): path for path in paths}


def profile_files(folders: Sequence[Path], kind: str) -> Iterator[Path]:
    """Yield each `<kind>/<name>.yaml`; raises `CatalogProblem` for what is no profiles folder.

    A file in place of a folder holds limits.
    """
    for folder in _distinct(folders):
        if folder.is_file():
            if kind == LIMITS:
                yield folder
            continue
        if not any((folder / each).is_dir() for each in PROFILES):
            words = f"{LOGS}/, {ARCHITECTURES}/, {PLATFORMS}/ or {LIMITS}/, or a file of limits"
            raise CatalogProblem(f"{shown(folder)}: profiles are a folder that holds {words}")
        yield from _yaml_files(folder, f"{kind}/*")


def shown(path: Path) -> str:
    """Return a path as messages show it: from the current folder where it lies below."""
    absolute = path.resolve()
    try:
        return absolute.relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):  # elsewhere, or the current folder is gone
        return absolute.as_posix()


def _distinct(folders: Sequence[Path]) -> list[Path]:
    """Return the folders in order, each once, by whatever way it is named."""
    return list({folder.resolve(): folder for folder in reversed(folders)}.values())[::-1]


def _yaml_files(folder: Path, pattern: str) -> list[Path]:
    for path in sorted(folder.glob(f"{pattern}.yml")):
        raise CatalogProblem(f"{shown(path)}:1:1: is not read; rename it to {path.stem}.yaml")
    return sorted(folder.glob(f"{pattern}.yaml"))
