"""Limits that follow from a scenario's hardware model: what healthy nodes reach, less a margin."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from pytest_cre.simulator.hardware import (
    Participant,
    SimulatedNode,
    group_speed,
    training_speed,
)

Limit = Mapping[str, object]

# The entries of each collective, by pattern: entries of a user's own that are named alike take part,
# in any domain. Not by their `test`: that is also the one of loopbacks and of programs of their own.
COLLECTIVES: Mapping[str, str] = {
    "all_gather": "*/*all-gather*",
    "all_reduce": "*/*all-reduce*",
    "alltoall": "*/*alltoall*",
    "broadcast": "*/*broadcast*",
    "reduce_scatter": "*/*reduce-scatter*",
    "sendrecv": "*/*sendrecv*",
}
LOOPBACK, LOOPBACK_NVSWITCH = "communication/nccl-loopback", "communication/nccl-loopback-nvswitch"
GOODPUT = 0.3  # in a training of a few seconds the start takes a real share
GEMM_SPREAD = 0.05
NO_DATE = "-"


def derived_limits(nodes: Sequence[SimulatedNode], margin: float) -> list[Limit]:
    """Return limits that nodes of the commonest model meet with `margin` to spare, in a fixed order.

    `margin` is the part of a healthy figure that noise and wear may take. Values are rounded to the
    lenient side, to a five in the third digit.
    """
    products = Counter(node.model.product for node in nodes if node.gpus)
    if not products:
        return []
    product = min(products, key=lambda name: (-products[name], name))
    group = [
        Participant(node=node, ranks=node.gpus)
        for node in sorted(nodes, key=lambda node: node.name)
        if node.gpus and node.model.product == product
    ]
    model, training = group[0].node.model, training_speed(group)
    below, above = 1.0 - margin, 1.0 + margin
    found = list(_bandwidth_limits(group, below))
    found += [
        _limit("step_time", "<=", _ceiling(training.step_time_s * above), "s", "training/*"),
        _limit(
            "tflops_per_gpu", ">=", _floor(training.tflops_per_gpu * below), "TFLOP/s", "training/*"
        ),
        _limit("goodput", ">=", GOODPUT, "ratio", "training/*"),
        _limit("gemm_tflops", ">=", _floor(model.gemm_rate * below), "TFLOP/s", "compute/*"),
        _limit("gemm_spread", "<=", GEMM_SPREAD, "ratio", "compute/*"),
        _limit("dcgm_failed_tests", "<", 1.0, "count", "diagnostics/*"),
    ]
    return found


def without_those_given(derived: Sequence[Limit], given: Sequence[Limit]) -> list[Limit]:
    """Return the limits that are given, and of the derived ones those that they leave to be said.

    A given one stands in place of each derived one of its metric and statistic whose entries, scale,
    fabric and numbers of nodes it covers.
    """
    return [*given, *(each for each in derived if not any(_covers(own, each) for own in given))]


def _covers(own: Limit, derived: Limit) -> bool:
    # The shipped entry of the pattern, such as communication/nccl-all-reduce.
    named = str(derived["entry"]).replace("*/*", "communication/nccl-").replace("*", "")
    return (
        own["metric"] == derived["metric"]
        and own["statistic"] == derived["statistic"]
        and (own["entry"] == derived["entry"] or fnmatchcase(named, str(own["entry"])))
        and own.get("scale") in (None, derived.get("scale"))
        and own.get("fabric") in (None, derived.get("fabric"))
        and _least(own) <= _least(derived)
        and _most(own) >= _most(derived)
    )


def _least(limit: Limit) -> float:
    return float(str(limit.get("minNodes", 1)))


def _most(limit: Limit) -> float:
    return float(str(limit.get("maxNodes", math.inf)))


def _bandwidth_limits(group: Sequence[Participant], below: float) -> Iterator[Limit]:
    """Yield limits by the number of nodes: from 2 on, each range is judged by its largest group.

    Where NVLink joins nodes, groups inside a domain have limits of their own, and so has the whole
    cluster; the others are those of nodes whose NVLink ends at the node.
    """
    apart = [replace(each, node=replace(each.node, domain=each.node.name)) for each in group]
    domains = Counter(each.node.domain for each in group)
    rack, size = min(domains.items(), key=lambda domain: (-domain[1], domain[0]))
    together = [each for each in group if each.node.domain == rack]
    for collective, entry in COLLECTIVES.items():

        def reached(members: Sequence[Participant], collective: str = collective) -> float:
            return group_speed(collective, members).busbw_gbs * below

        yield _busbw(entry, reached(apart[:1]), maxNodes=1)
        for least, most in _ranges(len(apart)):
            ends = {"minNodes": least, **({"maxNodes": most} if most < len(apart) else {})}
            yield _busbw(entry, reached(apart[:most]), **ends)
            if size > 1:  # for the same numbers of nodes, lest a narrower limit of the network wins
                yield _busbw(entry, reached(together), **ends, fabric="nvlink")
        if size > 1:
            yield _busbw(entry, reached(group), scale="full-scale")
    inside = group_speed("all_reduce", apart[:1]).busbw_gbs
    yield _busbw(LOOPBACK_NVSWITCH, inside * below)
    yield _busbw(LOOPBACK, min(group[0].node.model.network_gbs, inside) * below)


def _ranges(nodes: int) -> Iterator[tuple[int, int]]:
    """Yield 2 to 3, 4 to 7, 8 to 15 and so on, up to the number of nodes."""
    least = 2
    while least <= nodes:
        yield least, min(2 * least - 1, nodes)
        least *= 2


def _busbw(entry: str, value: float, **where: object) -> Limit:
    return {**_limit("busbw", ">=", _floor(value), "GB/s", entry, "max"), **where}


def _limit(
    metric: str, operator: str, value: float, unit: str, entry: str, statistic: str = "value"
) -> Limit:
    return {
        "metric": metric,
        "operator": operator,
        "value": value,
        "unit": unit,
        "entry": entry,
        "statistic": statistic,
        "date": NO_DATE,
    }


def _floor(value: float) -> float:
    step = _step(value)
    return round(math.floor(round(value / step, 6)) * step, 9)


def _ceiling(value: float) -> float:
    step = _step(value)
    return round(math.ceil(round(value / step, 6)) * step, 9)


def _step(value: float) -> float:
    return 5.0 * 10.0 ** (math.floor(math.log10(value)) - 2)
