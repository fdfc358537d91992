"""Fault schedules drawn from a seed: a small cluster, an entry, and what goes wrong."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

Stanza = dict[str, object]
Draw = Callable[[random.Random], Stanza]

COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "alltoall", "broadcast", "sendrecv")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of fault. `spoils`: a pod that it hits cannot be part of a pass."""

    where: str  # faults or apiFaults
    draw: Draw
    spoils: bool = False
    alone: bool = False  # shows its worst on one node, in the second run of a sweep


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


def _soon(rng: random.Random, stanza: Stanza) -> Stanza:
    return {**stanza, "after": {"seconds": round(rng.uniform(0.0, 0.35), 3)}, "times": 1}


def _node(action: str, **more: object) -> Kind:
    return Kind(
        where="faults", spoils=True, draw=lambda rng: _soon(rng, {"action": action, **more})
    )


def _drawn(rng: random.Random, more: Mapping[str, object]) -> Stanza:
    return {
        key: rng.choice(value) if isinstance(value, tuple) else value for key, value in more.items()
    }


def _state(action: str, *, spoils: bool = False, **more: object) -> Kind:
    return Kind(
        where="faults",
        spoils=spoils,
        draw=lambda rng: {"action": action, "times": rng.randrange(1, 3), **_drawn(rng, more)},
    )


def _log(action: str, **more: object) -> Kind:
    def draw(rng: random.Random) -> Stanza:
        after = {"seconds": round(rng.uniform(0.0, 0.6), 3)}
        if rng.random() < 0.3:
            after = {"size": 1 << rng.randrange(26, 35)}
        return {"action": action, "after": after, **_drawn(rng, more)}

    return Kind(where="faults", draw=draw)


def _api(action: str, *verbs: str, **more: object) -> Kind:
    def draw(rng: random.Random) -> Stanza:
        match = {"verb": rng.choice(verbs)} if verbs else {}
        return {
            "action": action,
            "match": match,
            "after": {"requests": rng.randrange(0, 6)},
            "times": rng.randrange(1, 4),
            **more,
        }

    return Kind(where="apiFaults", draw=draw)


def _answer(code: int, *verbs: str, **more: object) -> Kind:
    return _api("answer", *verbs, code=code, **more)


_READS = ("get", "list", "watch")
KINDS: Mapping[str, Kind] = {
    "crash": _node("crash", exitCode=9),
    "oom": _node("crash", exitCode=137),
    "quit": replace(_node("crash", exitCode=0, message="bye"), alone=True),
    "hang": _node("hang"),
    "evict": _node("evict"),
    # A node that comes back in time has spoilt nothing.
    "stop-heartbeat": replace(_node("stop-heartbeat", seconds=13), spoils=False),
    "wrong-values": Kind(
        where="faults", spoils=True, draw=lambda _: {"action": "wrong-values", "times": 1}
    ),
    "slow-link": Kind(
        where="faults",
        spoils=True,
        draw=lambda _: {"action": "slow-link", "factor": 0.4, "times": 1},
    ),
    "image-pull-back-off": Kind(
        where="faults", spoils=True, draw=lambda _: {"action": "image-pull-back-off", "times": 1}
    ),
    "log-stuck": Kind(
        where="faults", draw=lambda rng: _soon(rng, {"action": "log-stuck"}) | {"times": 4}
    ),
    "cordon": _node("cordon"),
    "lose-gpu": _node("lose-gpu"),
    "node-condition": _node("node-condition", condition="GpuFellOff"),
    "reboot": _node("reboot"),
    "replace-node": _node("replace-node"),
    "evict-unmarked": _node("evict-unmarked"),
    "preempt": _node("preempt"),
    "delete-pod": _node("delete-pod"),
    "fail-and-delete": _node("fail-and-delete", exitCode=3),
    # A node by itself may start anew and do all its work.
    "restart": replace(_node("restart"), spoils=False),
    "config-error": _state("config-error", spoils=True),
    "refuse-admission": _state("refuse-admission", spoils=True),
    "stuck-terminating": _state("stuck-terminating", seconds=2),
    "flip": _state("flip", seconds=0.1),
    "log-burst": _log("log-burst", lines=(1, 500, 500, 3000)),
    "log-flood": _log("log-burst", lines=(40_000,), message=("x" * 250,)),
    "log-garbage": _log("log-garbage"),
    "log-line": _log("log-line", bytes=(16383, 16384, 16385, 40_000)),
    "log-lose": _log("log-lose"),
    "log-rotate": _log("log-rotate"),
    "log-size": _state("log-size", bytes=(2000, 8000, 30_000)),
    "log-endless": _state("log-endless"),
    "log-eof": _state("log-eof", reads=(1, 2, 4)),
    "log-reset": _state("log-reset", reads=(1, 2, 4)),
    "log-refuse": _state("log-refuse", code=(400, 404, 500, 502), reads=(1, 2)),
    "log-tail": _state("log-tail"),
    "refuse": _api("refuse", seconds=1.0),
    "reset": _api("reset", *_READS, lines=2),
    "black-hole": _api("black-hole", *_READS, seconds=2.0, lines=1),
    "delay": _api("delay", seconds=1.0),
    "slow-drip": _api("slow-drip", *_READS, bytesPerSecond=20_000),
    "close": _api("close", "get", "watch", lines=3),
    "unauthorized": _answer(401, "get", "list"),
    "forbidden": _answer(403, "watch", "list"),
    "not-found": _answer(404, "list", "watch", every=2),
    "conflict": _answer(409, "create", "update", "patch"),
    "gone": _answer(410, "watch"),
    "throttled": _answer(429, retryAfter=1),
    "throttled-silently": _answer(429),
    "500": _answer(500, *_READS),
    "502": _answer(502, "create", "get"),
    "503": Kind(
        where="apiFaults",
        draw=lambda rng: {
            "action": "answer",
            "code": 503,
            "after": {"requests": rng.randrange(0, 20)},
            "lasting": 3,
        },
    ),
    "504": _answer(504, "list", message="Too large resource version"),
    "lose-answer": _api("lose-answer", "create", "patch", "delete"),
    "forget-history": _api("forget-history", lines=1),
    "no-bookmarks": _api("no-bookmarks"),
    "duplicate-events": _api("duplicate-events"),
    "garbage-line": _api("garbage-line", lines=1),
    "error-event": _api("error-event", lines=1),
    "expired-event": _api("error-event", lines=2, code=410),
    "null-lists": _api("null-lists", *_READS),
    "unknown-values": _api("unknown-values", *_READS),
    "unknown-fields": _api("unknown-fields", *_READS),
}


def draw_schedule(seed: int, number: int) -> Schedule:
    """Return one schedule; the same seed and number give the same one."""
    rng = random.Random(f"{seed}/{number}")
    names = list(KINDS)
    chosen = [names[number % len(names)], *rng.sample(names, rng.randrange(0, 3))]
    if "stuck-terminating" in chosen:
        chosen.append("hang")  # pods that have ended do not linger
    kinds = tuple(dict.fromkeys(chosen))
    is_alone = any(KINDS[name].alone for name in kinds)
    is_training = rng.random() < 0.25 and not is_alone
    scenario: dict[str, object] = {
        "extends": "h100-8",
        "nodes": [{"name": "n-{index}", "count": rng.randrange(2, 5), "gpu": "h100"}],
        "tableTime": 0.5,
        "initTime": 0.05,
        "podStartTime": 0.05,
        "rendezvousTimeout": 3,
        "faults": [],
        "apiFaults": [],
    }
    for name in kinds:
        kind = KINDS[name]
        scenario[kind.where].append(kind.draw(rng))
    options = {"maxSteps": str(rng.randrange(15, 30))}
    entry, scale = "training/nemotron5-8b", "full-scale"
    if not is_training:
        entry = f"communication/nccl-{rng.choice(COLLECTIVES)}"
        scale = rng.choice(("full-scale", "full-scale", "intra-node"))
        cycles = rng.choice(("1", "1", "2", "3"))
        sizes = rng.choice(("8", "1M", "64M"))
        if is_alone:
            scale, cycles, sizes = "intra-node", "9", "16G"
        options = {
            "minBytes": sizes,
            "stepFactor": rng.choice(("2", "4", "8")),
            "numIterations": rng.choice(("5", "20", "100")),
            "numCycles": cycles,
        }
    return Schedule(
        number=number,
        seed=rng.randrange(1 << 30),
        scenario=json.dumps(scenario),
        entry=entry,
        scale=scale,
        options=options,
        kinds=kinds,
    )
