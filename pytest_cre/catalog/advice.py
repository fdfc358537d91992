"""What a right document would better say otherwise: one line per finding, with the remedy."""

from collections import Counter
from collections.abc import Iterator

from pytest_cre.catalog.entry import CatalogEntry, WorkloadCommand
from pytest_cre.catalog.limit import Limit, Metric
from pytest_cre.catalog.loader import Catalog
from pytest_cre.catalog.logprofile import LogProfile
from pytest_cre.catalog.options import references
from pytest_cre.catalog.pattern import compile_pattern
from pytest_cre.formats.choices import choices_words
from pytest_cre.formats.yaml import YamlDocument

# The groups that measurements read; any other is matched and forgotten.
_STEP = ("timestamp", "path", "step", "saveDuration")
READ_GROUPS = {
    "trainingStep": (
        *("timestamp", "globalStep", "iteration", "epoch"),
        *("stepTiming", "elapsedTime", "loss", "tflops"),
    ),
    "checkpointSave": _STEP,
    "checkpointDone": _STEP,
    "checkpointRestore": _STEP[:3],
    "checkpointLoaded": _STEP[:3],
    "applicationStart": ("timestamp",),
    "warmupStep": (),
    "bandwidthResult": ("size", "algBW", "busBW"),
    "networkTransport": ("transport",),
}
_TRAINING: tuple[Metric, ...] = ("goodput", "step_time", "tflops_per_gpu")


def entry_advice(entry: CatalogEntry, document: YamlDocument) -> Iterator[str]:
    """Yield what an entry would better say otherwise."""
    if entry.measures == "bandwidth" and entry.test is None:
        words = "add test: all_reduce, or whichever collective the table must be of"
        yield f"{document.place()}: any collective's table would be taken; {words}"
    in_env = {name for text in entry.env.values() for name in references(text)}
    for name in entry.options:
        unused = [
            kind
            for kind, workload in entry.workloads.items()
            if name not in in_env and name not in _names_in(workload)
        ]
        if unused:
            place = document.place(("options", name), of_key=True)
            yield (
                f"{place}: option {name} has no effect as {', '.join(unused)}; "
                f"put ${{{name}}} into the command or take the option out"
            )
    for kind, workload in entry.workloads.items():
        flags = [text.partition("=")[0] for text in workload.args if "=" in text]
        for flag, count in Counter(flags).items():
            if count > 1 and flag.startswith("--"):
                last = max(i for i, text in enumerate(workload.args) if text.startswith(f"{flag}="))
                place = document.place(("workloads", kind, "args", last))
                yield f"{place}: {flag} is given {count} times and only the last counts; keep one"


def profile_advice(profile: LogProfile, document: YamlDocument) -> Iterator[str]:
    """Yield what a log profile would better say otherwise."""
    for name, pattern in profile.patterns.items():
        if pattern.example is None:
            place = document.place(("spec", "patterns", name), of_key=True)
            yield f"{place}: pattern {name} has no example; add a line of a log that it must match"
        for group in sorted(compile_pattern(pattern.regex).groupindex):
            if group not in READ_GROUPS[name]:
                words = choices_words(group, READ_GROUPS[name])
                yield f"{pattern.place}: group {group!r} of {name} is not read{words}"


def limit_advice(catalog: Catalog, architecture: str) -> Iterator[str]:
    """Yield which limits of an architecture can never judge anything."""
    seen: dict[tuple[object, ...], Limit] = {}
    for limit in catalog.architectures[architecture].limits:
        entries = catalog.match((limit.entry,), may_be_empty=True)
        metrics = {
            metric
            for entry in entries
            for metric in (("busbw",) if entry.measures == "bandwidth" else _TRAINING)
        }
        if not entries:
            words = choices_words(limit.entry, catalog.entries)
            yield f"{limit.place}: the limit's entry {limit.entry!r} matches none{words}"
        elif limit.metric not in metrics:
            names = ", ".join(entry.name for entry in entries)
            words = f"choices: {', '.join(sorted(metrics))}"
            yield f"{limit.place}: {names} does not measure {limit.metric}; {words}"
        if limit.scale == "intra-node" and (limit.min_nodes or 1) > 1:
            words = f"minNodes {limit.min_nodes} never applies; take it out"
            yield f"{limit.place}: at scale intra-node a group has one node, so {words}"
        first = seen.setdefault(_scope(limit), limit)
        if first is not limit:
            yield f"{limit.place}: the limit judges the same as the one in {first.place}; keep one"


def _names_in(workload: WorkloadCommand) -> set[str | None]:
    return {name for text in (*workload.command, *workload.args) for name in references(text)}


def _scope(limit: Limit) -> tuple[object, ...]:
    return (
        *(limit.metric, limit.operator, limit.statistic, limit.size_bytes, limit.entry, limit.tier),
        *(limit.scale, limit.min_nodes, limit.max_nodes, limit.fabric),
    )
