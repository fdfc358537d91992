"""Catalog entries as pytest items: who opted in, and which function takes which entry."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_cre.errors import UsageProblem

if TYPE_CHECKING:
    from pytest_cre.catalog.entry import CatalogEntry
    from pytest_cre.catalog.loader import Catalog

MARKER = "certification"
SUITES_PACKAGE = "pytest_cre.suites"
SUITES_DIR = (Path(__file__).parent / "suites").resolve()
FULL_SCALE = "full-scale"
NO_ENTRY_ID = "no-entry"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCase:
    """What one item runs: an entry at one scale."""

    entry: "CatalogEntry"
    scale: str


def marker_is_asked_for(expression: str) -> bool:
    """Return whether `-m EXPRESSION` selects something because it carries our marker."""
    # Only pytest itself reads its expressions right; a malformed one is its own usage error.
    from _pytest.mark.expression import Expression

    try:
        compiled = Expression.compile(expression)
    except SyntaxError:
        return False

    def selects(*, is_marked: bool, others: bool) -> bool:
        return compiled.evaluate(lambda name, /, **_: is_marked if name == MARKER else others)

    return any(
        selects(is_marked=True, others=others) and not selects(is_marked=False, others=others)
        for others in (True, False)
    )


def named_paths(config: pytest.Config) -> tuple[Path, ...]:
    """Return the files and folders that the command line names, without node id parts."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return ()
    base = config.invocation_params.dir
    found = []
    for argument in config.args:
        text = argument.partition("::")[0]
        if config.getoption("pyargs") and (text + ".").startswith(SUITES_PACKAGE + "."):
            inside = text[len(SUITES_PACKAGE) :].strip(".").replace(".", "/")
            found.append(SUITES_DIR / (inside + ".py" if inside else ""))
        else:
            found.append((base / text).resolve())
    return tuple(found)


def is_asked_for(config: pytest.Config) -> bool:
    """Return whether this run may certify: the marker was asked for, or the suites by path."""
    if marker_is_asked_for(config.getoption("markexpr") or ""):
        return True
    return any(path == SUITES_DIR or SUITES_DIR in path.parents for path in named_paths(config))


def is_suite_file(path: Path) -> bool:
    """Return whether the path is one of the shipped suites."""
    return SUITES_DIR in path.resolve().parents


def suite_node_id(path: Path) -> str:
    """Return the node id of a suite file: the same in a clone, an editable install and a wheel."""
    return "suites/" + path.resolve().relative_to(SUITES_DIR).as_posix()


def cases_of(catalog: "Catalog", marker: pytest.Mark, *, scale: str | None) -> list[EntryCase]:
    """Return the cases that a test function with this marker takes, in order.

    The marker names entries by shell patterns, less those that its `unless` names. `scale` keeps
    only the cases of that scale, and some scales run only so. Raises `UsageProblem` for a pattern that
    names no entry.
    """
    if not marker.args:
        raise UsageProblem(f"@pytest.mark.{MARKER}: name entries, such as 'communication/*'")
    unless = catalog.match(_patterns(marker.kwargs.get("unless", ())), may_be_empty=True)
    taken = catalog.match(_patterns(marker.args))
    return [
        EntryCase(entry=entry.at(each), scale=each)
        for entry in taken
        if entry not in unless
        for each in (entry.scales if scale is None else entry.all_scales)
        if scale is None or each == scale
    ]


def _patterns(given: object) -> tuple[str, ...]:
    if isinstance(given, list | tuple) and all(isinstance(each, str) for each in given):
        return tuple(given)
    raise UsageProblem(
        f"@pytest.mark.{MARKER}: patterns must be texts such as 'communication/*', got {given!r}"
    )


def case_ids(cases: Sequence[EntryCase]) -> list[str]:
    """Return stable ids: the variant, with its domain where several are taken, then the scale."""
    domains = {case.entry.domain for case in cases}
    ids = []
    for case in cases:
        name = case.entry.variant if len(domains) == 1 else case.entry.name.replace("/", "-")
        ids.append(name if case.scale == FULL_SCALE else f"{name}@{case.scale}")
    doubled = [name for name, count in Counter(ids).items() if count > 1]
    if doubled:
        raise UsageProblem(f"catalog: several entries would share the id {doubled[0]!r}")
    return ids


def case_of(item: pytest.Item) -> EntryCase | None:
    """Return what an item runs, or None for one without an entry."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("cre_entry") if callspec is not None else None


def fixtures_of(item: pytest.Item) -> tuple[str, ...]:
    """Return the names of the fixtures that an item uses."""
    return tuple(getattr(item, "fixturenames", ()))
