"""Files of suites and profiles: which there are, of which form each is, what it holds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel

from pytest_cre.catalog.architecture import Architecture
from pytest_cre.catalog.checks import architecture_problems, entry_problems, profile_problems
from pytest_cre.catalog.convert import architecture_from, entry_from, profile_from
from pytest_cre.catalog.documents import EntryDocument, ProfileDocument
from pytest_cre.catalog.entry import CatalogEntry
from pytest_cre.catalog.limit_document import ArchitectureDocument
from pytest_cre.catalog.logprofile import LogProfile
from pytest_cre.errors import CatalogProblem
from pytest_cre.formats.yaml import YamlDocument, YamlProblem, parse_yaml, problems

LOGS, ARCHITECTURES = "logs", "architectures"
LARGEST_BYTES = 16 * 1024 * 1024

Named = TypeVar("Named", CatalogEntry, LogProfile, Architecture)


@dataclass(frozen=True, slots=True)
class Form(Generic[Named]):
    """One kind of file: its model, what it becomes, and what may be wrong with that."""

    model: type[BaseModel]
    convert: Callable[[YamlDocument, Path], Named]
    problems: Callable[[Named, YamlDocument], Iterator[str]]

    def read(self, path: Path) -> Named:
        """Return what the file holds; raises `CatalogProblem` for its first mistake."""
        document = read_document(path)
        try:
            found = self.convert(document, path)
        except YamlProblem as problem:
            raise CatalogProblem(str(problem)) from None
        for line in self.problems(found, document):
            raise CatalogProblem(line)
        return found

    def lint(self, path: Path) -> tuple[Named | None, tuple[str, ...]]:
        """Return what the file holds, where that can be told, and a line per mistake."""
        try:
            document = read_document(path)
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


def read_document(path: Path) -> YamlDocument:
    """Return the file's only document; raises `CatalogProblem`."""
    place = f"{shown(path)}:1:1"
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise CatalogProblem(f"{place}: larger than {LARGEST_BYTES} bytes")
        return parse_yaml(path.read_text(encoding="utf-8"), shown(path))
    except YamlProblem as problem:
        raise CatalogProblem(str(problem)) from None
    except UnicodeDecodeError as problem:
        raise CatalogProblem(f"{place}: byte {problem.start} is not UTF-8") from None
    except OSError as problem:
        raise CatalogProblem(f"{place}: cannot be read: {problem.strerror}") from None


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


def profile_files(folders: Sequence[Path], kind: str) -> Iterator[Path]:
    """Yield each `<kind>/<name>.yaml`; raises `CatalogProblem` for what is no profiles folder."""
    for folder in _distinct(folders):
        if not any((folder / each).is_dir() for each in (LOGS, ARCHITECTURES)):
            raise CatalogProblem(
                f"{shown(folder)}: profiles are a folder that holds {LOGS}/ or {ARCHITECTURES}/"
            )
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
