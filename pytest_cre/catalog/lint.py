"""Every mistake of suites and profiles at once, and what they would better say otherwise."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.catalog.advice import entry_advice, limit_advice, profile_advice
from pytest_cre.catalog.files import (
    ARCHITECTURE_FORM,
    ARCHITECTURES,
    ENTRY_FORM,
    LIMITS,
    LIMITS_FORM,
    LOGS,
    PLATFORM_FORM,
    PLATFORMS,
    PROFILE_FORM,
    PROFILES,
    Form,
    Named,
    entry_files,
    read_document,
    shown,
    suite_files,
)
from pytest_cre.catalog.loader import (
    Catalog,
    catalog_problems,
    double_words,
    load_catalog,
    shipped_profiles,
    shipped_suites,
    with_limits,
)
from pytest_cre.catalog.override_advice import (
    architecture_override_advice,
    entry_override_advice,
    platform_advice,
)
from pytest_cre.catalog.site_document import SiteDocument
from pytest_cre.errors import CatalogProblem, UsageProblem
from pytest_cre.formats.yaml import YamlDocument, problems

if TYPE_CHECKING:
    from pytest_cre.catalog.architecture import Architecture
    from pytest_cre.catalog.entry import CatalogEntry
    from pytest_cre.catalog.limits_file import LimitsFile
    from pytest_cre.catalog.logprofile import LogProfile
    from pytest_cre.catalog.platform import Platform

ENTRIES, SITES = "suites", "sites"
_IS_PROFILE = re.compile(r"^kind:\s*LogProfile\b", re.MULTILINE)
_IS_ARCHITECTURE = re.compile(r"^productLabels:", re.MULTILINE)
_IS_LIMITS = re.compile(r"^architecture:", re.MULTILINE)
_IS_PLATFORM = re.compile(r"^(hardware|detect):", re.MULTILINE)
_IS_SITE = re.compile(
    r"^(images|imagePullSecrets|serviceAccountName|priorityClassName|queue|proxy):", re.MULTILINE
)
_PLACE = re.compile(r"(.*?):(\d+):(\d+): ")


def lint_files(paths: Sequence[Path]) -> tuple[int, tuple[str, ...]]:
    """Return how many files there are and a line per finding, by file and place.

    `paths` are files and folders. A file in a folder `logs`, `architectures` or `platforms` is a
    profile, as is one that says so; a site file is told by its keys; any other is an entry. Names that the files take from the shipped catalog are
    found there. Raises `UsageProblem` for a path that holds no YAML file.
    """
    files = _yaml_files(paths)
    lint = _Lint(path for path in files if path.suffix == ".yaml" and _kind_of(path) == ENTRIES)
    for path in files:
        lint.add(path)
    lint.add_between()
    return len(files), tuple(sorted(set(lint.lines), key=_order))


class _Lint:
    """What the files hold, as far as it can be read, and what is wrong with it."""

    def __init__(self, entries: Iterable[Path]) -> None:
        self.lines: list[str] = []
        self.entry_files = entry_files((*suite_files([shipped_suites()]), *entries))
        self.unread: set[str] = set()  # kinds of files of which one could not be read
        self.entries: list[CatalogEntry] = []
        self.log_profiles: list[LogProfile] = []
        self.architectures: list[Architecture] = []
        self.platforms: list[Platform] = []
        self.limits_files: list[LimitsFile] = []

    def add(self, path: Path) -> None:
        """Read a file, alone."""
        if path.suffix != ".yaml":
            self.lines.append(f"{shown(path)}:1:1: is not read; rename it to {path.stem}.yaml")
            return
        match kind := _kind_of(path):
            case "logs":
                is_read = self._take(path, PROFILE_FORM, self.log_profiles, profile_advice)
            case "architectures":
                is_read = self._take(path, ARCHITECTURE_FORM, self.architectures, _no_advice)
            case "platforms":
                is_read = self._take(path, PLATFORM_FORM, self.platforms, _no_advice)
            case "limits":
                is_read = self._take(path, LIMITS_FORM, self.limits_files, _no_advice)
            case "sites":
                is_read = self._take_site(path)
            case _:
                is_read = self._take(path, ENTRY_FORM, self.entries, entry_advice)
        if not is_read:
            self.unread.add(kind)

    def _take(
        self,
        path: Path,
        form: Form[Named],
        kept: list[Named],
        advice: Callable[[Named, YamlDocument], Iterator[str]],
    ) -> bool:
        found, lines = form.lint(path, self.entry_files)
        self.lines += lines
        if found is None:
            return False
        kept.append(found)
        if not lines:
            self.lines += advice(found, read_document(path, self.entry_files))
        return True

    def _take_site(self, path: Path) -> bool:
        try:
            self.lines += problems(read_document(path), SiteDocument)
        except CatalogProblem as problem:
            self.lines.append(str(problem))
        return True  # nothing else names it

    def add_between(self) -> None:
        """Look at the files together and beside the shipped catalog.

        A name is not called unknown while a file that may hold it could not be read.
        """
        try:
            shipped = load_catalog(suites=(shipped_suites(),), profiles=(shipped_profiles(),))
        except CatalogProblem as problem:
            self.lines.append(str(problem))
            shipped = Catalog()
        catalog = Catalog(
            entries=self._joined(shipped.entries, self.entries),
            log_profiles=self._joined(shipped.log_profiles, self.log_profiles),
            architectures=self._joined(shipped.architectures, self.architectures),
            platforms=self._joined(shipped.platforms, self.platforms),
        )
        if not self.unread & {LOGS, ARCHITECTURES}:
            own = {_file_of(each.place) for each in self.entries}
            own |= {_file_of(each.place) for each in self.architectures}
            own |= {_file_of(each.place) for each in self.platforms}
            self.lines += (line for line in catalog_problems(catalog) if _file_of(line) in own)
        if ENTRIES not in self.unread:
            for architecture in self.architectures:
                self.lines += limit_advice(catalog, architecture.name)
            for file in self.limits_files if ARCHITECTURES not in self.unread else ():
                self._look_at_limits(file, catalog)
        if not self.unread & {ENTRIES, ARCHITECTURES, PLATFORMS}:
            for architecture in self.architectures:
                self.lines += architecture_override_advice(architecture, catalog)
            for entry in self.entries:
                self.lines += entry_override_advice(entry, catalog)
            for platform in self.platforms:
                self.lines += platform_advice(platform, catalog)

    def _look_at_limits(self, file: "LimitsFile", catalog: Catalog) -> None:
        try:
            with_limits(catalog.architectures, [file])
        except CatalogProblem as problem:
            self.lines.append(str(problem))
            return
        owner = replace(catalog.architectures[file.architecture], limits=file.limits)
        alone = replace(catalog, architectures={owner.name: owner})
        self.lines += limit_advice(alone, owner.name)

    def _joined(self, shipped: Mapping[str, Named], own: Sequence[Named]) -> dict[str, Named]:
        joined = dict(shipped)
        for each in own:
            first = joined.setdefault(each.name, each)
            if first.place == each.place:
                joined[each.name] = each
            else:
                self.lines.append(double_words(each, first))
        return joined


def _yaml_files(paths: Sequence[Path]) -> list[Path]:
    files: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            below = [each for ending in ("yaml", "yml") for each in path.rglob(f"*.{ending}")]
        else:
            below = [path] if path.exists() else []
        if not below:
            raise UsageProblem(f"{shown(path)}: no YAML file here; name a file or a folder")
        files |= {each.resolve(): each for each in below}
    return [files[each] for each in sorted(files)]


def _kind_of(path: Path) -> str:
    folder = path.resolve().parent.name
    if folder in PROFILES:
        return folder
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ENTRIES  # reading it again tells why
    if _IS_PROFILE.search(text):
        return LOGS
    if _IS_ARCHITECTURE.search(text):
        return ARCHITECTURES
    if _IS_LIMITS.search(text):
        return LIMITS
    if _IS_PLATFORM.search(text):
        return PLATFORMS
    return SITES if _IS_SITE.search(text) else ENTRIES


def _no_advice(_named: object, _document: YamlDocument) -> Iterator[str]:
    """Yield nothing: limits and overrides are looked at beside the entries they are for."""
    yield from ()


def _file_of(place: str) -> str:
    found = _PLACE.match(f"{place}: ")
    return found[1] if found else place


def _order(line: str) -> tuple[str, int, int, str]:
    found = _PLACE.match(line)
    return (found[1], int(found[2]), int(found[3]), line) if found else (line, 0, 0, line)
