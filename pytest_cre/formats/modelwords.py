"""What pydantic found wrong with a document, as one line per mistake with its place."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from pytest_cre.formats.choices import choices_words

PathKey = str | int
Path = tuple[PathKey, ...]

_SHOWN = 80  # characters of a wrong value
_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "string_type": lambda _: "must be a text",
    "int_type": lambda _: "must be a whole number",
    "int_from_float": lambda _: "must be a whole number",
    "float_type": lambda _: "must be a number",
    "finite_number": lambda _: "must be a finite number",
    "bool_type": lambda _: "must be true or false",
    "list_type": lambda _: "must be a list",
    "dict_type": lambda _: "must be a map",
    "model_type": lambda _: "must be a map",
    "model_attributes_type": lambda _: "must be a map",
    "literal_error": lambda context: f"must be one of {_choices(context['expected'])}",
    "greater_than": lambda context: f"must be above {context['gt']:g}",
    "greater_than_equal": lambda context: f"must be at least {context['ge']:g}",
    "less_than_equal": lambda context: f"must be at most {context['le']:g}",
    "string_too_short": lambda _: "must not be empty",
    "too_short": lambda _: "must not be empty",
}


class Placed(Protocol):
    """What is needed of a document."""

    @property
    def places(self) -> Mapping[Path, tuple[int, int]]:
        """Return the mark of each value."""

    @property
    def data(self) -> Any:
        """Return the plain data."""

    def mark(self, path: Sequence[PathKey], *, of_key: bool) -> tuple[int, int] | None:
        """Return the nearest mark."""

    def place(self, path: Sequence[PathKey], *, of_key: bool) -> str:
        """Return the nearest place."""


def told(document: Placed, model: type[BaseModel], problem: ValidationError) -> tuple[str, ...]:
    """Return a line for each mistake, by place: place, subject, problem, choices."""
    found = sorted(_told(document, model, error) for error in problem.errors(include_url=False))
    return tuple(line for *_, line in found)


def dotted(path: Sequence[PathKey]) -> str:
    """Return a path as messages show it: `limits[0].unit`."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text or "the document"


def _told(
    document: Placed, model: type[BaseModel], error: Any
) -> tuple[bool, tuple[int, int], str]:
    kind = error["type"]
    path = _path_in(document.data, error["loc"])
    is_extra = kind == "extra_forbidden"
    of_key = is_extra or error["loc"][-1:] == ("[key]",)
    if is_extra:
        words = f"is an unknown key{choices_words(str(path[-1]), _keys(model, path[:-1]))}"
    elif kind == "missing":
        words = "is missing"
    elif kind == "value_error":
        words = str(error["ctx"]["error"])
    else:
        form = _WORDS.get(kind)
        text = form(error.get("ctx", {})) if form else _lower(error["msg"])
        words = f"{text}, got {_shown(error.get('input'))}"
    mark = document.mark(path, of_key=of_key) or (0, 0)
    # What is missing comes last: as often as not it is there, under a misspelt key.
    return kind == "missing", mark, f"{document.place(path, of_key=of_key)}: {dotted(path)} {words}"


def _choices(expected: str) -> str:
    return expected.replace(" or ", ", ").replace("'", "")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a map"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _path_in(data: Any, location: Sequence[PathKey]) -> Path:
    """Return the part of pydantic's location that is in the data: unions add names of types."""
    path: Path = ()
    for position, key in enumerate(location):
        if isinstance(data, dict) and key in data:
            data = data[str(key)]
        elif isinstance(data, list) and isinstance(key, int) and key < len(data):
            data = data[key]
        elif position == len(location) - 1 and isinstance(data, dict):
            pass  # a key that is missing
        else:
            continue
        path = (*path, key)
    return path


def _keys(model: type[BaseModel], path: Path) -> list[str]:
    """Return the keys that the model takes at `path`, sorted; none where that is not known."""
    found: type[BaseModel] | None = model
    for key in path:
        if found is None:
            return []
        fields = {field.alias or name: field for name, field in found.model_fields.items()}
        if key in fields:
            found = _model_of(fields[str(key)].annotation)
    if found is None:
        return []
    return sorted(field.alias or name for name, field in found.model_fields.items())


def _model_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = (_model_of(inner) for inner in getattr(annotation, "__args__", ()))
    return next((model for model in models if model is not None), None)
