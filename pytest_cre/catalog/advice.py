"""What a right document would better say otherwise: one line per finding, with the remedy."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise

from pytest_cre.catalog.architecture import Architecture
from pytest_cre.catalog.entry import CatalogEntry, Measures, WorkloadCommand, WorkloadKind
from pytest_cre.catalog.limit import (
    BANDWIDTH_METRICS,
    DIAGNOSTIC_METRICS,
    GEMM_METRICS,
    TRAINING_METRICS,
    Limit,
    Metric,
)
from pytest_cre.catalog.loader import Catalog
from pytest_cre.catalog.logprofile import LogProfile
from pytest_cre.catalog.options import references
from pytest_cre.catalog.pattern import compile_pattern
from pytest_cre.catalog.wire import busbw_bound
from pytest_cre.formats.choices import choices_words
from pytest_cre.formats.duration import format_duration
from pytest_cre.formats.yaml import YamlDocument

_IS_BENCH = re.compile(r"_perf(_mpi)?$|/collective\.py$")
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
    "gemmResult": (
        *("gpu", "sample", "dtype", "m", "n", "k"),
        *("products", "seconds", "tflops", "wrong"),
    ),
    "diagnosticReport": (),
}
MEASURED: Mapping[Measures, tuple[Metric, ...]] = {
    "bandwidth": BANDWIDTH_METRICS,
    "training": TRAINING_METRICS,
    "gemm": GEMM_METRICS,
    "diagnostics": DIAGNOSTIC_METRICS,
}
# Flags of nccl-tests that take one value; the last one given counts.
_SINGLE_FLAGS = frozenset(f"-{letter}" for letter in "befinNwgtdorc")


def entry_advice(entry: CatalogEntry, document: YamlDocument) -> Iterator[str]:
    """Yield what an entry would better say otherwise."""
    if entry.measures == "bandwidth" and entry.test is None:
        words = "add test: all_reduce, or whichever collective the table must be of"
        yield f"{document.place()}: any collective's table would be taken; {words}"
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
    if entry.cost_s is not None and entry.cost_s > entry.timeout_s:
        words = f"cost {format_duration(entry.cost_s)} is longer than timeout"
        yield f"{document.place(('cost',))}: {words} {format_duration(entry.timeout_s)}; raise it"
    if ":" not in entry.image.rpartition("/")[2] and "@" not in entry.image:
        place = document.place(("image",))
        yield f"{place}: image {entry.image} names no version, so runs differ; add a tag or digest"
    for limit in entry.limits:
        yield from _limit_of_entry(limit, entry)


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
    """Yield which limits of an architecture can never judge anything, or never be met."""
    seen: dict[tuple[object, ...], Limit] = {}
    owner = catalog.architectures[architecture]
    for limit in owner.limits:
        entries = catalog.match((limit.entry,), may_be_empty=True)
        metrics = {metric for entry in entries for metric in MEASURED[entry.measures]}
        if not entries:
            words = choices_words(limit.entry, catalog.entries)
            yield f"{limit.place}: the limit's entry {limit.entry!r} matches none{words}"
        elif limit.metric not in metrics:
            names = ", ".join(entry.name for entry in entries)
            words = f"choices: {', '.join(sorted(metrics))}"
            yield f"{limit.place}: {names} does not measure {limit.metric}; {words}"
        elif limit.collective is not None and limit.collective not in {
            each.test for each in entries
        }:
            tests = sorted({each.test for each in entries if each.test})
            words = choices_words(limit.collective, tests)
            yield f"{limit.place}: no such entry runs {limit.collective!r}{words}"
        yield from _scope_advice(limit)
        yield from _bound_advice(limit, owner, entries)
        first = seen.setdefault(_scope(limit), limit)
        if first is not limit:
            yield f"{limit.place}: the limit judges the same as the one in {first.place}; keep one"


def _limit_of_entry(limit: Limit, entry: CatalogEntry) -> Iterator[str]:
    metrics = MEASURED[entry.measures]
    if limit.metric not in metrics:
        words = f"choices: {', '.join(sorted(metrics))}"
        yield f"{limit.place}: {entry.name} does not measure {limit.metric}; {words}"
    if limit.scale is not None and limit.scale not in entry.all_scales:
        words = f"choices: {', '.join(entry.all_scales)}"
        yield f"{limit.place}: {entry.name} has no scale {limit.scale}; {words}"
    yield from _scope_advice(limit)


def _scope_advice(limit: Limit) -> Iterator[str]:
    if limit.scale == "intra-node" and (limit.min_nodes or 1) > 1:
        words = f"minNodes {limit.min_nodes} never applies; take it out"
        yield f"{limit.place}: at scale intra-node a group has one node, so {words}"


def _bound_advice(
    limit: Limit, architecture: Architecture, entries: Sequence[CatalogEntry]
) -> Iterator[str]:
    """Yield that a floor is above what links and GPUs can do."""
    if limit.value is None or limit.operator not in (">=", ">"):
        return
    if limit.metric == "tflops_per_gpu" and architecture.peaks:
        peak = max(each.tflops for each in architecture.peaks.values())
        if limit.value > peak:
            words = f"above the peak {peak:g} TFLOP/s of {architecture.name}"
            yield f"{limit.place}: floor {limit.value:g} TFLOP/s is {words}; no run can meet it"
    if limit.metric != "busbw":
        return
    bounds = [bound for entry in entries if (bound := _floor_bound(limit, architecture, entry))]
    if bounds and limit.value > max(bounds):
        words = f"above the {max(bounds):.1f} GB/s that the links of {architecture.name} allow"
        yield f"{limit.place}: floor {limit.value:g} GB/s is {words}; no run can meet it"


def _floor_bound(limit: Limit, architecture: Architecture, entry: CatalogEntry) -> float | None:
    """Return the most that any group in the limit's scope can reach."""
    if entry.test is None:
        return None
    gpus = entry.gpus_per_node or architecture.gpus_per_node
    nodes = 1 if limit.scale == "intra-node" else limit.min_nodes or 1
    ranks = nodes * gpus
    by_domain = architecture.domain_gpus if architecture.has_rack_nvlink else gpus
    domains = 1 if limit.fabric == "nvlink" else -(-ranks // by_domain)
    return busbw_bound(
        architecture,
        entry.test,
        ranks=ranks,
        domains=domains,
        may_reduce_on_nvlink=True,
        may_reduce_in_network=True,
    )


def _names_in(workload: WorkloadCommand) -> set[str | None]:
    return {name for text in (*workload.command, *workload.args) for name in references(text)}


def _scope(limit: Limit) -> tuple[object, ...]:
    return (
        *(limit.metric, limit.operator, limit.statistic, limit.size_bytes, limit.entry, limit.tier),
        *(limit.scale, limit.min_nodes, limit.max_nodes, limit.fabric, limit.collective),
        limit.category,
    )
