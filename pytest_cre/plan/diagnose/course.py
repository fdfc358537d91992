"""The course of a diagnosis: screening inside domains, without NVLink, between them; then the end."""

from collections.abc import Mapping, Sequence

from pytest_cre.evidence.model import DiagnosisSetup
from pytest_cre.plan.diagnose.book import Ask, Book, Result, Scope, Steps, together
from pytest_cre.plan.diagnose.hunt import Hunt
from pytest_cre.plan.diagnose.model import (
    Conclusion,
    InfrastructureFault,
    NodeFinding,
    Outcome,
    Trial,
)
from pytest_cre.plan.diagnose.topology import members_of, natural

PER_NODE, BESIDES = 4, 32


def most_trials(nodes: int) -> int:
    """Return how many tests a diagnosis runs at most; what is then unknown stays undetermined."""
    return PER_NODE * nodes + BESIDES


class Diagnosis:
    """A diagnosis, round by round: `tell` it what became of each test of `current`."""

    def __init__(self, setup: DiagnosisSetup) -> None:
        self._book = Book(setup=setup)
        self._course = _course(self._book)
        self._trials: list[Trial] = []
        self._outcomes: dict[str, Outcome] = {}
        self._round = 0
        self.current: tuple[Trial, ...] = ()
        self._is_over = False
        self._advance(None)

    @property
    def conclusion(self) -> Conclusion | None:
        """Return what it came to; None while tests are missing."""
        return self._concluded() if self._is_over else None

    def tell(self, trial: str, outcome: Outcome) -> tuple[Trial, ...]:
        """Take the outcome of a test; return those of the next round when it was the last one."""
        if trial not in {each.name for each in self.current}:
            raise ValueError(f"{trial}: not a test of this round")
        self._outcomes[trial] = outcome
        if any(each.name not in self._outcomes for each in self.current):
            return ()
        self._advance(
            [
                Result(trial=each.name, nodes=each.nodes, outcome=self._outcomes[each.name])
                for each in self.current
            ]
        )
        return self.current

    def _advance(self, results: list[Result] | None) -> None:
        try:
            asks = next(self._course) if results is None else self._course.send(results)
            while len(self._trials) + len(asks) > most_trials(len(self._book.setup.domains)):
                asks = self._course.send(
                    [Result(trial="", nodes=ask.nodes, outcome="undetermined") for ask in asks]
                )
        except StopIteration:
            self.current, self._is_over = (), True
            return
        self._round += 1
        numbers: dict[str, int] = {}
        trials = []
        for ask in asks:
            number = numbers.setdefault(ask.stage, 0)
            numbers[ask.stage] += 1
            trials.append(
                Trial(
                    name=f"{ask.stage}-r{self._round}-{number}",
                    stage=ask.stage,
                    round=self._round,
                    nodes=ask.nodes,
                    without_nvlink=ask.without_nvlink,
                )
            )
        self.current = tuple(trials)
        self._trials += trials

    def _concluded(self) -> Conclusion:
        book = self._book
        faults = _merged(book)
        broken: dict[str, InfrastructureFault] = {}
        for fault in faults:
            wide = [node for domain in fault.domains for node in book.members(domain)]
            for node in (*fault.nodes, *fault.others, *(wide if fault.is_of_domains else ())):
                broken.setdefault(node, fault)
        return Conclusion(
            findings=tuple(
                _finding(book, node, broken) for node in sorted(book.setup.domains, key=natural)
            ),
            infrastructure=faults,
            trials=tuple(self._trials),
            outcomes=dict(self._outcomes),
        )


def replayed(setup: DiagnosisSetup, outcomes: Mapping[str, Outcome]) -> Conclusion:
    """Return what a diagnosis with these outcomes came to; a test without one was not run."""
    diagnosis = Diagnosis(setup)
    while (conclusion := diagnosis.conclusion) is None:
        for trial in diagnosis.current:
            diagnosis.tell(trial.name, outcomes.get(trial.name, "undetermined"))
    return conclusion


def _course(book: Book) -> Steps:
    domains = members_of(book.setup.domains)
    yield from together(_domain(book, domain, nodes) for domain, nodes in domains.items())
    healthy = (book.open(nodes) for nodes in domains.values())
    chosen = tuple(nodes[0] for nodes in healthy if nodes)
    if len(chosen) < 2:
        return
    yield from _screened(book, "inter", Ask(stage="inter-screening", nodes=chosen))


def _screened(book: Book, scope: Scope, ask: Ask) -> Steps:
    """Run a group of a screening, and find what made it fail if it does."""
    (result,) = yield [ask]
    if result.has_failed:
        yield from Hunt(book, scope).explain(result)
    elif result.outcome == "undetermined":
        book.doubt_result(ask.nodes, result)
    else:
        book.passes(scope, result)


def _domain(book: Book, domain: str, nodes: tuple[str, ...]) -> Steps:
    """Test a domain as it is; then what is good of it without NVLink between its nodes."""
    if len(nodes) == 1:
        yield from _lonely(book, nodes)
        return
    yield from _screened(book, "intra", Ask(stage="intra-screening", nodes=nodes))
    rest = book.open(nodes)
    is_switched = book.setup.can_switch_nvlink and domain in book.setup.nvlink_domains
    if not is_switched or len(rest) < 2:
        return
    without = Ask(stage="intra-screening-no-nvl", nodes=rest, without_nvlink=True)
    yield from _screened(book, "no-nvl", without)


def _lonely(book: Book, nodes: tuple[str, ...]) -> Steps:
    """Test the only node of a domain alone where that is possible; else only with other domains."""
    if not book.setup.may_run_alone:
        return
    (first,) = yield [Ask(stage="intra-screening", nodes=nodes)]
    if first.outcome == "undetermined":
        book.doubt_result(nodes, first)
    elif not first.has_failed:
        book.passes("intra", first)
    else:
        (again,) = yield [Ask(stage="confirmation", nodes=nodes)]
        if again.has_failed:
            book.blame(nodes[0], "workload", [first, again])
        elif again.outcome == "undetermined":
            book.doubt_result(nodes, again)
        else:
            book.doubt(nodes, "intermittent", [first, again])


def _merged(book: Book) -> tuple[InfrastructureFault, ...]:
    """Return the faults, each once; those that together hold a whole domain are one of the domain.

    A way to a domain that no other reaches is no fault of its own.
    """
    found: list[InfrastructureFault] = []
    for domain, nodes in members_of(book.setup.domains).items():
        mine = [each for each in book.faults if each.domains == (domain,)]
        for cause in dict.fromkeys(each.cause for each in mine):
            alike = [each for each in mine if each.cause == cause]
            held = {node for each in alike for node in (*each.nodes, *each.others)}
            rest = tuple(node for node in nodes if node not in book.faulty)
            if len(alike) > 1 and held.issuperset(rest):
                found.append(_as_one(alike, nodes=rest, others=()))
            else:
                found += alike
    cut_off = {each.domains[0] for each in found if each.is_of_domains and each.cause == "fabric"}
    between = [
        each for each in book.faults if len(each.domains) > 1 and cut_off.isdisjoint(each.domains)
    ]
    for domains in dict.fromkeys(each.domains for each in between):
        alike = [each for each in between if each.domains == domains]
        wide = [each for each in alike if each.is_of_domains]
        if wide:
            found.append(_as_one(alike, nodes=wide[0].nodes, others=wide[0].others))
        else:
            found += alike
    return tuple(found)


def _as_one(
    faults: Sequence[InfrastructureFault], *, nodes: tuple[str, ...], others: tuple[str, ...]
) -> InfrastructureFault:
    return InfrastructureFault(
        cause=faults[0].cause,
        domains=faults[0].domains,
        nodes=nodes,
        others=others,
        is_of_domains=True,
        trials=tuple(dict.fromkeys(name for each in faults for name in each.trials)),
    )


def _finding(book: Book, node: str, broken: Mapping[str, InfrastructureFault]) -> NodeFinding:
    domain = book.domain(node)
    if node in book.faulty:
        cause, trials = book.faulty[node]
        return NodeFinding(node=node, domain=domain, state="faulty", reason=cause, trials=trials)
    if node in broken:
        fault = broken[node]
        return NodeFinding(
            node=node,
            domain=domain,
            state="infrastructure",
            reason=fault.cause,
            trials=fault.trials,
        )
    if node in book.doubtful:
        why, trials = book.doubtful[node]
        return NodeFinding(
            node=node, domain=domain, state="undetermined", reason=why, trials=trials
        )
    if node not in book.shown:
        return NodeFinding(node=node, domain=domain, state="undetermined", reason="untested")
    return NodeFinding(node=node, domain=domain, state="healthy", trials=(book.shown[node],))
