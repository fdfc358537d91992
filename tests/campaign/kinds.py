"""The kinds of faults that a campaign draws from: every one that the simulator knows."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

Stanza = dict[str, object]
Draw = Callable[[random.Random, str], Stanza]  # with the entry that it is for


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of fault. `spoils`: a pod that it hits cannot be part of a pass.

    `entries` and `nodes`: where it shows; elsewhere it is not planted.
    """

    where: Literal["faults", "apiFaults"]
    draw: Draw
    spoils: bool = False
    entries: tuple[str, ...] = ("*",)  # patterns
    nodes: Literal["any", "one", "several"] = "any"
    is_long: bool = False  # shows its worst in the second run of a sweep

    @property
    def action(self) -> str:
        """Return what the simulator calls it."""
        return str(self.draw(random.Random(0), "")["action"])


SWEEPS, TRAININGS = "communication/*", "training/*"
BURN_INS, DIAGNOSTICS = "compute/*", "diagnostics/*"


def _soon(rng: random.Random, stanza: Stanza) -> Stanza:
    return {**stanza, "after": {"seconds": round(rng.uniform(0.0, 0.35), 3)}, "times": 1}


def _node(action: str, **more: object) -> Kind:
    return Kind(
        where="faults", spoils=True, draw=lambda rng, _: _soon(rng, {"action": action, **more})
    )


def _drawn(rng: random.Random, more: Mapping[str, object]) -> Stanza:
    return {
        key: rng.choice(value) if isinstance(value, tuple) else value for key, value in more.items()
    }


def _state(action: str, *, spoils: bool = False, **more: object) -> Kind:
    return Kind(
        where="faults",
        spoils=spoils,
        draw=lambda rng, _: {"action": action, "times": rng.randrange(1, 3), **_drawn(rng, more)},
    )


def _on(action: str, *entries: str, **more: object) -> Kind:
    """Return a condition of one pod that shows on these entries."""
    return Kind(
        where="faults",
        spoils=True,
        entries=entries,
        draw=lambda rng, _: {"action": action, "times": 1, **_drawn(rng, more)},
    )


def _log(action: str, **more: object) -> Kind:
    def draw(rng: random.Random, entry: str) -> Stanza:
        after = {"seconds": round(rng.uniform(0.0, 0.5), 3)}
        if rng.random() < 0.3:
            is_sweep = fnmatchcase(entry, SWEEPS)
            after = {"size": 1 << rng.randrange(26, 35)} if is_sweep else {"step": 1}
        return {"action": action, "after": after, **_drawn(rng, more)}

    return Kind(where="faults", draw=draw)


def _api(action: str, *verbs: str, spared: int = 6, **more: object) -> Kind:
    def draw(rng: random.Random, _: str) -> Stanza:
        match = {"verb": rng.choice(verbs)} if verbs else {}
        return {
            "action": action,
            "match": match,
            "after": {"requests": rng.randrange(spared)},
            "times": rng.randrange(1, 4),
            **more,
        }

    return Kind(where="apiFaults", draw=draw)


def _watch(action: str, **more: object) -> Kind:
    return _api(action, "watch", spared=4, **more)  # so many watches every run has


def _answer(code: int, *verbs: str, spared: int = 6, **more: object) -> Kind:
    return _api("answer", *verbs, spared=spared, code=code, **more)


def _recreate(resource: str, *verbs: str, spared: int) -> Kind:
    """Return the kind of fault that puts a namesake in an object's place, before such a request."""
    return Kind(
        where="apiFaults",
        draw=lambda rng, _: {
            "action": "recreate",
            "object": "*",
            "match": {"verb": rng.choice(verbs), "resource": resource},
            "after": {"requests": rng.randrange(spared)},
            "times": 1,
        },
    )


_READS = ("get", "list", "watch")
KINDS: Mapping[str, Kind] = {
    "crash": _node("crash", exitCode=9),
    "oom": _node("crash", exitCode=137),
    "quit": Kind(  # amid the rows
        where="faults",
        spoils=True,
        entries=(SWEEPS,),
        nodes="one",
        is_long=True,
        draw=lambda rng, _: {
            "action": "crash",
            "exitCode": 0,
            "message": "bye",
            "after": {"seconds": round(rng.uniform(0.2, 0.45), 3)},
            "times": 1,
        },
    ),
    "hang": _node("hang"),
    "evict": _node("evict"),
    # A node that comes back in time has spoilt nothing.
    "stop-heartbeat": replace(_node("stop-heartbeat", seconds=13), spoils=False),
    "wrong-values": _on("wrong-values", SWEEPS, BURN_INS),
    "slow-link": _on("slow-link", SWEEPS, TRAININGS, factor=0.4),
    "socket-fallback": replace(_on("socket-fallback", SWEEPS), nodes="several"),
    "straggler": _on("straggler", TRAININGS, factor=(1.5, 3.0)),
    "slow-gpu": _on("slow-gpu", BURN_INS, factor=0.6, gpu=tuple(range(8))),
    "lost-gpu": _on("lost-gpu", BURN_INS, DIAGNOSTICS, gpu=tuple(range(8))),
    "failed-test": _on("failed-test", DIAGNOSTICS, test="software", gpu=tuple(range(8))),
    "no-dcgm": _on("no-dcgm", DIAGNOSTICS),
    "image-pull-back-off": Kind(
        where="faults", spoils=True, draw=lambda *_: {"action": "image-pull-back-off", "times": 1}
    ),
    "log-stuck": Kind(
        where="faults", draw=lambda rng, _: _soon(rng, {"action": "log-stuck"}) | {"times": 4}
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
    "conflict": _answer(409, "create", spared=3),
    "gone": _watch("answer", code=410),
    "throttled": _answer(429, retryAfter=1),
    "throttled-silently": _answer(429),
    "500": _answer(500, *_READS),
    "502": _answer(502, "create", "get"),
    "503": Kind(
        where="apiFaults",
        draw=lambda rng, _: {
            "action": "answer",
            "code": 503,
            "after": {"requests": rng.randrange(0, 20)},
            "lasting": 3,
        },
    ),
    "504": _answer(504, "list", message="Too large resource version"),
    "lose-answer": _api("lose-answer", "create", "delete", spared=3),
    "forget-history": _watch("forget-history", lines=1),
    "no-bookmarks": _watch("no-bookmarks"),
    "duplicate-events": _watch("duplicate-events"),
    "garbage-line": _watch("garbage-line", lines=1),
    "error-event": _watch("error-event", lines=1),
    "expired-event": _watch("error-event", lines=2, code=410),
    "null-lists": _api("null-lists", *_READS),
    "unknown-values": _api("unknown-values", *_READS),
    "unknown-fields": _api("unknown-fields", *_READS),
    "recreate-job": _recreate("jobs", "get", "get", "delete", spared=3),
    "recreate-pod": _recreate("pods/log", "get", spared=3),
    "recreate-lease": _recreate("leases", "delete", spared=1),
}
