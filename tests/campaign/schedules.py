"""Fault schedules drawn from a seed: a small cluster, an entry, and what goes wrong."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pytest_cre.catalog.entry import WorkloadKind
from tests.campaign.kinds import KINDS, Kind

COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "alltoall", "broadcast", "sendrecv")
TRAINING, BURN_IN, DIAGNOSTICS = "training/nemotron5-8b", "compute/gemm", "diagnostics/dcgm-level1"
# Most schedules sweep: there are the most ways to go wrong.
ENTRIES: Mapping[str, float] = {
    **{f"communication/nccl-{name}": 0.1 for name in COLLECTIVES},
    TRAINING: 0.2,
    BURN_IN: 0.1,
    DIAGNOSTICS: 0.1,
}


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """One run to be made."""

    number: int
    seed: int
    scenario: str  # JSON, which is YAML
    entry: str
    scale: str
    options: Mapping[str, str]
    kinds: tuple[str, ...]
    workload: WorkloadKind | None = None  # None: the entry's first


def draw_schedule(seed: int, number: int, kinds: Mapping[str, Kind] = KINDS) -> Schedule:
    """Return one schedule; the same seed and number give the same one.

    The number's own kind of fault comes first, others as the entry and the nodes allow.
    """
    rng = random.Random(f"{seed}/{number}")
    names = list(kinds)
    chosen = _chosen(
        names[number % len(names)], rng.sample(names, min(rng.randrange(0, 3), len(names))), kinds
    )
    planted = [kinds[name] for name in chosen]
    weights = {name: ENTRIES[name] for name in _entries(planted)}
    (entry,) = rng.choices(list(weights), list(weights.values()))
    scenario: dict[str, object] = {
        "extends": "h100-8",
        "nodes": [{"name": "n-{index}", "count": rng.randrange(2, 5), "gpu": "h100"}],
        "tableTime": 0.5,
        "initTime": 0.05,
        "podStartTime": 0.05,
        "rendezvousTimeout": 3,
        **{
            where: [kind.draw(rng, entry) for kind in planted if kind.where == where]
            for where in ("faults", "apiFaults")
        },
    }
    return Schedule(
        number=number,
        seed=rng.randrange(1 << 30),
        scenario=json.dumps(scenario),
        entry=entry,
        scale=_scale(rng, entry, planted),
        options=_options(rng, entry, is_long=any(kind.is_long for kind in planted)),
        kinds=chosen,
    )


def _chosen(first: str, others: Sequence[str], kinds: Mapping[str, Kind]) -> tuple[str, ...]:
    """Return the kinds that can show in one run, the first one among them."""
    chosen = [first]
    for name in others:
        planted = [kinds[each] for each in (*chosen, name)]
        if name not in chosen and _entries(planted) and len(_nodes(planted)) < 2:
            chosen.append(name)
    if "stuck-terminating" in chosen and "hang" not in chosen:
        chosen.append("hang")  # pods that have ended do not linger
    return tuple(chosen)


def _entries(planted: Sequence[Kind]) -> list[str]:
    """Return the entries on which all of these show."""
    return [
        entry
        for entry in ENTRIES
        if all(any(fnmatchcase(entry, each) for each in kind.entries) for kind in planted)
    ]


def _nodes(planted: Sequence[Kind]) -> set[str]:
    return {kind.nodes for kind in planted} - {"any"}


def _scale(rng: random.Random, entry: str, planted: Sequence[Kind]) -> str:
    if entry == TRAINING:
        return "full-scale"
    if entry in (BURN_IN, DIAGNOSTICS):
        return "intra-node"
    wide = {"several": ("full-scale",), "one": ("intra-node",)}
    choices = next(
        (wide[each] for each in sorted(_nodes(planted))),
        ("full-scale", "full-scale", "intra-node"),
    )
    return rng.choice(choices)


def _options(rng: random.Random, entry: str, *, is_long: bool) -> Mapping[str, str]:
    if entry == TRAINING:
        return {"maxSteps": str(rng.randrange(22, 36))}  # two lines of ten steps at least
    if entry == BURN_IN:
        return {"numSamples": str(rng.randrange(2, 9))}
    if entry == DIAGNOSTICS:
        return {}
    return {
        "minBytes": "16G" if is_long else rng.choice(("8", "1M", "64M")),
        "stepFactor": rng.choice(("2", "4", "8")),
        "numIterations": rng.choice(("5", "20", "100")),
        "numCycles": "9" if is_long else rng.choice(("1", "1", "2", "3")),
    }
