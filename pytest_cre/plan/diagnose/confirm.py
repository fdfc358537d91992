"""The verdict on one suspect: tested with two nodes that are known as good."""

from collections.abc import Sequence

from pytest_cre.plan.diagnose.book import Ask, Book, Result, Scope, Steps
from pytest_cre.plan.diagnose.model import Stage
from pytest_cre.plan.diagnose.topology import in_order


class Confirmation:
    """Tests of single nodes in one scope."""

    def __init__(self, book: Book, scope: Scope) -> None:
        self._book = book
        self._scope = scope

    def ask(self, stage: Stage, nodes: Sequence[str]) -> Ask:
        """Return a test in this scope."""
        ordered = in_order(nodes, self._book.setup.domains)
        return Ask(stage=stage, nodes=ordered, without_nvlink=self._scope == "no-nvl")

    def verdict(self, node: str, failed: Result, cleared: dict[str, bool]) -> Steps:
        """Blame a suspect, clear it, or say why neither can be done.

        `cleared` takes nodes that passed with a good one: True with one of the same domain.
        """
        book, own = self._book, self._book.domain(node)
        references = book.references(node, self._scope, failed.nodes)
        has_neighbour = bool(references) and book.domain(references[0]) == own
        was_alone = False
        if self._scope == "intra" and not has_neighbour and book.setup.may_run_alone:
            (alone,) = yield [self.ask("confirmation", [node])]
            if alone.has_failed:
                book.blame(node, "workload", [failed, alone])
                return
            if alone.reading(failed) != "passed":
                book.doubt_result([node], alone)
                return
            was_alone = True
        if not references:
            return
        first = book.take(references[0])
        (one,) = yield [self.ask("confirmation", [node, first])]
        if one.reading(failed) == "passed":
            book.passes(self._scope, one)
            cleared[node] = book.domain(first) == own
            return
        if not one.has_failed:
            book.doubt_result([node], one)
            return
        second = self._second(first, references)
        if second is None:
            if self._scope == "inter":  # the node, its rack or the way between: nobody can tell
                yield from self.path(node, first, [failed, one])
            else:
                yield from self._blame(node, [first], [failed, one], was_alone=was_alone)
            return
        (two,) = yield [self.ask("confirmation", [node, book.take(second)])]
        if two.has_failed:
            shown = [failed, one, two]
            if self._scope == "inter":
                yield from self._node_or_domain(node, [first, second], shown)
            else:
                yield from self._blame(node, [first, second], shown, was_alone=was_alone)
        elif two.reading(failed) == "passed":
            book.passes(self._scope, two)
            yield from self.path(node, first, [failed, one])
        else:
            book.doubt_result([node], two)

    def path(self, first: str, second: str, shown: Sequence[Result]) -> Steps:
        """Note a fault between two nodes; between domains, see whether others of them share it."""
        book = self._book
        if self._scope != "inter":
            book.note_fault(self._scope, [first], [second], shown)
            return
        pair = [self._stand_in(first), self._stand_in(second)]
        if pair == [first, second]:
            book.note_fault("inter", [first], [second], shown, is_of_domains=True)
            return
        (again,) = yield [self.ask("confirmation", pair)]
        if again.outcome in ("passed", "unjudged"):
            book.passes("inter", again)
        book.note_fault("inter", [first], [second], [*shown, again], is_of_domains=again.has_failed)

    def _node_or_domain(
        self, node: str, references: Sequence[str], shown: Sequence[Result]
    ) -> Steps:
        """Tell a node that no other domain reaches from a domain that none reaches."""
        book, other = self._book, self._stand_in(node)
        if other == node:
            book.blame(node, "fabric", shown)
            return
        (result,) = yield [self.ask("confirmation", [other, references[0]])]
        if result.has_failed:
            # With one other domain nobody can tell on which side of the way the fault is.
            is_one = len({book.domain(each) for each in references}) == 1
            nodes, others = ([node], references[:1]) if is_one else ([node, other], [])
            book.note_fault("inter", nodes, others, [*shown, result], is_of_domains=True)
        elif result.outcome == "undetermined":
            book.doubt_result([node], result)
        else:
            book.passes("inter", result)
            book.blame(node, "fabric", [*shown, result])

    def _blame(
        self, node: str, references: Sequence[str], shown: Sequence[Result], *, was_alone: bool
    ) -> Steps:
        """Blame a node, and tell apart what of it is broken as far as one more test can."""
        book, joins = self._book, self._book.cause_between(self._scope, [node])
        neighbours = [each for each in references if book.domain(each) == book.domain(node)]
        if self._scope == "no-nvl":
            book.blame(node, "fabric", shown)
        elif was_alone:
            book.blame(node, joins if neighbours else "fabric", shown)
        elif book.setup.can_switch_nvlink and joins == "nvlink" and neighbours:
            shown = list(shown)
            for neighbour in neighbours:  # the first one's own network may be broken
                nodes = in_order([node, neighbour], book.setup.domains)
                (other,) = yield [Ask(stage="confirmation", nodes=nodes, without_nvlink=True)]
                shown.append(other)
                if not other.has_failed:
                    break
            book.blame(node, "workload" if not _works(shown[-1]) else "nvlink", shown)
        elif book.setup.may_run_alone:
            (alone,) = yield [self.ask("confirmation", [node])]
            book.blame(node, joins if _works(alone) else "workload", [*shown, alone])
        else:
            book.blame(node, "workload", shown)

    def _second(self, first: str, references: Sequence[str]) -> str | None:
        """Return another good node; between domains, one of a third domain where there is one."""
        book = self._book
        rest = [each for each in references if each != first]
        if self._scope == "inter":
            rest.sort(key=lambda each: book.domain(each) == book.domain(first))
        return next(iter(rest), None)

    def _stand_in(self, node: str) -> str:
        """Return another node of the same domain that is not itself in question, or the node."""
        book = self._book
        bad = {node, *book.faulty, *book.doubtful}
        others = [each for each in book.members(book.domain(node)) if each not in bad]
        return next(iter((*book.open(others), *others)), node)


def _works(result: Result) -> bool:
    return result.outcome in ("passed", "unjudged")
