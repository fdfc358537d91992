"""What a right document would better say otherwise: one line per finding, with the remedy."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from itertools import pairwise

from pytest_cre.catalog.checks import leaves
from pytest_cre.catalog.documents import COLLECTIVES
from pytest_cre.catalog.entry import CatalogEntry, WorkloadCommand, WorkloadKind
from pytest_cre.catalog.options import PLAN_NAMES, bare_references, references
from pytest_cre.catalog.override import Override
from pytest_cre.catalog.override_checks import OVERRIDE_NAMES, filled_texts
from pytest_cre.formats.choices import nearest
from pytest_cre.formats.duration import format_duration
from pytest_cre.formats.yaml import YamlDocument

_IS_BENCH = re.compile(r"_perf(_mpi)?$|/collective\.py$")
_JOINED = re.compile(r"(--[A-Za-z][-\w]*|-[A-Za-z]) +(\S.*)", re.DOTALL)
# Flags of nccl-tests that take one value; the last one given counts.
_SINGLE_FLAGS = frozenset(f"-{letter}" for letter in "befinNwgtdorc")


def entry_advice(entry: CatalogEntry, document: YamlDocument) -> Iterator[str]:
    """Yield what an entry would better say otherwise."""
    if entry.measures == "bandwidth" and entry.test is None:
        words = "add test: all_reduce, or whichever collective the table must be of"
        yield f"{document.place()}: any collective's table would be taken; {words}"
    if entry.test is not None and entry.test not in COLLECTIVES:
        known = nearest(entry.test, COLLECTIVES)  # without one it is a benchmark of the user's own
        if known is not None:
            place = document.place(("test",))
            yield f"{place}: test {entry.test!r} is no collective; did you mean {known!r}?"
    shared = [*entry.env.values()]
    if entry.checkpoint is not None:
        shared += [getattr(entry.checkpoint, field.name) for field in fields(entry.checkpoint)]
    in_all = {name for text in shared for name in references(text)}
    for name in entry.options:
        unused = [
            kind
            for kind, workload in entry.workloads.items()
            if name not in in_all and name not in _names_in(workload)
        ]
        if unused:
            place = document.place(("options", name), of_key=True)
            yield (
                f"{place}: option {name} has no effect as {', '.join(unused)}; "
                f"put ${{{name}}} into the command or take the option out"
            )
    for kind, workload in entry.workloads.items():
        yield from _argument_advice(kind, workload, entry, document)
    for scale in entry.all_scales:
        most = 1 if scale == "intra-node" else int(scale) if scale.isdigit() else None
        if most is not None and most < entry.needs.nodes:
            place = document.place(("needs", "nodes"))
            nodes = "one node" if most == 1 else f"{most} nodes"
            yield (
                f"{place}: a group has {nodes} at scale {scale}, never the {entry.needs.nodes} that "
                "are needed; take the scale or the need out"
            )
    if entry.cost_s is not None and entry.cost_s > entry.timeout_s:
        words = f"cost {format_duration(entry.cost_s)} is longer than timeout"
        yield f"{document.place(('cost',))}: {words} {format_duration(entry.timeout_s)}; raise it"
    yield from _image_advice(entry.image, document.place(("image",)))
    names = {*entry.options, *PLAN_NAMES} - entry.env.keys()
    for path, text in leaves(entry):
        yield from _bare_advice(text, names, document.place(path))
    yield from override_text_advice(entry.overrides, document, names)


def override_text_advice(
    overrides: Sequence[Override], document: YamlDocument, known: Collection[str] = ()
) -> Iterator[str]:
    """Yield images of overrides that differ from run to run, and names that are not filled in.

    `known` are the options of the entry that they stand in.
    """
    for index, override in enumerate(overrides):
        for part, text in filled_texts(document.data["overrides"][index]):
            place = document.place(("overrides", index, *part))
            yield from _bare_advice(text, {*OVERRIDE_NAMES, *known}, place)
        if override.image is not None:
            place = document.place(("overrides", index, "image"))
            yield from _image_advice(override.image, place)


def _bare_advice(text: str, known: Collection[str], place: str) -> Iterator[str]:
    for name in bare_references(text, known):
        yield f"{place}: ${name} is not filled in; write ${{{name}}}, or $${name} for a shell's own"


def _image_advice(image: str, place: str) -> Iterator[str]:
    _, _, tag = image.rpartition("/")[2].partition(":")
    if "@" in image or "${" in image or tag not in ("", "latest"):
        return
    words = "the tag latest, which moves" if tag else "no version"
    yield f"{place}: image {image} names {words}, so runs differ; add a tag or digest"


def _argument_advice(
    kind: WorkloadKind, workload: WorkloadCommand, entry: CatalogEntry, document: YamlDocument
) -> Iterator[str]:
    """Yield arguments that a later one makes void."""
    words = [*workload.command, *workload.args]
    offset = len(workload.command)

    def place(index: int) -> str:
        part, at = ("args", index - offset) if index >= offset else ("command", index)
        return document.place(("workloads", kind, part, at))

    flags = [text.partition("=")[0] for text in workload.args if "=" in text]
    for flag, count in Counter(flags).items():
        if count > 1 and flag.startswith("--"):
            last = max(i for i, text in enumerate(words) if text.startswith(f"{flag}="))
            yield f"{place(last)}: {flag} is given {count} times and only the last counts; keep one"
    bench = next((i for i, text in enumerate(words) if _IS_BENCH.search(text)), len(words))
    for index, text in enumerate(words):
        found = _JOINED.match(text)
        if found is None or (found[1][1] != "-" and index < bench):
            continue  # an option of a launcher may be handed on in one text
        if not words[index - 1].startswith("--") or "=" in words[index - 1]:
            yield f"{place(index)}: {text!r} is one argument; write {found[1]!r} and {found[2]!r} apart"
    singles = Counter(text for text in words[bench:] if text in _SINGLE_FLAGS)
    for flag, count in singles.items():
        if count > 1:
            last = max(i for i, text in enumerate(words) if text == flag)
            yield f"{place(last)}: {flag} is given {count} times and only the last counts; keep one"
    handed: dict[str, str] = {}
    for index, (text, following) in enumerate(pairwise(words)):
        name, sign, value = following.partition("=")
        if text != "-x" or index >= bench:
            continue
        if name in handed:
            yield f"{place(index + 1)}: variable {name} is handed on twice; keep one"
        elif sign and entry.env.get(name, value) != value:
            yield (
                f"{place(index + 1)}: variable {name} is {value} here and {entry.env[name]} in env; "
                "keep one"
            )
        handed[name] = value


def _names_in(workload: WorkloadCommand) -> set[str | None]:
    return {name for text in (*workload.command, *workload.args) for name in references(text)}
