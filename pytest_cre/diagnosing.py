"""A diagnosis while it runs: each group's outcome in, the groups to run next out."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pytest_cre.errors import UnmetNeed
from pytest_cre.evidence.model import GroupEvidence, Problem
from pytest_cre.plan.diagnose.course import Diagnosis
from pytest_cre.plan.diagnose.model import Outcome, Trial

if TYPE_CHECKING:
    from pytest_cre.evidence.model import DiagnosisSetup
    from pytest_cre.plan.model import GroupPlan


class Diagnosing:
    """What a diagnosis has run so far. Called with the evidence of each test that ended.

    `plan_of` plans an attempt of tests; `is_retry` says whether a group's last attempt was lost and
    is to be made again, `outcome` what its attempts came to; `admit` raises `UnmetNeed` for a test
    that does not fit into the run any more.
    """

    def __init__(
        self,
        setup: "DiagnosisSetup",
        *,
        plan_of: "Callable[[Sequence[Trial], int], Sequence[GroupPlan]]",
        is_retry: Callable[[Sequence[GroupEvidence]], bool],
        outcome: Callable[[Sequence[GroupEvidence]], Outcome],
        admit: "Callable[[GroupPlan], None]",
    ) -> None:
        self._diagnosis = Diagnosis(setup)
        self._plan_of = plan_of
        self._is_retry = is_retry
        self._outcome = outcome
        self._admit = admit
        self._seen: dict[str, list[GroupEvidence]] = {}
        self._refused: dict[str, str] = {}

    def __call__(self, evidence: GroupEvidence) -> "Sequence[GroupPlan]":
        """Return the plans of the next tests; nothing while others of this round are running."""
        seen = self._seen.setdefault(evidence.group, [])
        seen.append(evidence)
        if self._is_retry(seen):
            trials = [each for each in self._diagnosis.current if each.name == evidence.group]
            again = self._admitted(self._plan_of(trials, evidence.attempt + 1))
            if again:
                return again
        return self._planned(self._diagnosis.tell(evidence.group, self._outcome(seen)))

    def _planned(self, trials: Sequence[Trial]) -> "list[GroupPlan]":
        while trials:
            plans = self._admitted(self._plan_of(trials, 0))
            admitted = {plan.group.name for plan in plans}
            following: Sequence[Trial] = ()
            for trial in trials:
                if trial.name not in admitted:
                    following = self._diagnosis.tell(trial.name, "undetermined")
            if plans:
                return plans
            trials = following
        return []

    def _admitted(self, plans: "Sequence[GroupPlan]") -> "list[GroupPlan]":
        found = []
        for plan in plans:
            try:
                self._admit(plan)
                found.append(plan)
            except UnmetNeed as need:
                attempt = f" attempt {plan.attempt + 1}" if plan.attempt else ""
                self._refused[f"{plan.group.name}{attempt}"] = str(need)
        return found

    def problems(self, groups: Sequence[GroupEvidence]) -> tuple[Problem, ...]:
        """Return what to tell of tests that were wanted and not run, after these."""
        ran = {group.group for group in groups}
        missing = {
            trial.name: "the run ended before it"
            for trial in self._diagnosis.current
            if trial.name not in ran
        }
        return tuple(
            Problem(code="interrupted", message=f"{name} was not run: {why}")
            for name, why in {**missing, **self._refused}.items()
        )
