"""Label selectors, equality and set based, as Kubernetes writes them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Operator = Literal["=", "!=", "in", "notin", "exists", "!"]

_KEY = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_SET_VALUE = re.compile(_VALUE)
_REQUIREMENTS = (
    (re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})"), "equality"),
    (re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)"), "set"),
    (re.compile(rf"(!?)\s*({_KEY})"), "presence"),
)


_LONGEST_PREFIX = 253
_LONGEST_NAME = 63
_SHOWN = 100  # characters of a wrong selector


class SelectorProblem(ValueError):
    """A selector that Kubernetes would refuse; the text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One part of a selector; all parts must hold."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet this requirement."""
        value = labels.get(self.key)
        match self.operator:
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "=" | "in":
                return value in self.values
            case "!=" | "notin":
                return value not in self.values  # a missing label is not equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A parsed selector; without requirements it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether the labels meet every requirement."""
        return all(each.matches(labels or {}) for each in self.requirements)


def parse_selector(text: str) -> Selector:
    """Return the selector that `text` writes; raises `SelectorProblem`."""
    requirements = []
    rest = text.strip()
    while rest:
        requirement, end = _requirement(rest, text)
        requirements.append(requirement)
        rest = rest[end:].lstrip()
        if rest and not rest.startswith(","):
            raise SelectorProblem(
                f"label selector {text[:_SHOWN]!r}: expected ',' before {rest[:_SHOWN]!r}"
            )
        if rest and not (rest := rest[1:].lstrip()):
            raise SelectorProblem(f"label selector {text[:_SHOWN]!r} ends with ','")
    return Selector(requirements=tuple(requirements))


def _requirement(rest: str, text: str) -> tuple[Requirement, int]:
    for pattern, form in _REQUIREMENTS:
        found = pattern.match(rest)
        if found and rest[found.end() :].lstrip()[:1] in ("", ","):
            requirement = _BUILDERS[form](found)
            _check(requirement, text)
            return requirement, found.end()
    raise SelectorProblem(
        f"label selector {text[:_SHOWN]!r}: cannot read {rest[:_SHOWN]!r}; "
        "forms: key=value, key!=value, key in (a,b), key notin (a,b), key, !key"
    )


def _check(requirement: Requirement, text: str) -> None:
    prefix, _, name = requirement.key.rpartition("/")
    if len(prefix) > _LONGEST_PREFIX or len(name) > _LONGEST_NAME:
        raise SelectorProblem(f"label selector {text[:_SHOWN]!r}: the key is too long")
    for value in sorted(requirement.values):
        if len(value) > _LONGEST_NAME or not _SET_VALUE.fullmatch(value):
            raise SelectorProblem(
                f"label selector {text[:_SHOWN]!r}: {value[:_SHOWN]!r} is no label value"
            )


def _equality(found: re.Match[str]) -> Requirement:
    operator: Operator = "!=" if found[2] == "!=" else "="
    return Requirement(key=found[1], operator=operator, values=frozenset({found[3]}))


def _set(found: re.Match[str]) -> Requirement:
    values = frozenset(part.strip() for part in found[3].split(","))
    operator: Operator = "in" if found[2] == "in" else "notin"
    return Requirement(key=found[1], operator=operator, values=values)


def _presence(found: re.Match[str]) -> Requirement:
    return Requirement(key=found[2], operator="!" if found[1] else "exists")


_BUILDERS: Mapping[str, Callable[[re.Match[str]], Requirement]] = {
    "equality": _equality,
    "set": _set,
    "presence": _presence,
}
