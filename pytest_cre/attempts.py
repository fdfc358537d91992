"""Further attempts on a group: who wants one, whether it fits into the run, what is told if not."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pytest_cre.errors import UnmetNeed
from pytest_cre.evidence.model import GroupEvidence, Problem

if TYPE_CHECKING:
    from pytest_cre.plan.model import GroupPlan, WorkflowPlan

Attempted = Sequence[GroupEvidence]


class Attempts:
    """What an item's groups were tried so far. Called with each attempt's evidence when it ends.

    `wants` says whether a group needs another attempt after these, and `is_retry` whether that is to
    make good for the last one; `admit` raises `UnmetNeed` for one that does not fit into the run any
    more; `plan_of` plans an attempt of all groups.
    """

    def __init__(
        self,
        *,
        plan_of: "Callable[[int], WorkflowPlan]",
        wants: Callable[[Attempted], bool],
        is_retry: Callable[[Attempted], bool] = lambda _: False,
        admit: "Callable[[GroupPlan], None]",
    ) -> None:
        self._plan_of = plan_of
        self._wants = wants
        self._is_retry = is_retry
        self._admit = admit
        self._plans: dict[int, WorkflowPlan] = {}
        self._seen: dict[str, list[GroupEvidence]] = {}
        self._refused: dict[str, str] = {}

    def __call__(self, evidence: GroupEvidence) -> "tuple[GroupPlan, ...]":
        """Return the plan of another attempt on the group; nothing where none is needed or fits."""
        seen = self._seen.setdefault(evidence.group, [])
        seen.append(evidence)
        if not self._wants(seen):
            return ()
        attempt = evidence.attempt + 1
        if attempt not in self._plans:
            self._plans[attempt] = self._plan_of(attempt)
        groups = self._plans[attempt].groups
        plan = next(each for each in groups if each.group.name == evidence.group)
        try:
            self._admit(plan)
        except UnmetNeed as need:
            self._refused[evidence.group] = str(need)
            return ()
        return (plan,)

    def problems(self, groups: Attempted) -> tuple[Problem, ...]:
        """Return what to tell of groups that needed another attempt and did not get it.

        A retry that is missing leaves the verdict to the lost attempt, which is none to be had.
        """
        tried: dict[str, list[GroupEvidence]] = {}
        for group in sorted(groups, key=lambda each: each.key):
            tried.setdefault(group.group, []).append(group)
        return tuple(
            Problem(
                code="not-retried" if self._is_retry(attempts) else "interrupted",
                message=f"{name}: attempt {len(attempts) + 1} was not run: "
                f"{self._refused.get(name, 'the run ended before it')}",
            )
            for name, attempts in tried.items()
            if self._wants(attempts)
        )
