"""Overrides that never take effect, or whose effect is lost: one line per finding, with the remedy."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import combinations

from pytest_cre.catalog.architecture import Architecture
from pytest_cre.catalog.entry import CatalogEntry
from pytest_cre.catalog.files import ARCHITECTURES, ENTRIES, PLATFORMS
from pytest_cre.catalog.loader import Catalog
from pytest_cre.catalog.override import Condition, Override, When
from pytest_cre.catalog.pattern import compile_pattern
from pytest_cre.catalog.platform import Platform
from pytest_cre.formats.choices import choices_words


def entry_override_advice(
    entry: CatalogEntry, catalog: Catalog, unread: Collection[str] = ()
) -> Iterator[str]:
    """Yield what is wrong with the overrides of an entry, beside the catalog.

    `unread` are kinds of files of which one could not be read, so that it may hold any name.
    """
    every = () if ARCHITECTURES in unread else tuple(catalog.architectures)
    architectures = entry.architectures or every
    for override in entry.overrides:
        yield from _unknown_names(override, catalog, unread)
        when = override.when
        unreachable = (
            _never(when.architecture, architectures, "gpuArchitecture", "architectures")
            or _never(when.kind, tuple(entry.workloads), "workloadKind", "workloads")
            or _never(when.scale, entry.all_scales, "scale", "scales")
        )
        if unreachable is None and when.entries and not _named(when, entry.name):
            unreachable = f"when.entries does not match {entry.name}, where it stands"
        if unreachable is None and when.measures and entry.measures not in when.measures:
            unreachable = f"when.measures does not hold {entry.measures}, what the entry measures"
        if unreachable is not None:
            yield f"{override.place}: override {override.name} never applies: {unreachable}"
        yield from _option_values(override, entry)
        yield from _unused_words(override, (entry,))
    yield from _lost(entry.overrides)


def platform_advice(
    platform: Platform, catalog: Catalog, unread: Collection[str] = ()
) -> Iterator[str]:
    """Yield what is wrong with the overrides of a platform, beside the catalog."""
    for override in platform.overrides:
        yield from _unknown_names(override, catalog, unread)
        unreachable = _never(
            override.when.architecture, tuple(platform.hardware), "gpuArchitecture", "hardware"
        )
        if unreachable is not None:
            yield f"{override.place}: override {override.name} never applies: {unreachable}"
        if ENTRIES not in unread:
            yield from _unused_words(override, _targets(override, catalog))
    yield from _lost(platform.overrides)


def architecture_override_advice(
    architecture: Architecture, catalog: Catalog, unread: Collection[str] = ()
) -> Iterator[str]:
    """Yield what is wrong with the overrides of an architecture, beside the catalog."""
    for override in architecture.overrides:
        yield from _unknown_names(override, catalog, unread)
        unreachable = _never(
            override.when.architecture, (architecture.name,), "gpuArchitecture", "the file's name"
        )
        if unreachable is not None:
            yield f"{override.place}: override {override.name} never applies: {unreachable}"
        if ENTRIES not in unread:
            yield from _unused_words(override, _targets(override, catalog))
    yield from _lost(architecture.overrides)


def _targets(override: Override, catalog: Catalog) -> tuple[CatalogEntry, ...]:
    return tuple(
        entry
        for entry in catalog.entries.values()
        if (not override.when.entries or _named(override.when, entry.name))
        and (not override.when.measures or entry.measures in override.when.measures)
    )


def _named(when: When, entry: str) -> bool:
    return any(fnmatchcase(entry, pattern) for pattern in when.entries)


def _unknown_names(override: Override, catalog: Catalog, unread: Collection[str]) -> Iterator[str]:
    for condition, known, key, kind in (
        (override.when.platform, catalog.platforms, "platform", PLATFORMS),
        (override.when.architecture, catalog.architectures, "gpuArchitecture", ARCHITECTURES),
    ):
        for name in condition.names if condition is not None and kind not in unread else ():
            if name not in known:
                words = choices_words(name, known)
                yield f"{override.place}: when.{key} names {name!r}, which is unknown{words}"
    for pattern in override.when.entries if ENTRIES not in unread else ():
        if not any(fnmatchcase(name, pattern) for name in catalog.entries):
            words = choices_words(pattern, catalog.entries)
            yield f"{override.place}: when.entries {pattern!r} matches no entry{words}"


def _never(condition: Condition | None, values: Sequence[str], key: str, source: str) -> str | None:
    if condition is None or not values or any(condition.allows(value) for value in values):
        return None
    return f"when.{key} allows none of {source} ({', '.join(values)})"


def _option_values(override: Override, entry: CatalogEntry) -> Iterator[str]:
    for given, where in ((override.when.options, "when.options"), (override.options, "options")):
        for name, value in given.items():
            option = entry.options.get(name)
            if option is None:
                words = choices_words(name, entry.options)
                yield f"{override.place}: {where} names option {name!r}, which is unknown{words}"
            elif option.pattern is not None and _is_ruled_out(value, option.pattern):
                yield (
                    f"{override.place}: {where}.{name} {value!r} can never be: it must match "
                    f"{option.pattern}"
                )


def _is_ruled_out(value: str, pattern: str) -> bool:
    try:
        return compile_pattern(pattern).fullmatch(value) is None
    except ValueError:
        return False  # the pattern itself is told


def _unused_words(override: Override, targets: Sequence[CatalogEntry]) -> Iterator[str]:
    present = {
        word
        for entry in targets
        for workload in entry.workloads.values()
        for word in (*workload.command, *workload.args)
    }
    if not targets or not override.words:
        return
    if present.isdisjoint(override.words):
        words = ", ".join(override.words)
        yield f"{override.place}: no entry has one of the words {words}; write each as a whole argument"


def _lost(overrides: Sequence[Override]) -> Iterator[str]:
    """Yield what a later override that applies whenever an earlier one does sets again."""
    for first, second in combinations(overrides, 2):
        if second.when != When() and second.when != first.when:
            continue
        pairs: tuple[tuple[str, Mapping[str, object], Mapping[str, object]], ...] = (
            ("env", first.env, second.env),
            ("resources", first.resources, second.resources),
            ("words", first.words, second.words),
            ("options", first.options, second.options),
            ("annotations", first.annotations, second.annotations),
            ("container", first.container, second.container),
            ("image", {"": first.image or ""}, {"": second.image or ""}),
        )
        for part, before, after in pairs:
            for name in sorted(before.keys() & after.keys()):
                if before[name] and after[name] and before[name] != after[name]:
                    subject = f"{part} {name}".strip()
                    yield (
                        f"{first.place}: {subject} of override {first.name} is set again by "
                        f"{second.name} in {second.place}, so it has no effect; keep one"
                    )
