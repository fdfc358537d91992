"""The known differences, by path and value, and the comparison that they explain.

`tests/data/conformance/differences.yaml` lists under the words of the documentation which places of
which steps differ from the record of the genuine server, and what the embedded server gives there.
A path is written `body/spec/x`, a slash within a name as `~1`; `<absent>` is what is not there.
"""

import copy
from dataclasses import dataclass

import yaml

from tests.conformance.table import RECORDS

ABSENT = "<absent>"
_FILE = RECORDS / "differences.yaml"


@dataclass(frozen=True, order=True)
class Difference:
    """One place where two transcripts differ."""

    step: int
    path: str

    def __str__(self):
        return f"step {self.step}, {self.path or '(all of it)'}"


def known_differences():
    """Give what the embedded server gives by exchange, step and path, and all documented words."""
    known = {}
    words = []
    for entry in yaml.load(_FILE.read_text(), yaml.CSafeLoader):
        words.append(entry["says"])
        for exchange, steps in entry["where"].items():
            for step, places in steps.items():
                for path, value in places.items():
                    found = known.setdefault(exchange, {})
                    assert Difference(step, path) not in found, f"{exchange}: {step}, {path}: twice"
                    found[Difference(step, path)] = value
    return known, words


def compare(recorded, found):
    """Give all places where a transcript differs from the record, and what stands there."""
    differences = {}
    for step in range(max(len(recorded), len(found))):
        pair = [each[step] if step < len(each) else ABSENT for each in (recorded, found)]
        for path, value in _walk(*pair, ""):
            differences[Difference(step, path)] = copy.deepcopy(value)
    return differences


def _walk(old, new, path):
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            inner = f"{path}/{str(key).replace('/', '~1')}" if path else str(key)
            yield from _walk(old.get(key, ABSENT), new.get(key, ABSENT), inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, pair in enumerate(zip(old, new, strict=True)):
            yield from _walk(*pair, f"{path}/{place}" if path else str(place))
    elif old != new or type(old) is not type(new):
        yield path, new


def as_text(exchange, differences):
    """Give differences as they would stand in the file, to be read or taken over."""
    steps = {}
    for place, value in sorted(differences.items()):
        steps.setdefault(place.step, {})[place.path] = value
    return yaml.dump({exchange: steps}, Dumper=yaml.CSafeDumper, sort_keys=True, width=96)
