"""Options of an entry, and `${name}` in its commands."""

import re
from collections.abc import Collection, Mapping
from typing import Protocol

from pytest_cre.catalog.entry import CatalogEntry, OptionSpec
from pytest_cre.errors import CatalogProblem, UsageProblem
from pytest_cre.formats.choices import choices_words

PLAN_NAMES = ("architecture", "gpus", "gpusPerNode", "masterAddress", "nodes", "test")
_BARE = re.compile(r"(?<!\$)\$([A-Za-z_]\w*)")
_REFERENCE = re.compile(r"\$\$|\$\{([^{}]*)\}|\$\{")


class HasEntries(Protocol):
    """What is needed of a catalog."""

    @property
    def entries(self) -> Mapping[str, CatalogEntry]:
        """Return the entries by name."""


def resolve_options(entry: CatalogEntry, given: Mapping[str, str]) -> dict[str, str]:
    """Return the value of every option of the entry, sorted by name; raises `UsageProblem`."""
    for name in sorted(given):
        if name not in entry.options:
            raise UsageProblem(
                f"option {name!r} is unknown to {entry.name}{choices_words(name, entry.options)}"
            )
    return {
        name: _checked(entry, spec, given.get(name, spec.default))
        for name, spec in sorted(entry.options.items())
    }


def check_options(catalog: HasEntries, given: Mapping[str, str]) -> None:
    """Check options that are given for a whole run: each is known, and right wherever it is.

    An entry takes of them what it has. Raises `UsageProblem`.
    """
    known = {name for entry in catalog.entries.values() for name in entry.options}
    for name, value in sorted(given.items()):
        if name not in known:
            raise UsageProblem(f"option {name!r} is unknown{choices_words(name, known)}")
        for entry in catalog.entries.values():
            if name in entry.options:
                _checked(entry, entry.options[name], value)


def references(text: str) -> tuple[str | None, ...]:
    """Return the names that `text` takes through `${name}`; None for a `${` that never closes."""
    found = _REFERENCE.finditer(text)
    return tuple(each[1] for each in found if each[0] != "$$")


def bare_references(text: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the known names that `text` writes as `$name`, which stays as it is.

    A shell's own variables are left out: those that the text itself sets.
    """
    names = dict.fromkeys(found[1] for found in _BARE.finditer(text))
    return tuple(
        name
        for name in names
        if name in known and re.search(rf"\b{name}=|\b(?:for|read) {name}\b", text) is None
    )


def substitute(text: str, values: Mapping[str, str]) -> str:
    """Return `text` with each `${name}` replaced by its value and `$$` by `$`.

    Values are put in as they are, once. Kubernetes' own `$(NAME)` stays as it is. Raises
    `CatalogProblem` for an unknown name.
    """

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        name = found[1]
        if name is None or name not in values:
            raise CatalogProblem(f"{text!r} takes {found[0]}{choices_words(name or '', values)}")
        return values[name]

    return _REFERENCE.sub(value, text)


def _checked(entry: CatalogEntry, spec: OptionSpec, value: str) -> str:
    if spec.pattern is not None:
        from pytest_cre.catalog.pattern import compile_pattern

        try:
            is_right = compile_pattern(spec.pattern).fullmatch(value) is not None
        except UnicodeEncodeError:
            is_right = False
        if not is_right:
            raise UsageProblem(
                f"option {spec.name!r} of {entry.name} must match {spec.pattern}, got {value!a}"
            )
    return value
