"""Limits that can never judge anything, or never be met: one line per finding, with the remedy."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from pytest_cre.catalog.architecture import Architecture
from pytest_cre.catalog.entry import CatalogEntry, Measures
from pytest_cre.catalog.limit import (
    BANDWIDTH_METRICS,
    DIAGNOSTIC_METRICS,
    GEMM_METRICS,
    TRAINING_METRICS,
    Limit,
    Metric,
)
from pytest_cre.catalog.limit_document import UNKNOWN_DATE
from pytest_cre.catalog.loader import Catalog
from pytest_cre.catalog.wire import busbw_bound
from pytest_cre.formats.choices import choices_words
from pytest_cre.formats.quantity import format_bytes, parse_message_bytes

MEASURED: Mapping[Measures, tuple[Metric, ...]] = {
    "bandwidth": BANDWIDTH_METRICS,
    "training": TRAINING_METRICS,
    "gemm": GEMM_METRICS,
    "diagnostics": DIAGNOSTIC_METRICS,
}
_SWEEP = ("minBytes", "maxBytes", "stepFactor")


def limit_advice(
    limits: Sequence[Limit],
    catalog: Catalog,
    architectures: Sequence[Architecture],
    *,
    has_all_entries: bool = True,
    today: date | None = None,
) -> Iterator[str]:
    """Yield what is wrong with limits that stand together, beside the entries that they are for.

    A floor that all `architectures` rule out is told. Without `has_all_entries` some entry could not
    be read, so that only limits of an entry that was are held against it. `today` None: dates are
    not looked at.
    """
    for limit in limits:
        if has_all_entries or limit.entry in catalog.entries:
            entries = catalog.match((limit.entry,), may_be_empty=True)
            yield from _entry_advice(limit, entries, catalog)
            yield from _bound_advice(limit, architectures, entries)
        if limit.scale == "intra-node" and (limit.min_nodes or 1) > 1:
            words = f"minNodes {limit.min_nodes} never applies; take it out"
            yield f"{limit.place}: at scale intra-node a group has one node, so {words}"
        day = limit.date.removeprefix(UNKNOWN_DATE)
        if today is not None and day > today.isoformat()[: len(day)]:
            yield f"{limit.place}: date {limit.date} is in the future; give the day of the source"
    yield from _between(limits)


def entry_limit_advice(
    entry: CatalogEntry, catalog: Catalog, *, has_all_architectures: bool, today: date | None
) -> Iterator[str]:
    """Yield what is wrong with the limits of an entry, which are for each of its architectures.

    Where it names none, a floor must be out of reach of every one that is known.
    """
    known = catalog.architectures
    named = [known[name] for name in entry.architectures if name in known]
    every = list(known.values()) if has_all_architectures and not entry.architectures else []
    yield from limit_advice(entry.limits, catalog, every or named[:1], today=today)
    for architecture in named[1:]:
        for limit in entry.limits:
            yield from _bound_advice(limit, [architecture], [entry])
    for limit in entry.limits:
        if limit.scale is not None and limit.scale not in entry.all_scales:
            words = f"choices: {', '.join(entry.all_scales)}"
            yield f"{limit.place}: {entry.name} has no scale {limit.scale}; {words}"


def _entry_advice(limit: Limit, entries: Sequence[CatalogEntry], catalog: Catalog) -> Iterator[str]:
    metrics = {metric for entry in entries for metric in MEASURED[entry.measures]}
    if not entries:
        words = choices_words(limit.entry, catalog.entries)
        yield f"{limit.place}: the limit's entry {limit.entry!r} matches none{words}"
    elif limit.metric not in metrics:
        names = ", ".join(entry.name for entry in entries)
        words = f"choices: {', '.join(sorted(metrics))}"
        yield f"{limit.place}: {names} does not measure {limit.metric}; {words}"
    elif limit.size_bytes is not None and not any(
        _has_row(limit.size_bytes, each) for each in entries
    ):
        yield (
            f"{limit.place}: no table has a row of {format_bytes(limit.size_bytes)}, by the default "
            f"options of {', '.join(entry.name for entry in entries)}; choose a size that is measured"
        )
    elif limit.collective is not None and limit.collective not in {each.test for each in entries}:
        tests = sorted({each.test for each in entries if each.test})
        words = choices_words(limit.collective, tests)
        yield f"{limit.place}: no such entry runs {limit.collective!r}{words}"


def _has_row(size: int, entry: CatalogEntry) -> bool:
    """Return whether the entry measures messages of this size, as far as its options tell."""
    if any({*override.options} & {*_SWEEP} for override in entry.overrides):
        return True
    try:
        least, most, factor = (
            parse_message_bytes(entry.options[name].default) if name in entry.options else None
            for name in _SWEEP
        )
    except ValueError:
        return True  # options of another meaning
    if (most is not None and size > most) or (least is not None and size < least):
        return False
    if least is None or factor is None or factor < 2:
        return True
    while least < size:
        least *= factor
    return least == size


def _between(limits: Sequence[Limit]) -> Iterator[str]:
    """Yield limits that stand twice, and floors above a ceiling on the same figure."""
    seen: dict[tuple[object, ...], Limit] = {}
    sides: dict[tuple[object, ...], list[Limit]] = {}
    for limit in limits:
        figure = _figure(limit)
        first = seen.setdefault((*figure, limit.operator, limit.tier), limit)
        if first is not limit:
            yield f"{limit.place}: the limit judges the same as the one in {first.place}; keep one"
            continue
        for other in sides.setdefault(figure, []):
            if _exclude(limit, other) or _exclude(other, limit):
                yield (
                    f"{limit.place}: no run can meet {_words(limit)} and {_words(other)} in "
                    f"{other.place}; mend one"
                )
        sides[figure].append(limit)


def _exclude(floor: Limit, ceiling: Limit) -> bool:
    """Return whether the first is a floor, the second a ceiling, and no number meets both."""
    if floor.value is None or ceiling.value is None:
        return False
    if floor.operator not in (">=", ">") or ceiling.operator not in ("<=", "<"):
        return False
    is_closed = floor.operator == ">=" and ceiling.operator == "<="
    return floor.value > ceiling.value or (floor.value == ceiling.value and not is_closed)


def _words(limit: Limit) -> str:
    unit = "" if limit.unit in ("ratio", "count") else f" {limit.unit}"
    return f"{limit.metric} {limit.operator} {limit.value:g}{unit}"


def _bound_advice(
    limit: Limit, architectures: Sequence[Architecture], entries: Sequence[CatalogEntry]
) -> Iterator[str]:
    """Yield that a floor is above what links and GPUs of every architecture can do."""
    if limit.value is None or limit.operator not in (">=", ">") or not architectures:
        return
    bounds: list[tuple[float, str]] = []
    for each in architectures:
        bound = _highest(limit, each, entries)
        if bound is None or limit.value <= bound:
            return
        bounds.append((bound, each.name))
    bound, name = max(bounds)
    if limit.metric == "busbw":
        words = f"floor {limit.value:g} GB/s is above the {bound:.1f} GB/s that the links of {name}"
        yield f"{limit.place}: {words} allow; no run can meet it"
    else:
        words = f"floor {limit.value:g} TFLOP/s is above the peak {bound:g} TFLOP/s of {name}"
        yield f"{limit.place}: {words}; no run can meet it"


def _highest(
    limit: Limit, architecture: Architecture, entries: Sequence[CatalogEntry]
) -> float | None:
    """Return the most that any run can show of the limit's metric, or None where it is not known."""
    if limit.metric == "tflops_per_gpu":
        return max((each.tflops for each in architecture.peaks.values()), default=None)
    if limit.metric != "busbw":
        return None
    bounds = [bound for entry in entries if (bound := _busbw_bound(limit, architecture, entry))]
    return max(bounds, default=None)


def _busbw_bound(limit: Limit, architecture: Architecture, entry: CatalogEntry) -> float | None:
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


def _figure(limit: Limit) -> tuple[object, ...]:
    """Return what a limit judges, of which groups."""
    return (
        *(limit.metric, limit.statistic, limit.size_bytes, limit.entry, limit.category),
        *(limit.scale, limit.min_nodes, limit.max_nodes, limit.fabric, limit.collective),
    )
