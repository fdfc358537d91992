"""`extends`: an entry that is another one but for what it says itself."""

from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_cre.formats.choices import choices_words
from pytest_cre.formats.patch import merge_patch
from pytest_cre.formats.yaml import YamlDocument, YamlProblem

DEEPEST = 8  # entries between an entry and the end of its line

Read = Callable[[Path], YamlDocument]


def extended(document: YamlDocument, files: Mapping[str, Path], read: Read) -> YamlDocument:
    """Return the document with everything that it takes from the entry named by `extends`.

    Maps are merged key by key, lists and texts replaced, null takes a key away. What is inherited
    has the place of `extends`. `files` are the entries there are, by name. Raises `YamlProblem` for
    an unknown entry and for a circle.
    """
    return _extended(document, files, read, ())


def _extended(
    document: YamlDocument, files: Mapping[str, Path], read: Read, above: tuple[str, ...]
) -> YamlDocument:
    if not isinstance(document.data, dict) or not isinstance(document.data.get("extends"), str):
        return document
    name = document.data["extends"]
    place = document.place(("extends",))
    if name not in files:
        raise YamlProblem(f"{place}: extends {name!r} is unknown{choices_words(name, files)}")
    if name in above or len(above) >= DEEPEST:
        line = " -> ".join((*above, name))
        raise YamlProblem(f"{place}: entries extend each other in a circle: {line}")
    base = _extended(read(files[name]), files, read, (*above, name))
    if not isinstance(base.data, dict):
        return document  # what is wrong with the other file is told there
    data = merge_patch({key: each for key, each in base.data.items() if key != "extends"}, {})
    merged = merge_patch(data, document.data)
    inherited = dict.fromkeys(base.places, document.places[("extends",)])
    inherited_keys = dict.fromkeys(base.key_places, document.places[("extends",)])
    return YamlDocument(
        merged,
        document.source,
        inherited | dict(document.places),
        inherited_keys | dict(document.key_places),
    )
