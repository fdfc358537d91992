"""YAML with a place for every value: YAML 1.2 scalars, duplicate keys and alias bombs refused.

Composed once by PyYAML's C loader and built from the node tree here: 26,700 lines take 0.5 s, as
long as PyYAML's own construction without places.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from pytest_cre.formats.modelwords import told
from pytest_cre.formats.scalars import plain_scalar

PathKey = str | int
Path = tuple[PathKey, ...]
Mark = tuple[int, int]  # line and column, from 1
Model = TypeVar("Model", bound=BaseModel)

MAX_DEPTH = 64
MAX_REPEATED = 10_000  # values that aliases repeat; an alias bomb asks for billions
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PLAIN, _QUOTED = "plain", "quoted"
_CORE = "tag:yaml.org,2002:"
# What the parser says, in parts, and what usually is behind it.
_REMEDIES = {
    "tab": "; indent with blanks, never with tabs",
    "mapping values": "; mend the indentation, or put a text that holds ': ' in quotes",
    "comment or line break": "; put a text that begins with '>' or '|' in quotes",
    "expected ','": "; close the bracket, or put a text that holds '{', '[' or ',' in quotes",
    "undefined alias": "; put a text that begins with '*' in quotes",
    "alphabetic or numeric": "; put a text that begins with '&' or '*' in quotes",
    "expected key": "; mend the indentation, or the quotes of the line before",
    "expected '-'": "; begin every item of the list with '-' in one column",
    "unknown escape": "; in double quotes write '\\\\' for '\\', or use single ones",
}
_CORE_TYPES = {"str": str, "int": int, "float": float, "bool": bool, "null": type(None)}


class YamlProblem(ValueError):
    """A document that cannot be used; the text is one line that starts with `file:line:column`."""


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """Plain data with the place of everything in it.

    `places` hold the marks of values, `key_places` those of mapping keys, by the path of the value.
    Without any place (data that came as JSON) `place` returns the source alone.
    """

    data: Any
    source: str
    places: Mapping[Path, Mark]
    key_places: Mapping[Path, Mark]

    def mark(self, path: Sequence[PathKey] = (), *, of_key: bool = False) -> Mark | None:
        """Return line and column of a value or its key, or of the nearest thing around it."""
        whole = tuple(path)
        if of_key and whole in self.key_places:
            return self.key_places[whole]
        for end in range(len(whole), -1, -1):
            if whole[:end] in self.places:
                return self.places[whole[:end]]
        return None

    def place(self, path: Sequence[PathKey] = (), *, of_key: bool = False) -> str:
        """Return `file:line:column` of a value or its key, or of the nearest thing around it."""
        mark = self.mark(path, of_key=of_key)
        return self.source if mark is None else f"{self.source}:{mark[0]}:{mark[1]}"


def parse_yaml(text: str, source: str) -> YamlDocument:
    """Return the only document of `text`; raises `YamlProblem`."""
    documents = parse_yaml_documents(text, source)
    if not documents:
        raise YamlProblem(f"{source}:1:1: the file holds nothing; expected one YAML document")
    if len(documents) > 1:
        second = documents[1].place()
        raise YamlProblem(f"{second}: a second YAML document starts here; expected only one")
    return documents[0]


def parse_yaml_documents(text: str, source: str) -> tuple[YamlDocument, ...]:
    """Return every document of `text` that is not empty; raises `YamlProblem`."""
    found = _UNPRINTABLE.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        column = found.start() - text.rfind("\n", 0, found.start())
        raise YamlProblem(
            f"{source}:{line}:{column}: malformed YAML: character {found[0]!a} is not allowed"
        )
    try:
        roots = list(_compose(text))
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        words = " ".join(filter(None, (problem.problem, problem.context)))
        remedy = _remedy(problem, text)
        raise YamlProblem(f"{source}:{place}: malformed YAML: {words}{remedy}") from None
    except (yaml.YAMLError, RecursionError) as problem:
        words = " ".join(str(problem).split())
        raise YamlProblem(f"{source}:1:1: malformed YAML: {words}") from None
    documents = (_Builder(source).document(root) for root in roots)
    return tuple(each for each in documents if each.data is not None)


def _remedy(problem: yaml.MarkedYAMLError, text: str) -> str:
    """Return what to do about a document that cannot be read, where the parser's words tell it."""
    words, mark = problem.problem or "", problem.problem_mark
    if "start any token" in words and mark is not None:
        line = text.split("\n")[mark.line : mark.line + 1]
        character = "".join(line)[mark.column : mark.column + 1]
        return (
            _REMEDIES["tab"] if character == "\t" else f"; put a text with {character!r} in quotes"
        )
    if "end of stream" in words and problem.context_mark is not None:
        return f"; close the quote of line {problem.context_mark.line + 1}"
    return next((remedy for part, remedy in _REMEDIES.items() if part in words), "")


def validate(document: YamlDocument, model: type[Model]) -> Model:
    """Return the document as `model`; raises `YamlProblem` for its first mistake."""
    try:
        return model.model_validate(document.data)
    except ValidationError as problem:
        raise YamlProblem(told(document, model, problem)[0]) from None


def problems(document: YamlDocument, model: type[BaseModel]) -> tuple[str, ...]:
    """Return a line for every mistake that `model` sees in the document, by place."""
    try:
        model.model_validate(document.data)
    except ValidationError as problem:
        return told(document, model, problem)
    return ()


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A composer that leaves the meaning of scalars to us."""

    def resolve(self, kind: type, value: str | None, implicit: Any) -> str:  # noqa: ARG002
        """Return whether a node without a tag is plain; PyYAML would apply YAML 1.1 here."""
        return _PLAIN if implicit and implicit is not True and implicit[0] else _QUOTED


def _compose(text: str) -> Iterator[yaml.Node]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            yield loader.get_node()
    finally:
        loader.dispose()


class _Builder:
    """One pass over the node tree of a document: plain data and places."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.places: dict[Path, Mark] = {}
        self.key_places: dict[Path, Mark] = {}
        self.seen: set[int] = set()
        self.repeated = 0

    def document(self, root: yaml.Node) -> YamlDocument:
        data = self.value(root, ())
        return YamlDocument(data, self.source, self.places, self.key_places)

    def value(self, node: yaml.Node, path: Path) -> Any:
        if len(path) > MAX_DEPTH:
            self.refuse(node, f"nested deeper than {MAX_DEPTH} levels")
        if id(node) in self.seen:
            self.repeated += 1
            if self.repeated > MAX_REPEATED:
                self.refuse(node, f"aliases repeat more than {MAX_REPEATED} values")
        self.seen.add(id(node))
        self.places[path] = _mark(node)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        if node.tag not in (
            _PLAIN,
            _QUOTED,
            _CORE + ("seq" if isinstance(node, yaml.SequenceNode) else "map"),
        ):
            self.refuse_tag(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self.mapping(node, path)

    def mapping(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self.refuse(key_node, "a key must be a text")
            key: str = key_node.value
            if key in result:
                line, _ = self.key_places[(*path, key)]
                self.refuse(key_node, f"key {key!r} stands twice, first in line {line}")
            self.key_places[(*path, key)] = _mark(key_node)
            result[key] = self.value(value_node, (*path, key))
        return result

    def scalar(self, node: yaml.ScalarNode) -> Any:
        text: str = node.value
        if node.tag in (_QUOTED, _CORE + "str", "!"):
            return text
        try:
            value = plain_scalar(text)
        except ValueError as problem:
            self.refuse(node, str(problem))
        if node.tag == _PLAIN:
            return value
        wanted = _CORE_TYPES.get(node.tag.removeprefix(_CORE))
        if wanted is None:
            self.refuse_tag(node)
        if wanted is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            self.refuse(node, f"{text[:40]!r} is no {node.tag.removeprefix(_CORE)}")
        return value

    def refuse_tag(self, node: yaml.Node) -> NoReturn:
        tag = node.tag.replace(_CORE, "!!", 1)
        self.refuse(node, f"tag {tag!r} is not supported; choices: !!str, !!int, !!float, !!bool")

    def refuse(self, node: yaml.Node, problem: str) -> NoReturn:
        line, column = _mark(node)
        raise YamlProblem(f"{self.source}:{line}:{column}: {problem}")


def _mark(node: yaml.Node) -> Mark:
    return node.start_mark.line + 1, node.start_mark.column + 1
