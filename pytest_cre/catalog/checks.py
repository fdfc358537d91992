"""What a document of the right form may still have wrong: one line per mistake."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from pytest_cre.catalog.architecture import Architecture
from pytest_cre.catalog.checkpoint import checkpoint_volume
from pytest_cre.catalog.documents import NAME, NAME_WORDS
from pytest_cre.catalog.entry import CatalogEntry, Checkpoint, OptionSpec
from pytest_cre.catalog.limit import Limit
from pytest_cre.catalog.logprofile import EventPattern, LogProfile
from pytest_cre.catalog.options import PLAN_NAMES, references
from pytest_cre.catalog.override_checks import override_problems
from pytest_cre.catalog.pattern import compile_pattern
from pytest_cre.catalog.platform import Platform
from pytest_cre.errors import CatalogProblem
from pytest_cre.formats.choices import choices_words
from pytest_cre.formats.yaml import Path as YamlPath
from pytest_cre.formats.yaml import YamlDocument

SCRIPTS = Path(__file__).parent.parent / "workloads"
OWNERS = {"simulated": "scenarios", "given": "what a run is told"}
LONGEST_NAME = 63  # the entry's name becomes a label value
REQUIRED_GROUPS = {
    "bandwidthResult": ("size", "algBW", "busBW"),
    "networkTransport": ("transport",),
    "gemmResult": ("gpu", "tflops"),
}


def entry_problems(entry: CatalogEntry, document: YamlDocument) -> Iterator[str]:
    """Yield what is wrong with an entry, seen alone."""
    for part, words in ((entry.domain, "folder"), (entry.variant, "file")):
        if not NAME.fullmatch(part):
            yield f"{document.place()}: {words} {part!r} names the entry and {NAME_WORDS}"
    if len(entry.label_value) > LONGEST_NAME:
        yield f"{document.place()}: the name {entry.name} is longer than {LONGEST_NAME} characters"
    if entry.test is not None and entry.measures != "bandwidth":
        yield f"{document.place(('test',))}: test goes only with measures: bandwidth"
    for index, scale in enumerate(entry.all_scales):
        if scale in entry.all_scales[:index]:
            count = len(entry.scales)
            key, at = ("scales", index) if index < count else ("scalesOnRequest", index - count)
            yield f"{document.place((key, at))}: scale {scale} stands twice"
    for option in entry.options.values():
        yield from _option_problems(option, document)
    if not entry.workloads:
        choices = "indexedJob, jobSet, mpiJob, trainJob"
        yield f"{document.place(('workloads',))}: workloads must hold one of {choices}"
    for path, text in leaves(entry):
        yield from _reference_problems(text, {*entry.options, *PLAN_NAMES}, document.place(path))
    yield from override_problems(entry.overrides, document, entry.options)
    yield from _needs_problems(entry, document)
    yield from _checkpoint_problems(entry, document)
    yield from tier_problems(entry.limits, document)
    shipped = sorted(path.name for path in SCRIPTS.glob("*.py") if path.name != "__init__.py")
    for index, script in enumerate(entry.scripts):
        if script not in shipped:
            place = document.place(("scripts", index))
            yield f"{place}: script {script!r} is unknown{choices_words(script, shipped)}"


def _needs_problems(entry: CatalogEntry, document: YamlDocument) -> Iterator[str]:
    named: list[tuple[YamlPath, str]] = [
        (("modelParallel", index), name) for index, name in enumerate(entry.needs.model_parallel)
    ]
    if entry.needs.expert_parallel is not None:
        named.append((("expertParallel",), entry.needs.expert_parallel))
    for path, name in named:
        if name not in entry.options:
            words = f"is no option of the entry{choices_words(name, entry.options)}"
            yield f"{document.place(('needs', *path))}: {name!r} {words}"


def _checkpoint_problems(entry: CatalogEntry, document: YamlDocument) -> Iterator[str]:
    """Yield what is wrong with the checkpoint volume as the defaults of the options make it."""
    if entry.checkpoint is None:
        return
    place = document.place(("checkpoint",))
    known = {name: option.default for name, option in entry.options.items()}
    found = list(_reference_problems_of(entry.checkpoint, {*known}, place))
    yield from found
    if entry.measures != "training":
        yield f"{place}: checkpoint goes only with measures: training"
    elif not found:
        try:
            checkpoint_volume(entry.checkpoint, known)
        except CatalogProblem as problem:
            yield f"{place}: {problem}"


def _reference_problems_of(
    checkpoint: Checkpoint, known: Collection[str], place: str
) -> Iterator[str]:
    for field in fields(checkpoint):
        yield from _reference_problems(getattr(checkpoint, field.name), known, place)


def tier_problems(limits: Sequence[Limit], document: YamlDocument) -> Iterator[str]:
    """Yield the limits that claim a tier which no file can give."""
    for index, limit in enumerate(limits):
        if limit.tier in OWNERS:
            owner = OWNERS[limit.tier]
            yield (
                f"{document.place(('limits', index, 'tier'))}: limits[{index}].tier {limit.tier} "
                f"belongs to {owner}; choices: published, site, physics"
            )


def _option_problems(option: OptionSpec, document: YamlDocument) -> Iterator[str]:
    path = ("options", option.name)
    if option.name in PLAN_NAMES or not option.name.isidentifier():
        words = "is set by the plan itself" if option.name in PLAN_NAMES else "is no simple name"
        yield f"{document.place(path, of_key=True)}: option {option.name!r} {words}"
    if option.pattern is None:
        return
    try:
        compiled = compile_pattern(option.pattern)
    except ValueError as problem:
        yield f"{document.place((*path, 'pattern'))}: pattern of option {option.name} {problem}"
        return
    if compiled.fullmatch(option.default) is None:
        yield (
            f"{document.place((*path, 'default'))}: default {option.default!r} of option "
            f"{option.name} must match its own pattern {option.pattern}"
        )


def leaves(entry: CatalogEntry) -> Iterator[tuple[YamlPath, str]]:
    """Yield every text that may take `${name}`, with its path."""
    for kind, workload in entry.workloads.items():
        for part, texts in (("command", workload.command), ("args", workload.args)):
            for index, text in enumerate(texts):
                yield ("workloads", kind, part, index), text
    for name, text in entry.env.items():
        yield ("env", name), text


def _reference_problems(text: str, known: Collection[str], place: str) -> Iterator[str]:
    for name in references(text):
        if name is None:
            yield f"{place}: '${{' is never closed in {text[:80]!r}; a plain '$' is written '$$'"
        elif name not in known:
            yield f"{place}: ${{{name}}} is unknown{choices_words(name, known)}"


def profile_problems(profile: LogProfile, document: YamlDocument) -> Iterator[str]:
    """Yield what is wrong with a log profile: each pattern is compiled and tried on its example."""
    if not profile.patterns:
        yield f"{document.place(('spec', 'patterns'))}: spec.patterns must hold at least one"
    for name, pattern in profile.patterns.items():
        example = document.place(("spec", "patterns", name, "example"))
        yield from _pattern_problems(name, pattern, example)


def _pattern_problems(name: str, pattern: EventPattern, example_place: str) -> Iterator[str]:
    try:
        compiled = compile_pattern(pattern.regex)
    except ValueError as problem:
        yield f"{pattern.place}: regex of {name} {problem}"
        return
    if compiled.search("") is not None:
        yield f"{pattern.place}: regex of {name} matches the empty text, so it would match any line"
    for group in REQUIRED_GROUPS.get(name, ()):
        if group not in compiled.groupindex:
            yield f"{pattern.place}: regex of {name} needs a group (?P<{group}>...)"
    for group in pattern.units:
        if group not in compiled.groupindex:
            known = choices_words(group, compiled.groupindex)
            yield f"{pattern.place}: regex of {name} has no group {group!r} for its unit{known}"
    if pattern.example is not None and compiled.search(pattern.example) is None:
        yield f"{example_place}: example of {name} is not matched by its regex"


def architecture_problems(architecture: Architecture, document: YamlDocument) -> Iterator[str]:
    """Yield what is wrong with an architecture, seen alone."""
    if not NAME.fullmatch(architecture.name):
        yield f"{document.place()}: file {architecture.name!r} names it and {NAME_WORDS}"
    if architecture.domain_gpus % architecture.gpus_per_node and architecture.domain_gpus > 1:
        place = document.place(("nvlinkDomainGpus",))
        words = f"no multiple of gpusPerNode {architecture.gpus_per_node}"
        yield f"{place}: nvlinkDomainGpus {architecture.domain_gpus} is {words}"
    yield from override_problems(architecture.overrides, document, {})
    yield from tier_problems(architecture.limits, document)


def platform_problems(platform: Platform, document: YamlDocument) -> Iterator[str]:
    """Yield what is wrong with a platform, seen alone."""
    if not NAME.fullmatch(platform.name):
        yield f"{document.place()}: file {platform.name!r} names it and {NAME_WORDS}"
    yield from override_problems(platform.overrides, document, {}, is_platform=True)
