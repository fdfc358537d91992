"""Every mistake of suites and profiles at once, and what they would better say otherwise."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_cre.catalog.advice import entry_advice, override_text_advice
from pytest_cre.catalog.documents import keys_of
from pytest_cre.catalog.entry_document import EntryDocument
from pytest_cre.catalog.files import (
    ARCHITECTURE_FORM,
    ARCHITECTURES,
    ENTRIES,
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
from pytest_cre.catalog.limit_advice import entry_limit_advice, limit_advice
from pytest_cre.catalog.loader import (
    Catalog,
    catalog_problems,
    double_words,
    load_catalog,
    shipped_profiles,
    shipped_suites,
    unknown_owner_words,
)
from pytest_cre.catalog.override_advice import (
    architecture_override_advice,
    entry_override_advice,
    platform_advice,
)
from pytest_cre.catalog.profile_advice import profile_advice
from pytest_cre.catalog.site_document import SiteDocument
from pytest_cre.errors import CatalogProblem, UsageProblem
from pytest_cre.formats.yaml import YamlDocument, problems

if TYPE_CHECKING:
    from pytest_cre.catalog.architecture import Architecture
    from pytest_cre.catalog.entry import CatalogEntry
    from pytest_cre.catalog.limit import Limit
    from pytest_cre.catalog.limits_file import LimitsFile
    from pytest_cre.catalog.logprofile import LogProfile
    from pytest_cre.catalog.platform import Platform

    CheckPods = Callable[[Iterable[CatalogEntry | Platform | Architecture], Catalog], Iterator[str]]

SITES, SCENARIOS = "sites", "scenarios"
_IS_PROFILE = re.compile(r"^kind:\s*LogProfile\b", re.MULTILINE)
_IS_ARCHITECTURE = re.compile(r"^productLabels:", re.MULTILINE)
_IS_LIMITS = re.compile(r"^architecture:", re.MULTILINE)
_IS_SCENARIO = re.compile(
    r"^(nodes|faults|links|apiFaults|derivedLimits|recordings|onlyRecordings|processes):",
    re.MULTILINE,
)
_IS_PLATFORM = re.compile(r"^(hardware|detect):", re.MULTILINE)
_IS_SITE = re.compile(
    rf"^({'|'.join(sorted(keys_of(SiteDocument) - keys_of(EntryDocument)))}):", re.MULTILINE
)
_PLACE = re.compile(r"(.*?):(\d+):(\d+): ")


class Linted(NamedTuple):
    """What was found: how many files there are, a line per finding, and which could not be read."""

    files: int
    lines: tuple[str, ...]
    unread: tuple[str, ...]


def lint_files(
    paths: Sequence[Path],
    *,
    today: date | None = None,
    check_scenario: Callable[[Path], Iterator[str]] | None = None,
    check_pods: "CheckPods | None" = None,
) -> Linted:
    """Return how many files there are and a line per finding, by file and place.

    `paths` are files and folders. A file in a folder `logs`, `architectures`, `platforms` or
    `limits` is a profile, as is one that says so; site files and scenarios are told by their keys;
    any other is an entry. Names that the files take from the shipped catalog are found there. Of a
    file that cannot be read nothing is looked at beside others. `today` None: dates are not looked
    at. `check_scenario` yields what is wrong with a scenario, `check_pods` which overrides no pod can
    take. Raises `UsageProblem` for a path that holds no YAML file.
    """
    files = _yaml_files(paths)
    misplaced = [path for folder in paths if folder.is_dir() for path in _misplaced(folder)]
    entries = (path for path in files if path.suffix == ".yaml" and _kind_of(path) == ENTRIES)
    lint = _Lint(entries, today, check_scenario, check_pods)
    for path in files:
        lint.add(path)
    lint.add_between()
    lint.lines += (
        f"{shown(path)}:1:1: is not read; a catalog holds <domain>/<variant>.yaml, move it there"
        for path in misplaced
    )
    lines = tuple(sorted(set(lint.lines), key=_order))
    return Linted(len(files), lines, tuple(lint.unread_files))


class _Lint:
    """What the files hold, as far as it can be read, and what is wrong with it."""

    def __init__(
        self,
        entries: Iterable[Path],
        today: date | None,
        check_scenario: Callable[[Path], Iterator[str]] | None,
        check_pods: "CheckPods | None",
    ) -> None:
        self.today = today
        self.check_scenario = check_scenario
        self.check_pods = check_pods
        self.lines: list[str] = []
        self.entry_files = entry_files((*suite_files([shipped_suites()]), *entries))
        self.unread: set[str] = set()  # kinds of files of which one could not be read
        self.unread_files: list[str] = []
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
                is_read = self._take(path, ARCHITECTURE_FORM, self.architectures, _of_pods)
            case "platforms":
                is_read = self._take(path, PLATFORM_FORM, self.platforms, _of_pods)
            case "limits":
                is_read = self._take(path, LIMITS_FORM, self.limits_files, _no_advice)
            case "sites":
                is_read = self._take_site(path)
            case "scenarios":
                self.lines += self.check_scenario(path) if self.check_scenario else ()
                is_read = True  # nothing else names it
            case _:
                is_read = self._take(path, ENTRY_FORM, self.entries, entry_advice)
        if not is_read:
            self.unread.add(kind)
            self.unread_files.append(shown(path))

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
        if not lines or form is not PROFILE_FORM:  # a pattern may be one that RE2 refuses
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
        own = {
            _file_of(each.place)
            for named in (self.entries, self.architectures, self.platforms)
            for each in named
        }
        told = catalog_problems(catalog, unread=self.unread)
        self.lines += (line for line in told if _file_of(line) in own)
        for architecture in self.architectures:
            self._look_at_limits(architecture.limits, architecture, catalog)
            self.lines += architecture_override_advice(architecture, catalog, self.unread)
        for file in self.limits_files:
            self._look_at_file(file, catalog)
        for entry in self.entries:
            has_all = ARCHITECTURES not in self.unread
            self.lines += entry_limit_advice(
                entry, catalog, has_all_architectures=has_all, today=self.today
            )
            self.lines += entry_override_advice(entry, catalog, self.unread)
        for platform in self.platforms:
            self.lines += platform_advice(platform, catalog, self.unread)
        if self.check_pods is not None:
            for owners in (self.entries, self.architectures, self.platforms):
                self.lines += self.check_pods(owners, catalog)

    def _look_at_file(self, file: "LimitsFile", catalog: Catalog) -> None:
        owner = catalog.architectures.get(file.architecture)
        if owner is not None:
            self._look_at_limits(file.limits, owner, catalog)
        elif ARCHITECTURES not in self.unread:
            self.lines.append(unknown_owner_words(file, catalog.architectures))

    def _look_at_limits(
        self, limits: "Sequence[Limit]", owner: "Architecture", catalog: Catalog
    ) -> None:
        self.lines += limit_advice(
            limits,
            catalog,
            [owner],
            has_all_entries=ENTRIES not in self.unread,
            today=self.today,
        )

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


def _misplaced(folder: Path) -> list[Path]:
    """Return files of entries that lie deeper or higher than the others, where none is read."""
    found: dict[bool, list[Path]] = {True: [], False: []}
    for path in sorted(folder.rglob("*.yaml")):
        parts = path.relative_to(folder).parts
        if not any(part.startswith((".", "_")) for part in parts) and _kind_of(path) == ENTRIES:
            found[len(parts) == 2].append(path)
    return found[False] if found[True] else []


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
    if _IS_SCENARIO.search(text):
        return SCENARIOS
    if _IS_PLATFORM.search(text):
        return PLATFORMS
    return SITES if _IS_SITE.search(text) else ENTRIES


def _of_pods(named: "Architecture | Platform", document: YamlDocument) -> Iterator[str]:
    """Yield what is said of overrides alone; the rest is looked at beside the entries."""
    yield from override_text_advice(named.overrides, document)


def _no_advice(_named: object, _document: YamlDocument) -> Iterator[str]:
    """Yield nothing: limits are looked at beside the entries they are for."""
    yield from ()


def _file_of(place: str) -> str:
    found = _PLACE.match(f"{place}: ")
    return found[1] if found else place


def _order(line: str) -> tuple[str, int, int, str]:
    found = _PLACE.match(line)
    return (found[1], int(found[2]), int(found[3]), line) if found else (line, 0, 0, line)
