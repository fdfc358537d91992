"""What is known so far in a diagnosis."""

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pytest_cre.evidence.model import DiagnosisSetup
from pytest_cre.plan.diagnose.model import Cause, Doubt, InfrastructureFault, Outcome, Stage
from pytest_cre.plan.diagnose.topology import in_order, members_of

Reading = Literal["passed", "failed", "undetermined"]
Scope = Literal["intra", "no-nvl", "inter"]
"""Over what a group exchanges data: what joins a domain, that without NVLink between nodes, and
what joins the domains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A test that is wanted next."""

    stage: Stage
    nodes: tuple[str, ...]
    without_nvlink: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a test."""

    trial: str
    nodes: tuple[str, ...]
    outcome: Outcome

    @property
    def has_failed(self) -> bool:
        """Return whether the group failed, by its workload or by a limit."""
        return self.outcome in ("failed", "slow")

    def reading(self, cause: "Result") -> Reading:
        """Return what it says of the failure that is looked for.

        Where a limit was missed, a group without a limit of its own says nothing.
        """
        if self.has_failed:
            return "failed"
        if self.outcome == "passed" or (self.outcome == "unjudged" and cause.outcome == "failed"):
            return "passed"
        return "undetermined"


Steps = Generator[Sequence[Ask], Sequence[Result], None]
"""A part of a diagnosis: it yields the tests of its next round and is sent their results."""


def together(parts: Iterable[Steps]) -> Steps:
    """Go through several parts at the same time, round by round."""
    waiting = [(part, next(part, None)) for part in parts]
    while waiting := [(part, asks) for part, asks in waiting if asks is not None]:
        results = yield [ask for _, asks in waiting for ask in asks or ()]
        behind = list(results)
        following: list[tuple[Steps, Sequence[Ask] | None]] = []
        for part, asks in waiting:
            count = len(asks or ())
            mine, behind = behind[:count], behind[count:]
            try:
                following.append((part, part.send(mine)))
            except StopIteration:
                continue
        waiting = following


@dataclass(slots=True, kw_only=True)
class Book:
    """Nodes by what they turned out to be, and the groups that passed, by scope."""

    setup: DiagnosisSetup
    faulty: dict[str, tuple[Cause, tuple[str, ...]]] = field(default_factory=dict)
    doubtful: dict[str, tuple[Doubt, tuple[str, ...]]] = field(default_factory=dict)
    faults: list[InfrastructureFault] = field(default_factory=list)
    passed: dict[Scope, list[frozenset[str]]] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)  # node to a test that it passed with others
    _used: Counter[str] = field(default_factory=Counter)

    def domain(self, node: str) -> str:
        """Return a node's domain."""
        return self.setup.domains[node]

    def members(self, domain: str) -> tuple[str, ...]:
        """Return the nodes of a domain."""
        return members_of(self.setup.domains)[domain]

    def is_open(self, node: str) -> bool:
        """Return whether nothing speaks against a node."""
        return not (
            node in self.faulty
            or node in self.doubtful
            or any(node in (*fault.nodes, *fault.others) for fault in self.faults)
        )

    def open(self, nodes: Iterable[str]) -> tuple[str, ...]:
        """Return the nodes that nothing speaks against."""
        return tuple(node for node in nodes if self.is_open(node))

    def passes(self, scope: Scope, result: Result) -> None:
        """Note a group that passed."""
        self.passed.setdefault(scope, []).append(frozenset(result.nodes))
        if len(result.nodes) > 1:
            for node in result.nodes:
                self.shown.setdefault(node, result.trial)

    def has_passed(self, scope: Scope, nodes: Collection[str]) -> bool:
        """Return whether a group passed that held all of these nodes."""
        return any(group.issuperset(nodes) for group in self.passed.get(scope, ()))

    def blame(self, node: str, cause: Cause, results: Sequence[Result]) -> None:
        """Note a faulty node."""
        self.faulty.setdefault(node, (cause, tuple(each.trial for each in results)))

    def doubt(self, nodes: Iterable[str], why: Doubt, results: Sequence[Result]) -> None:
        """Note nodes about which nothing can be said."""
        for node in nodes:
            self.doubtful.setdefault(node, (why, tuple(each.trial for each in results)))

    def doubt_result(self, nodes: Iterable[str], result: Result) -> None:
        """Note nodes whose test told nothing: it came to no result, or no limit is known for it."""
        self.doubt(nodes, "no-limit" if result.outcome == "unjudged" else "no-result", [result])

    def note_fault(
        self,
        scope: Scope,
        nodes: Sequence[str],
        others: Sequence[str],
        results: Sequence[Result],
        *,
        is_of_domains: bool = False,
    ) -> None:
        """Note a fault of the infrastructure."""
        domains = self.setup.domains
        both = in_order([*nodes, *others], domains)
        self.faults.append(
            InfrastructureFault(
                cause=self.cause_between(scope, nodes),
                domains=tuple(dict.fromkeys(domains[node] for node in both)),
                nodes=in_order(nodes, domains),
                others=in_order(others, domains),
                is_of_domains=is_of_domains,
                trials=tuple(each.trial for each in results),
            )
        )

    def cause_between(self, scope: Scope, nodes: Sequence[str]) -> Cause:
        """Return what joins nodes in this scope."""
        is_nvlink = all(self.domain(node) in self.setup.nvlink_domains for node in nodes)
        return "nvlink" if scope == "intra" and is_nvlink else "fabric"

    def references(self, suspect: str, scope: Scope, unless: Collection[str]) -> list[str]:
        """Return nodes known as good to test a suspect with, the best first.

        That is one of the same domain; between domains, one of another. Of equals it is the one
        that was taken least.
        """
        known = {node for group in self.passed.get(scope, ()) for node in group}
        if scope == "inter" and not known - set(unless):
            known = {node for group in self.passed.get("intra", ()) for node in group}
        own = self.domain(suspect)
        found = [
            node
            for node in self.open(in_order(list(known), self.setup.domains))
            if node not in unless and (scope != "inter" or self.domain(node) != own)
        ]
        return sorted(found, key=lambda node: (self.domain(node) != own, self._used[node]))

    def take(self, node: str) -> str:
        """Note that a node is taken as a reference."""
        self._used[node] += 1
        return node
