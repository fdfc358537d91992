"""One run against one cluster: connection, nodes, lease, workloads, verdicts, clean-up.

The only place that sees both sides of the waist: it hands plans to `run/`, and the evidence that
comes back to `measure/` and `judge/`.
"""

import copy
import os
import queue
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.errors import ClusterProblem, CreError

if TYPE_CHECKING:
    from pytest_cre.assessment import Assessor
    from pytest_cre.catalog.entry import CatalogEntry
    from pytest_cre.catalog.loader import Catalog
    from pytest_cre.cluster.client import Client
    from pytest_cre.cluster.local import LocalCluster
    from pytest_cre.evidence.manifest import PlannedItem
    from pytest_cre.evidence.model import GroupEvidence, WorkflowEvidence
    from pytest_cre.items import EntryCase
    from pytest_cre.options import Settings
    from pytest_cre.plan.model import Selection, WorkflowPlan
    from pytest_cre.report.model import ItemReport, RunReport
    from pytest_cre.run.ledger import Ledger

START_TIMEOUT_S = 30.0
INTERRUPT_PATIENCE_S = 10.0
SWEEP_PATIENCE_S = 10.0
SWEEP_RETRY_S = 4.0

Manifests = list[dict[str, object]]


class Campaign:
    """What one run does on its cluster. Contacts nothing until it is opened or asked."""

    def __init__(
        self, settings: "Settings", catalog: "Catalog", on_news: Callable[[str], None]
    ) -> None:
        self.settings = settings
        self.on_news = on_news  # called in the main thread only
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._has_kept = False
        self.catalog = catalog
        self.run_id = secrets.token_hex(5)
        self._local: LocalCluster | None = None
        self._folder: Path | None = None
        self._client: Client | ClusterProblem | None = None
        self._server_version: str | None = None
        self._selection: Selection | None = None
        self._ledger: Ledger | None = None
        self._owner: tuple[str, str] | None = None
        self._assessor: Assessor | None = None

    def open(self) -> None:
        """Start the embedded cluster where that is the one to certify."""
        if self.settings.cluster != "embedded" or self._local is not None:
            return
        from pytest_cre.cluster.local import start_embedded

        self._local = start_embedded(
            scenario=self.settings.scenario,
            seed=self.settings.simulated_seed,
            folder=self.folder,
            timeout_s=START_TIMEOUT_S,
        )

    @property
    def folder(self) -> Path:
        """Return this run's own temporary folder."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=f"pytest-cre-{self.run_id}-"))
        return self._folder

    @property
    def client(self) -> "Client":
        """Return the connected client; an unreachable cluster is asked once, not by every item."""
        if self._client is None:
            try:
                self._client = self._connect()
            except ClusterProblem as problem:
                self._client = problem
        if isinstance(self._client, ClusterProblem):
            raise self._client
        return self._client

    def _connect(self) -> "Client":
        from pytest_cre.cluster.client import connect

        client = connect(
            kubeconfig=str(self._local.kubeconfig) if self._local else self.settings.kubeconfig,
            context=self.settings.context,
            namespace=self.settings.namespace,
        )
        self._server_version = client.preflight()
        return client

    @property
    def selection(self) -> "Selection":
        """Return the nodes used and excluded, as they were when first asked for."""
        if self._selection is None:
            from pytest_cre.cluster.inventory import read_nodes
            from pytest_cre.plan.selection import select_nodes

            self._selection = select_nodes(
                read_nodes(self.client),
                self.catalog.architectures,
                names=self.settings.nodes,
                selector=self.settings.node_selector,
                architecture=self.settings.architecture,
                max_nodes=self.settings.max_nodes,
            )
        return self._selection

    def run(
        self, case: "EntryCase", modify: Callable[[Manifests], None], folder: Path | None
    ) -> "WorkflowEvidence":
        """Run an entry on its groups of nodes and return what was seen; objects are gone after.

        The evidence is written into `folder`, unless that is None.

        An interrupt stops the workload, cleans up within `INTERRUPT_PATIENCE_S` and is raised
        again. Raises `CreError` for what kept it from running.
        """
        stop = threading.Event()
        outcome: list[WorkflowEvidence | BaseException] = []

        def work() -> None:
            try:
                outcome.append(self._run(case, modify, folder, stop))
            except BaseException as problem:  # noqa: BLE001 - raised again in the main thread
                outcome.append(problem)

        thread = threading.Thread(target=work, name=f"cre-{case.entry.name}", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(0.2)  # in slices: a signal reaches the main thread between them
                while not self._news.empty():
                    self.on_news(self._news.get())
        except KeyboardInterrupt:
            stop.set()
            thread.join(INTERRUPT_PATIENCE_S)
            raise
        (result,) = outcome
        if isinstance(result, BaseException):
            raise result
        return result

    def _run(
        self,
        case: "EntryCase",
        modify: Callable[[Manifests], None],
        folder: Path | None,
        stop: threading.Event,
    ) -> "WorkflowEvidence":
        from pytest_cre.catalog.options import resolve_options
        from pytest_cre.evidence.journal import Journal
        from pytest_cre.evidence.store import write_workflow
        from pytest_cre.plan.workflow import plan_workflow
        from pytest_cre.run.leases import held_lease
        from pytest_cre.run.workflow import run_workflow

        options = self.settings.options
        known = {name: value for name, value in options.items() if name in case.entry.options}
        selection = self.selection
        plan = plan_workflow(
            case.entry,
            case.scale,
            selection,
            self.catalog.architectures.get(selection.architecture or ""),
            served=self.client.served_workloads(),
            run_id=self.run_id,
            owner=self.owner(),
            namespace=self.client.namespace,
            options=resolve_options(case.entry, known),
            scripts=scripts_of(case.entry),
        )
        plan = _modified(plan, modify)
        holder = f"{self.run_id}-{os.getpid()}"
        with held_lease(
            self.client, self.run_id, holder, stop=stop, on_wait=self._news.put
        ) as lease:
            journal = Journal(folder) if folder else None
            evidence = run_workflow(
                plan,
                self.client,
                ledger=self.ledger,
                stop=stop,
                keep=self._keeps,
                record=journal.flush if journal else None,
            )
        if folder is not None and journal is not None:
            write_workflow(folder, evidence)
            journal.discard()
        if lease.is_lost:
            raise ClusterProblem(
                f"{self.client.server}: the lease was lost while {case.entry.name} ran, so another "
                "run may have shared the nodes; its figures mean nothing"
            )
        return evidence

    @property
    def ledger(self) -> "Ledger":
        """Return the file that names what is about to be created, before it is."""
        if self._ledger is None:
            from pytest_cre.run.ledger import SUFFIX, Ledger, ledger_folder

            folder = ledger_folder(os.environ)
            self._ledger = Ledger(folder / f"{self.run_id}-{os.getpid()}{SUFFIX}", self.run_id)
        return self._ledger

    def owner(self) -> tuple[str, str]:
        """Return name and UID of the object that owns all others of this run."""
        if self._owner is None:
            from pytest_cre.run.owner import create_owner

            self._owner = create_owner(self.client, self.ledger)
        return self._owner

    def evidence_folder(self, planned: "PlannedItem | None") -> Path | None:
        """Return where an item's evidence goes; None where none is to be kept."""
        root = self.settings.evidence_dir
        return root / planned.folder if root and planned else None

    def write_manifest(
        self, report: "RunReport", planned: "Mapping[str, PlannedItem]", *, is_finished: bool
    ) -> None:
        """Write what is known of the run beside its evidence, where that is kept."""
        root = self.settings.evidence_dir
        if root is None:
            return
        from pytest_cre.evidence.manifest import RunManifest, write_manifest

        manifest = RunManifest(
            report=report.to_dict(),
            is_finished=is_finished,
            planned=planned,
            simulated_limits=self._simulated_limits(),
            catalogs=tuple(str(path.absolute()) for path in self.settings.catalogs),
            profiles=tuple(str(path.absolute()) for path in self.settings.profiles),
            logs_place=str(root),
        )
        write_manifest(root, manifest)

    def _simulated_limits(self) -> dict[str, str]:
        nodes = self._selection.nodes if self._selection else ()
        return {node.name: node.simulated_limits for node in nodes if node.simulated_limits}

    def _keeps(self, evidence: "GroupEvidence") -> bool:
        has_failed = evidence.job is None or evidence.job.terminal != "succeeded"
        keeps = self.settings.keep == "always" or (self.settings.keep == "failed" and has_failed)
        if keeps and not self._has_kept:
            self._has_kept = True
            self._news.put(
                f"objects are kept; delete them with: pytest-cre cleanup --run {self.run_id}"
            )
        return keeps

    def sweep(self) -> tuple[str, ...]:
        """Delete what this run created and still exists; return what could not be deleted.

        Objects that the user asked to keep stay, and with them the ledger that names them.
        """
        if self._ledger is None or self._has_kept:
            return ()
        from pytest_cre.run.cleanup import sweep

        # Short: after Ctrl-C a person waits, and CI systems kill what takes long.
        client = self.client.with_retry(replace(self.client.retry, budget_s=SWEEP_RETRY_S))
        swept = sweep(client, self.run_id, [self._ledger.path], patience_s=SWEEP_PATIENCE_S)
        self._ledger.close(forget=not swept.leftovers and swept.problem is None)
        self._ledger = None
        return swept.leftovers

    def close(self) -> None:
        """Sweep if that was not done, and end the local cluster; safe to call twice."""
        try:
            self.sweep()
        except CreError:
            pass  # the report has told it, or the run ended before there was one
        finally:
            if self._local is not None:
                self._local.stop()
                self._local = None
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None

    @property
    def assessor(self) -> "Assessor":
        """Return what turns evidence into verdicts, with the limits of the nodes in use."""
        if self._assessor is None:
            from pytest_cre.assessment import Assessor

            self._assessor = Assessor(
                self.catalog,
                simulated_limits=self._simulated_limits(),
                missing_limit=self.settings.missing_limit,
                logs_place=str(self.settings.evidence_dir) if self.settings.evidence_dir else None,
            )
        return self._assessor

    def conclude(self, items: "tuple[ItemReport, ...]", planned: Sequence[str]) -> "RunReport":
        """Clean up and return the report of the whole run; what is left behind is an error."""
        return self.report(items, planned, leftovers=self.sweep())

    def report(
        self,
        items: "tuple[ItemReport, ...]",
        planned: Sequence[str],
        *,
        leftovers: tuple[str, ...] = (),
    ) -> "RunReport":
        """Return the report of the run as far as it has come."""
        from pytest_cre import __version__
        from pytest_cre.catalog.digest import catalog_sha256
        from pytest_cre.report.model import ClusterReport, RunReport, with_result

        selection = self._selection
        client = self._client if not isinstance(self._client, ClusterProblem) else None
        return with_result(
            RunReport(
                run_id=self.run_id,
                result="INCOMPLETE",
                is_simulated=selection.is_simulated if selection else self._local is not None,
                cluster=ClusterReport(
                    kind=self.settings.cluster,
                    server_version=self._server_version,
                    namespace=client.namespace if client else None,
                ),
                architecture=selection.architecture if selection else None,
                nodes=tuple(node.name for node in selection.nodes) if selection else (),
                excluded=selection.excluded if selection else (),
                leftovers=leftovers,
                settings=self.settings.reported(),
                catalog_sha256=catalog_sha256(self.catalog),
                plugin_version=__version__,
                planned=tuple(planned),
                items=items,
            )
        )


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
