"""One item of a run: its plan, its attempts on the cluster, the evidence that is kept of them."""

import copy
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.errors import ClusterProblem
from pytest_cre.interrupt import INTERRUPTS
from pytest_cre.progress import ProgressBoard

if TYPE_CHECKING:
    from pytest_cre.attempts import Attempts
    from pytest_cre.campaign import Campaign
    from pytest_cre.catalog.certification import Category
    from pytest_cre.catalog.entry import CatalogEntry
    from pytest_cre.diagnosing import Diagnosing
    from pytest_cre.evidence.journal import Journal
    from pytest_cre.evidence.model import GroupEvidence, WorkflowEvidence
    from pytest_cre.items import EntryCase
    from pytest_cre.plan.diagnose.model import Trial
    from pytest_cre.plan.model import GroupPlan, Selection, WorkflowPlan

INTERRUPT_PATIENCE_S = 10.0
SILENT_PATIENCE_S = 5.0  # where nothing answers that could delete anything
HASTENED_PATIENCE_S = 2.0  # after a second interrupt

Manifests = list[dict[str, object]]


def run_item(
    campaign: "Campaign",
    case: "EntryCase",
    modify: Callable[[Manifests], None],
    folder: Path | None,
) -> "WorkflowEvidence":
    """Run an entry on its groups of nodes and return what was seen; objects are gone after.

    The evidence is written into `folder`, unless that is None.

    An interrupt stops the workload, cleans up within `INTERRUPT_PATIENCE_S`, or less where the
    cluster does not answer, and is raised again. Raises `CreError` for what kept it from running.
    """
    run = _ItemRun(campaign, case, modify, folder)
    # Not `Thread.join`: interrupted once, Python 3.11 and 3.12 take the thread for ended.
    has_ended = threading.Event()
    outcome: list[WorkflowEvidence | BaseException] = []

    def work() -> None:
        try:
            outcome.append(run.evidence())
        except BaseException as problem:  # noqa: BLE001 - raised again in the main thread
            outcome.append(problem)
        finally:
            has_ended.set()

    threading.Thread(target=work, name=f"cre-{case.entry.name}", daemon=True).start()
    try:
        while not has_ended.wait(0.2):  # in slices: a signal reaches us between them
            campaign.tell_news()
            campaign.display.show(run.board)
        campaign.tell_news()
    except KeyboardInterrupt:
        run.stop.set()
        interrupted_s = time.monotonic()
        while not has_ended.wait(0.2):
            waited_s = time.monotonic() - interrupted_s
            patience_s = SILENT_PATIENCE_S if campaign.target.is_silent else INTERRUPT_PATIENCE_S
            if INTERRUPTS.is_hastened:
                patience_s = min(patience_s, HASTENED_PATIENCE_S)
            if INTERRUPTS.is_given_up or waited_s >= patience_s:
                break
        raise
    finally:
        campaign.display.clear()
    (result,) = outcome
    if isinstance(result, BaseException):
        raise result
    return result


class _ItemRun:
    """The state of one item's run, in a thread of its own."""

    def __init__(
        self,
        campaign: "Campaign",
        case: "EntryCase",
        modify: Callable[[Manifests], None],
        folder: Path | None,
    ) -> None:
        self._campaign = campaign
        self._case = case
        self._entry: CatalogEntry = case.entry
        self._modify = modify
        self._folder = folder
        self._category = self._asked_category()
        self._selection: Selection | None = None  # of the nodes that are free, once looked at
        self.stop = threading.Event()
        self.board = ProgressBoard(time.monotonic)

    def evidence(self) -> "WorkflowEvidence":
        """Run all attempts under the run's lease and return what was seen."""
        from pytest_cre.evidence.journal import Journal
        from pytest_cre.evidence.store import write_workflow
        from pytest_cre.run.leases import held_lease

        campaign, plan = self._campaign, self._plan(0)
        with held_lease(
            campaign.target.client,
            campaign.run_id,
            campaign.seat.holder,
            stop=self.stop,
            on_wait=campaign.say,
            on_lost=self.stop.set,
        ) as lease:
            if plan.groups:
                self._selection = campaign.target.free_selection(self.stop)
                if self._selection != campaign.target.selection:
                    plan = self._plan(0)
            journal = Journal(self._folder) if self._folder else None
            evidence = self._run(plan, journal)
        if self._folder is not None and journal is not None:
            write_workflow(self._folder, evidence)
            journal.discard()
        if lease.loss is not None:
            raise ClusterProblem(
                f"{campaign.target.client.server}: {lease.loss} while {self._entry.name} ran, so another "
                "run may have shared the nodes; its figures mean nothing"
            )
        return evidence

    def _run(self, plan: "WorkflowPlan", journal: "Journal | None") -> "WorkflowEvidence":
        from pytest_cre.lookout import Lookout
        from pytest_cre.run.workflow import MAX_CONCURRENT, run_workflow

        campaign, category = self._campaign, self._category
        assessor, bounds, spending = campaign.assessor, campaign.bounds, campaign.spending
        ran_s = campaign.ran_s
        gpus = sum(len(group.group.nodes) * group.gpus_per_node for group in plan.groups)
        bounds.admit(self._entry, gpus=gpus, ran_s=ran_s, spent_gpu_s=spending.gpu_s)

        def admit(group: "GroupPlan") -> None:
            now_s = campaign.ran_s
            bounds.admit(
                self._entry,
                gpus=group.ranks_planned,
                ran_s=now_s,
                spent_gpu_s=spending.gpu_s + (now_s - ran_s) * gpus,
            )

        def resume_step(evidence: "GroupEvidence", group: "GroupPlan") -> int:
            step = assessor.resume_step(evidence)
            admit(group)
            return step

        further = self._further(plan, admit)
        lookout = Lookout(
            assessor.measure_group,
            self.board,
            multiplier=self._entry.stall_multiplier,
            clock=time.monotonic,
        )
        evidence = run_workflow(
            plan,
            campaign.target.client,
            ledger=campaign.ledger,
            stop=self.stop,
            keep=self._keeps,
            record=journal.flush if journal else None,
            on_progress=self.board.tell,
            is_stalled=lookout.is_stalled,
            resume_step=resume_step,
            wants_more=further,
            left_s=bounds.left_s(ran_s),
            max_concurrent=(category.max_concurrent if category else None) or MAX_CONCURRENT,
        )
        spending.add((campaign.ran_s - ran_s) * gpus)
        missed = further.problems(evidence.groups)
        return replace(evidence, problems=(*evidence.problems, *missed))

    def _further(
        self, plan: "WorkflowPlan", admit: "Callable[[GroupPlan], None]"
    ) -> "Attempts | Diagnosing":
        """Return what decides on further attempts, or on the further tests of a diagnosis."""
        assessor, category = self._campaign.assessor, self._category
        if plan.diagnosis is not None:
            from pytest_cre.diagnosing import Diagnosing

            return Diagnosing(
                plan.diagnosis,
                plan_of=lambda trials, attempt: self._plan(attempt, trials).groups,
                is_retry=assessor.is_retry,
                outcome=assessor.outcome,
                admit=admit,
            )
        from pytest_cre.attempts import Attempts

        iterations = category.iterations if category else 1
        return Attempts(
            plan_of=self._plan,
            wants=lambda tried: assessor.wants_more(tried, iterations=iterations),
            is_retry=assessor.is_retry,
            admit=admit,
        )

    def _asked_category(self) -> "Category | None":
        """Return what the certification asks of the item, where there is one."""
        asked = self._campaign.certification
        return asked.category(self._entry.name, self._case.scale) if asked is not None else None

    def _plan(self, attempt: int, trials: "Sequence[Trial] | None" = None) -> "WorkflowPlan":
        """Plan an attempt on all groups, or on those of a diagnosis' later tests."""
        from pytest_cre.catalog.entry import MIN_GROUP_SIZE
        from pytest_cre.catalog.options import resolve_options
        from pytest_cre.plan.workflow import plan_workflow

        campaign, entry, scale = self._campaign, self._entry, self._case.scale
        selection = self._selection or campaign.target.selection
        ground, category = campaign.target.ground, self._category
        asked = campaign.settings.options
        known = {name: value for name, value in asked.items() if name in entry.options}
        known = {**ground.fitting.option_defaults(entry, scale), **known}
        plan = plan_workflow(
            entry,
            scale,
            selection,
            campaign.catalog.architectures.get(selection.architecture or ""),
            served=campaign.target.served_workloads,
            run_id=campaign.run_id,
            owner=campaign.owner(),
            namespace=campaign.target.client.namespace,
            options=resolve_options(entry, known),
            scripts=scripts_of(entry),
            attempt=attempt,
            nodes_per_group=category.group_size(len(selection.nodes)) if category else None,
            asked_kind=campaign.settings.kind,
            ground=ground,
            min_group_size=category.min_group_size if category else MIN_GROUP_SIZE,
            trials=trials,
            offered=campaign.target.provisions,
        )
        return _modified(plan, self._modify)

    def _keeps(self, evidence: "GroupEvidence") -> bool:
        wish = self._campaign.settings.keep
        has_failed = evidence.job is None or evidence.job.terminal != "succeeded"
        keeps = wish == "always" or (wish == "failed" and has_failed)
        if keeps:
            self._campaign.keep(evidence)
        return keeps


def _modified(plan: "WorkflowPlan", modify: Callable[[Manifests], None]) -> "WorkflowPlan":
    """Return the plan with each group's manifests as the user's hook leaves them."""
    groups = []
    for group in plan.groups:
        manifests: Manifests = copy.deepcopy([dict(each) for each in group.manifests])
        modify(manifests)
        groups.append(replace(group, manifests=tuple(manifests)))
    return replace(plan, groups=tuple(groups))


def scripts_of(entry: "CatalogEntry") -> dict[str, str]:
    """Return the text of each script that the entry mounts into its pods."""
    folder = Path(__file__).parent / "workloads"
    return {name: (folder / name).read_text(encoding="utf-8") for name in entry.scripts}
