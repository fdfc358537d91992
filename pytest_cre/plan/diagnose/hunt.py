"""From a group that failed to what is to blame for it."""

from collections.abc import Sequence
from itertools import combinations

from pytest_cre.plan.diagnose.book import Ask, Book, Result, Scope, Steps, together
from pytest_cre.plan.diagnose.confirm import Confirmation
from pytest_cre.plan.diagnose.model import Stage
from pytest_cre.plan.diagnose.topology import halves

FLOOR = 3  # a group of three is not halved: one half would be a single node
LEVELS = 4  # of narrowing a boundary


class Hunt:
    """The search in one scope: inside a domain, the same without NVLink, or between domains."""

    def __init__(self, book: Book, scope: Scope) -> None:
        self._book = book
        self._scope = scope
        self._confirmation = Confirmation(book, scope)

    def explain(self, failed: Result) -> Steps:
        """Find what made a group fail, until the rest of it passes together."""
        book = self._book
        while True:
            yield from self._find(failed)
            rest = book.open(failed.nodes)
            if len(rest) == len(failed.nodes):  # nothing was found: never take that for healthy
                book.doubt(rest, "intermittent", [failed])
                return
            if len(rest) < 2 or book.has_passed(self._scope, rest):
                return
            (again,) = yield [self._ask("confirmation", rest)]
            reading = again.reading(failed)
            if reading == "passed":
                book.passes(self._scope, again)
            elif reading == "undetermined":
                book.doubt_result(rest, again)
            if reading != "failed":
                return
            failed = again

    def _find(self, failed: Result, floor: int | None = None) -> Steps:
        """Halve a group that failed until it is small enough to test its nodes one by one."""
        book = self._book
        least = max(FLOOR, book.setup.min_group_size) if floor is None else floor
        if len(failed.nodes) <= least:
            yield from self._suspect(failed)
            return
        parts = halves(failed.nodes, book.setup.domains)
        results = yield [self._ask("bisection", part) for part in parts]
        self._note(results, failed)
        readings = [each.reading(failed) for each in results]
        if "failed" in readings:
            yield from together(self._find(each, floor) for each in results if each.has_failed)
        elif "undetermined" not in readings:
            yield from self._cross(results[0], results[1], failed, level=1)

    def _cross(self, first: Result, second: Result, failed: Result, level: int) -> Steps:
        """Narrow a fault that shows only where nodes of both sides take part."""
        book, domains = self._book, self._book.setup.domains
        sides = [[part for part in halves(side.nodes, domains) if part] for side in (first, second)]
        if all(len(side) == 1 for side in sides):
            yield from self._confirmation.path(first.nodes[0], second.nodes[0], [failed])
            return
        pairs = [(one, other) for one in sides[0] for other in sides[1]]
        results = yield [self._ask("cross-boundary", (*one, *other)) for one, other in pairs]
        self._note(results, failed)
        found = [(pair, each) for pair, each in zip(pairs, results, strict=True) if each.has_failed]
        if not found:
            if all(each.reading(failed) == "passed" for each in results):
                yield from self._again(first.nodes, second.nodes, failed)
        elif len(found) == len(pairs):
            book.note_fault(self._scope, first.nodes, second.nodes, [failed, *results])
        elif level == LEVELS:
            for (one, other), each in found:
                book.note_fault(self._scope, one, other, [failed, each])
        else:
            yield from together(
                self._cross(
                    Result(trial=each.trial, nodes=one, outcome=each.outcome),
                    Result(trial=each.trial, nodes=other, outcome=each.outcome),
                    each,
                    level + 1,
                )
                for (one, other), each in found
            )

    def _suspect(self, failed: Result) -> Steps:
        """Test each node of a small group with known good ones; then look between its nodes."""
        book, group = self._book, failed.nodes
        cleared: dict[str, bool] = {}  # whether by a node of its own domain
        yield from together(self._confirmation.verdict(node, failed, cleared) for node in group)
        if len(book.open(group)) < len(group):
            return
        if len(group) > FLOOR:
            yield from self._find(failed, floor=FLOOR)
            return
        if len(group) == 2:
            yield from self._again(group[:1], group[1:], failed)
            return
        results = yield [self._ask("confirmation", pair) for pair in combinations(group, 2)]
        self._note(results, failed)
        bad = [each for each in results if each.has_failed]
        if not bad and all(each.reading(failed) == "passed" for each in results):
            yield from self._again(group, (), failed)
        elif len(bad) == len(results):
            book.note_fault(self._scope, group, (), [failed, *bad])
        elif len(bad) == 2 and len(bad) + 1 == len(results):
            yield from self._common(bad, cleared)
        else:
            yield from together(
                self._confirmation.path(each.nodes[0], each.nodes[1], [failed, each])
                for each in bad
            )

    def _common(self, bad: Sequence[Result], cleared: dict[str, bool]) -> Steps:
        """Blame the node that failed with two others, unless one of its own domain has cleared it."""
        (node,) = set(bad[0].nodes) & set(bad[1].nodes)
        if cleared.get(node):
            yield from together(
                self._confirmation.path(each.nodes[0], each.nodes[1], [each]) for each in bad
            )
        elif self._book.open([node]):
            self._book.blame(node, self._book.cause_between(self._scope, [node]), bad)

    def _again(self, first: Sequence[str], second: Sequence[str], failed: Result) -> Steps:
        """Run a group again whose parts have all passed."""
        whole = (*first, *second)
        (again,) = yield [self._ask("confirmation", whole)]
        reading = again.reading(failed)
        if reading == "passed":
            self._book.doubt(whole, "intermittent", [failed, again])
        elif reading == "undetermined":
            self._book.doubt_result(whole, again)
        elif len(first) == len(second) == 1:
            yield from self._confirmation.path(first[0], second[0], [failed, again])
        else:
            self._book.note_fault(self._scope, first, second, [failed, again])

    def _note(self, results: Sequence[Result], failed: Result) -> None:
        for each in results:
            reading = each.reading(failed)
            if reading == "passed":
                self._book.passes(self._scope, each)
            elif reading == "undetermined":
                self._book.doubt_result(each.nodes, each)

    def _ask(self, stage: Stage, nodes: Sequence[str]) -> Ask:
        return self._confirmation.ask(stage, nodes)
