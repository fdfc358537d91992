"""Random training histories, and their ledgers by counting step by step."""

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction

from hypothesis import strategies as st

from pytest_cre.measure.account import LedgerParams, TrainingAccount
from pytest_cre.measure.events import EventKind, TrainingEvent
from pytest_cre.measure.goodput import account

MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Move:
    """A run of `steps` steps that each last `extra` longer than the reference, or a pause of `lasts`."""

    kind: str  # run, save, async, eval
    steps: int = 0
    extra: int = 0
    lasts: int = 0
    commits_after: int | None = None


@dataclass(frozen=True, slots=True)
class Life:
    """One attempt; `resume` picks what it resumes from among all that could be: 0 is the newest."""

    wait: int
    init: int
    load: int
    resume: int
    moves: tuple[Move, ...]
    tail: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole run, in milliseconds."""

    lives: tuple[Life, ...]
    step: int
    succeeds: bool

    def with_life(self, at: int, life: Life) -> "Plan":
        return replace(self, lives=(*self.lives[:at], life, *self.lives[at + 1 :]))


lasting = st.integers(1, 5000)
moves = st.one_of(
    st.builds(
        Move, st.just("run"), steps=st.integers(1, 9), extra=st.sampled_from((0, 0, 300, 9000))
    ),
    st.builds(Move, st.just("save"), lasts=lasting),
    st.builds(
        Move,
        st.just("async"),
        lasts=lasting,
        commits_after=st.one_of(st.none(), st.integers(5000, 9000)),
    ),
    st.builds(Move, st.just("eval"), lasts=lasting),
)
lives = st.builds(
    Life,
    wait=lasting,
    init=lasting,
    load=st.one_of(st.just(0), lasting),
    resume=st.integers(0, 3),
    moves=st.lists(moves, max_size=6).map(tuple),
    tail=st.integers(0, 20_000),
)
plans = st.builds(
    Plan,
    lives=st.lists(lives, min_size=1, max_size=4).map(tuple),
    step=st.sampled_from((250, 1000, 1333)),
    succeeds=st.booleans(),
)


class Told:
    """What a plan turns into: events, and the facts to count with."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.events: list[TrainingEvent] = []
        self.now = 0
        self.ledger: Counter[str] = Counter()
        self.steps: list[list[tuple[int, int]]] = []  # by life: number, extra
        self.resumed: list[int] = []
        self.durable = {0}
        self.line = 0  # the largest step saved in what the job goes on from
        self.add("window_open")
        for at, life in enumerate(plan.lives):
            self.live(life, is_first=at == 0, is_last=at == len(plan.lives) - 1)
        self.add("window_close")
        self.count()

    def add(self, kind: EventKind, at: int | None = None, step: int | None = None) -> None:
        t_ns = (self.now if at is None else at) * MILLISECOND
        self.events.append(TrainingEvent(kind=kind, t_ns=t_ns, step=step))

    def spend(self, category: str, lasts: int) -> None:
        self.ledger[category] += lasts
        self.now += lasts

    def live(self, life: Life, *, is_first: bool, is_last: bool) -> None:
        self.spend("schedule" if is_first else "reschedule", life.wait)
        self.add("proc_start")
        self.spend("init", life.init)
        choices = sorted(self.durable, reverse=True)
        number = choices[min(life.resume, len(choices) - 1)]
        if life.load:
            self.add("load_start")
            self.spend("load", life.load)
        self.add("load_end", step=number)
        self.resumed.append(number)
        self.line = number
        saved_last = -1
        done: list[tuple[int, int]] = []
        later: list[tuple[int, int]] = []  # asynchronous commits: when, step
        for move in life.moves:
            if move.kind == "run":
                for _ in range(move.steps):
                    number += 1
                    self.now += self.plan.step + move.extra
                    self.add("step", step=number)
                    done.append((number, move.extra))
            elif move.kind == "eval":
                self.add("eval_start")
                self.spend("eval", move.lasts)
                self.add("eval_end")
            elif (
                number != saved_last
            ):  # a second save of one step would look like a copy of the first
                saved_last = number
                self.add("save_start", step=number)
                started = self.now
                self.spend("checkpoint_blocking", move.lasts)
                self.add("save_unblock", step=number)
                if move.kind == "save":
                    self.add("save_commit", step=number)
                    self.durable.add(number)
                    self.line = max(self.line, number)
                elif move.commits_after is not None:
                    later.append((started + move.commits_after, number))
        self.steps.append(done)
        ends_well = is_last and self.plan.succeeds
        if ends_well:
            self.spend("other", life.tail)
        else:
            in_flight = min(life.tail, self.plan.step)
            self.spend("rework", in_flight)
            self.spend("hang", life.tail - in_flight)
        for at, saved in later:
            if at <= self.now:
                self.add("save_commit", at=at, step=saved)
                self.durable.add(saved)
                self.line = max(self.line, saved)
        self.add("end" if ends_well else "abort")

    def limits(self, *, durable_only: bool) -> list[int]:
        end = self.line if durable_only else 10**9
        return [min([end, *self.resumed[at + 1 :]]) for at in range(len(self.steps))]

    def count(self) -> None:
        for life, limit in zip(
            self.steps, self.limits(durable_only=not self.plan.succeeds), strict=True
        ):
            for at, (number, extra) in enumerate(life):
                survives = number <= limit
                self.ledger["useful" if survives else "rework"] += self.plan.step
                self.ledger["warmup" if at == 0 else "straggler" if survives else "rework"] += extra

    def useful(self, *, durable_only: bool) -> int:
        limits = self.limits(durable_only=durable_only)
        return sum(
            self.plan.step
            for life, cut in zip(self.steps, limits, strict=True)
            for n, _ in life
            if n <= cut
        )

    @property
    def executed(self) -> int:
        return sum(map(len, self.steps))

    def ledger_ns(self) -> dict[str, int]:
        return {name: lasts * MILLISECOND for name, lasts in self.ledger.items() if lasts}

    def account(
        self, events: list[TrainingEvent] | None = None, **params: object
    ) -> TrainingAccount:
        told = {"reference_step_s": self.plan.step / 1000, "log_interval": 1, **params}
        return account(self.events if events is None else events, LedgerParams(**told))


def shares(run: TrainingAccount) -> dict[str, Fraction | None]:
    """Return the ratios of a run's ledger without rounding."""
    if not run.window_ns:
        return {}
    return {name: Fraction(t_ns, run.window_ns) for name, t_ns in run.ledger_ns.items()}
