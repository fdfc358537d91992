"""Suites and profiles, read from folders into one checked catalog."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from pytest_cre.catalog.architecture import Architecture
from pytest_cre.catalog.entry import CatalogEntry
from pytest_cre.catalog.files import (
    ARCHITECTURE_FORM,
    ARCHITECTURES,
    ENTRY_FORM,
    LIMITS,
    LIMITS_FORM,
    LOGS,
    NONE,
    PLATFORM_FORM,
    PLATFORMS,
    PROFILE_FORM,
    Form,
    Named,
    entry_files,
    profile_files,
    suite_files,
)
from pytest_cre.catalog.limits_file import LimitsFile
from pytest_cre.catalog.logprofile import LogProfile
from pytest_cre.catalog.platform import Platform
from pytest_cre.errors import CatalogProblem, UsageProblem
from pytest_cre.formats.choices import choices_words

_PACKAGE = Path(__file__).parent.parent


def shipped_suites() -> Path:
    """Return the folder of the entries that come with the package."""
    return _PACKAGE / "suites"


def shipped_profiles() -> Path:
    """Return the folder of the profiles that come with the package."""
    return _PACKAGE / "profiles"


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Everything that can be run, read and judged; maps are sorted by name."""

    entries: Mapping[str, CatalogEntry] = field(default_factory=dict)
    log_profiles: Mapping[str, LogProfile] = field(default_factory=dict)
    architectures: Mapping[str, Architecture] = field(default_factory=dict)
    platforms: Mapping[str, Platform] = field(default_factory=dict)

    def entry(self, name: str) -> CatalogEntry:
        """Return an entry; raises `UsageProblem` that names the choices."""
        if name not in self.entries:
            raise UsageProblem(f"unknown entry {name!r}{choices_words(name, self.entries)}")
        return self.entries[name]

    def log_profile(self, name: str) -> LogProfile:
        """Return a log profile; raises `UsageProblem` that names the choices."""
        if name not in self.log_profiles:
            words = choices_words(name, self.log_profiles)
            raise UsageProblem(f"unknown log profile {name!r}{words}")
        return self.log_profiles[name]

    def architecture(self, name: str) -> Architecture:
        """Return an architecture; raises `UsageProblem` that names the choices."""
        if name not in self.architectures:
            words = choices_words(name, self.architectures)
            raise UsageProblem(f"unknown GPU architecture {name!r}{words}")
        return self.architectures[name]

    def platform(self, name: str) -> Platform:
        """Return a platform; raises `UsageProblem` that names the choices."""
        if name not in self.platforms:
            raise UsageProblem(f"unknown platform {name!r}{choices_words(name, self.platforms)}")
        return self.platforms[name]

    def check_platform(self, name: str | None) -> None:
        """Raise `UsageProblem` for a platform that is asked for and unknown."""
        if name is not None:
            self.platform(name)

    def check_architecture(self, name: str | None) -> None:
        """Raise `UsageProblem` for an architecture that is asked for and unknown."""
        if name is not None:
            self.architecture(name)

    def match(
        self, patterns: Sequence[str], *, may_be_empty: bool = False
    ) -> tuple[CatalogEntry, ...]:
        """Return the entries that any of the shell patterns names, sorted by name.

        Raises `UsageProblem` for a pattern that names none, unless that is allowed.
        """
        for pattern in patterns:
            if not may_be_empty and not any(fnmatchcase(name, pattern) for name in self.entries):
                words = choices_words(pattern, self.entries)
                raise UsageProblem(f"no catalog entry matches {pattern!r}{words}")
        return tuple(
            entry
            for name, entry in self.entries.items()
            if any(fnmatchcase(name, pattern) for pattern in patterns)
        )

    def with_entries(self, entries: Iterable[CatalogEntry]) -> "Catalog":
        """Return the catalog with exactly these entries; of one name the last counts."""
        by_name = {entry.name: entry for entry in entries}
        return replace(self, entries=dict(sorted(by_name.items())))


def load_catalog(
    *, suites: Sequence[Path], profiles: Sequence[Path], replacing: Sequence[Path] = ()
) -> Catalog:
    """Read every YAML file of the folders; raises `CatalogProblem` for the first mistake.

    A suites folder holds `<domain>/<variant>.yaml`; a profiles folder `logs/`, `architectures/`,
    `platforms/` and `limits/`, which are added to those of an architecture; a file in place of a
    profiles folder is one of limits. The same name twice is a mistake, whatever the folders; the same folder twice
    is not. A file of the `replacing` profiles takes the place of one with its name.
    """

    def read(kind: str, form: Form[Named]) -> dict[str, Named]:
        found = _unique(profile_files(profiles, kind), form)
        return dict(sorted((found | _unique(profile_files(replacing, kind), form)).items()))

    files = list(suite_files(suites))
    catalog = Catalog(
        log_profiles=read(LOGS, PROFILE_FORM),
        architectures=with_limits(
            read(ARCHITECTURES, ARCHITECTURE_FORM), read(LIMITS, LIMITS_FORM).values()
        ),
        platforms=read(PLATFORMS, PLATFORM_FORM),
        entries=_unique(iter(files), ENTRY_FORM, entry_files(reversed(files))),
    )
    for line in catalog_problems(catalog):
        raise CatalogProblem(line)
    return catalog


def with_limits(
    architectures: Mapping[str, Architecture], files: Iterable[LimitsFile]
) -> dict[str, Architecture]:
    """Return the architectures with further limits; raises `CatalogProblem` for an unknown one."""
    found = dict(architectures)
    for file in files:
        if file.architecture not in found:
            raise CatalogProblem(unknown_owner_words(file, found))
        owner = found[file.architecture]
        found[file.architecture] = replace(owner, limits=(*owner.limits, *file.limits))
    return found


def unknown_owner_words(file: LimitsFile, architectures: Iterable[str]) -> str:
    """Return the line about limits for an architecture that is not there."""
    words = choices_words(file.architecture, architectures)
    return f"{file.place}: architecture {file.architecture!r} is unknown{words}"


def catalog_problems(catalog: Catalog, *, unread: Collection[str] = ()) -> Iterator[str]:
    """Yield what is wrong between files: names that lead nowhere, labels of two architectures.

    `unread` are kinds of files of which one could not be read, so that it may hold any name.
    """
    has_all_architectures = ARCHITECTURES not in unread
    for entry in catalog.entries.values():
        place = entry.places.get(entry.log_profile, entry.place)
        profile = catalog.log_profiles.get(entry.log_profile)
        if profile is None:
            words = choices_words(entry.log_profile, catalog.log_profiles)
            if LOGS not in unread:
                yield f"{place}: logProfile {entry.log_profile!r} is unknown{words}"
        elif profile.reads != entry.measures:
            yield (
                f"{place}: logProfile {entry.log_profile!r} reads {profile.reads}, "
                f"the entry measures {entry.measures}"
            )
        for name in entry.architectures:
            if has_all_architectures and name not in catalog.architectures:
                words = choices_words(name, catalog.architectures)
                yield f"{entry.places.get(name, entry.place)}: architecture {name!r} is unknown{words}"
    for platform in catalog.platforms.values():
        for name in platform.hardware:
            if has_all_architectures and name not in catalog.architectures:
                words = choices_words(name, catalog.architectures)
                yield f"{platform.places.get(name, platform.place)}: architecture {name!r} is unknown{words}"
    owners: dict[str, Architecture] = {}
    for architecture in catalog.architectures.values():
        for label in architecture.product_labels:
            first = owners.setdefault(label, architecture)
            if first is not architecture:
                place = architecture.places.get(label, architecture.place)
                other = first.places.get(label, first.place)
                yield f"{place}: product label {label!r} stands also in {other}"


def double_words(second: Named, first: Named) -> str:
    """Return the line about a name that stands twice."""
    return f"{second.place}: the name {second.name!r} stands also in {first.place}"


def _unique(
    paths: Iterator[Path], form: Form[Named], entries: Mapping[str, Path] = NONE
) -> dict[str, Named]:
    found: dict[str, Named] = {}
    for path in paths:
        each = form.read(path, entries)
        if each.name in found:
            raise CatalogProblem(double_words(each, found[each.name]))
        found[each.name] = each
    return dict(sorted(found.items()))
