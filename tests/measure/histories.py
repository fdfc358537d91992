"""Training histories in a compact script, as events.

A script is a list of moves separated by `;`, for example `start; ready 0; 3 * (run 100; save 10); end`:

open, close, end           as the events; `crash` is an abort
start                      a process starts
ready N                    a checkpoint of step N is loaded, training is ready (N = 0: fresh)
load S N                   the same after S seconds of loading, with its start seen
at N                       the step counter stands at N, and no line says so
pass S                     S seconds pass
run K [x D] [every E] [first]    K steps of D seconds; lines only at multiples of E (and for the first)
save S                     a save that blocks for S seconds
async B [C]                a save that blocks for B seconds and is durable C seconds after it started, if ever
loading                    a load starts
eval S                     an evaluation of S seconds
K * ( ... )                the moves in brackets, K times
"""

import re
from pathlib import Path
from typing import Any

import yaml

from pytest_cre.measure.account import LedgerParams, TrainingAccount
from pytest_cre.measure.events import EventKind, TrainingEvent
from pytest_cre.measure.goodput import account

SECOND = 1_000_000_000
DATA = Path(__file__).parents[1] / "data"

_PLAIN: dict[str, EventKind] = {
    "open": "window_open",
    "close": "window_close",
    "start": "proc_start",
    "loading": "load_start",
    "crash": "abort",
    "end": "end",
}


class History:
    """A clock, a step counter and the events so far."""

    def __init__(self) -> None:
        self.now = 0
        self.step = 0
        self.events: list[TrainingEvent] = []

    def add(self, kind: EventKind, *, after: float = 0, **more: Any) -> None:
        self.events.append(TrainingEvent(kind=kind, t_ns=self.now + ns(after), **more))

    def move(self, words: list[str]) -> None:
        name, *rest = words
        numbers = [float(word) for word in rest if re.fullmatch(r"[\d.]+", word)]
        if name in _PLAIN:
            self.add(_PLAIN[name])
        elif name in ("ready", "at"):
            self.step = int(numbers[0])
            if name == "ready":
                self.add("load_end", step=self.step)
        elif name == "load":
            self.add("load_start")
            self.now += ns(numbers[0])
            self.step = int(numbers[1])
            self.add("load_end", step=self.step)
        elif name == "pass":
            self.now += ns(numbers[0])
        elif name == "run":
            self.run(rest, int(numbers[0]))
        elif name == "save":
            self.add("save_start", step=self.step)
            self.now += ns(numbers[0])
            self.add("save_unblock", step=self.step)
            self.add("save_commit", step=self.step)
        elif name == "async":
            self.add("save_start", step=self.step)
            self.add("save_unblock", after=numbers[0], step=self.step)
            if len(numbers) > 1:
                self.add("save_commit", after=numbers[1], step=self.step)
            self.now += ns(numbers[0])
        elif name == "eval":
            self.add("eval_start")
            self.now += ns(numbers[0])
            self.add("eval_end")
        else:
            raise ValueError(f"unknown move {name!r}")

    def run(self, rest: list[str], count: int) -> None:
        lasts = ns(float(rest[rest.index("x") + 1])) if "x" in rest else SECOND
        every = int(rest[rest.index("every") + 1]) if "every" in rest else 1
        for at in range(count):
            self.now += lasts
            self.step += 1
            if self.step % every == 0 or (at == 0 and "first" in rest):
                self.add("step", step=self.step)


def ns(seconds: float) -> int:
    return round(seconds * SECOND)


def events_of(script: str) -> list[TrainingEvent]:
    """Return the events of a script, in the order of its moves."""
    history = History()
    for words in _moves(script):
        history.move(words)
    return history.events


def _moves(script: str) -> list[list[str]]:
    unfolded = " ".join(script.split())
    while (inner := re.search(r"(\d+) \* \(([^()]*)\)", unfolded)) is not None:
        moves = "; ".join([inner[2]] * int(inner[1]))
        unfolded = unfolded[: inner.start()] + moves + unfolded[inner.end() :]
    return [move.split() for move in unfolded.split(";") if move.strip()]


def measured(script: str, **params: Any) -> TrainingAccount:
    """Return the account of a script; the reference step time is 1 s unless told."""
    return account(events_of(script), LedgerParams(**{"reference_step_s": 1.0, **params}))


def ledger_s(measured: TrainingAccount) -> dict[str, float]:
    """Return the ledger in seconds, without what is 0."""
    return {name: t / SECOND for name, t in measured.ledger_ns.items() if t}


def data(name: str) -> Any:
    """Return a file of tests/data."""
    return yaml.safe_load((DATA / name).read_text(encoding="utf-8"))
