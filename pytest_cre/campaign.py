"""One run against one cluster: connection, nodes, lease, workloads, verdicts, clean-up.

The only place that sees both sides of the waist: it hands plans to `run/`, and the evidence that
comes back to `measure/` and `judge/`.
"""

import os
import queue
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.errors import ClusterProblem, CreError, UsageProblem
from pytest_cre.progress import ProgressDisplay

if TYPE_CHECKING:
    from pytest_cre.assessment import Assessor
    from pytest_cre.catalog.certification import Certification
    from pytest_cre.catalog.entry import WorkloadKind
    from pytest_cre.catalog.loader import Catalog
    from pytest_cre.cluster.client import Client
    from pytest_cre.cluster.local import LocalCluster
    from pytest_cre.cluster.provisions import ClusterProvisions
    from pytest_cre.cluster.retry import RetryPolicy
    from pytest_cre.evidence.manifest import PlannedItem
    from pytest_cre.evidence.model import GroupEvidence
    from pytest_cre.news import News
    from pytest_cre.options import Settings
    from pytest_cre.plan.bounds import Bounds
    from pytest_cre.plan.model import Selection
    from pytest_cre.plan.platform import Ground
    from pytest_cre.plan.site import Site
    from pytest_cre.progress import Screen
    from pytest_cre.report.model import ItemReport, RunReport
    from pytest_cre.run.ledger import Ledger
    from pytest_cre.seat import Seat
    from pytest_cre.spending import Spending

START_TIMEOUT_S = 30.0
CONTROLPLANE_START_TIMEOUT_S = 120.0
SWEEP_PATIENCE_S = 10.0
BRIEF_S = 4.0
SILENT_READ_S = 1.5
SILENCE_S = 10.0  # of the cluster, before a person is told


class Campaign:
    """What one run does on its cluster. Contacts nothing until it is opened or asked."""

    def __init__(
        self,
        settings: "Settings",
        catalog: "Catalog",
        news: "News",
        seat: "Seat",
        *,
        certification: "Certification | None" = None,
    ) -> None:
        from pytest_cre.plan.sitefile import site_for, site_of

        self.settings = settings
        self.certification = certification
        self.site: Site = site_for(site_of(settings.site_file), certification)
        self.news = news  # told in the main thread only
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()  # by other threads
        self._has_kept = False
        self.catalog = catalog
        self.seat = seat
        self.display = ProgressDisplay(news.tell, time.monotonic)
        self._began_s = time.monotonic()
        self.run_id = seat.run_id
        self._is_open = False
        self._is_lost = False  # the sweep has met a cluster that does not answer
        self._local: LocalCluster | None = None
        self._folder: Path | None = None
        self._client: Client | ClusterProblem | None = None
        self._server_version: str | None = None
        self._selection: Selection | None = None
        self._ground: Ground | None = None
        self._ledger: Ledger | None = None
        self._owner: tuple[str, str] | None = None
        self._assessor: Assessor | None = None

    def say(self, text: str) -> None:
        """Have something told by the main thread; any thread may call this."""
        self._said.put(text)

    @property
    def ran_s(self) -> float:
        """Return for how many seconds the run has gone on."""
        return time.monotonic() - self._began_s

    @property
    def bounds(self) -> "Bounds":
        """Return what the whole run may cost."""
        from pytest_cre.plan.bounds import Bounds

        return Bounds(deadline_s=self.settings.deadline_s, gpu_minutes=self.settings.gpu_minutes)

    @property
    def spending(self) -> "Spending":
        """Return what the run's items have used."""
        from pytest_cre.spending import Spending

        return Spending(self.folder)

    def keep(self, evidence: "GroupEvidence") -> None:
        """Note that a group's objects stay in the cluster."""
        if not self._has_kept:
            self._has_kept = True
            self.say(f"objects are kept; delete them with: pytest-cre cleanup --run {self.run_id}")
        self.ledger.keep(evidence.manifests)

    def watch_on(self, screen: "Screen") -> None:
        """Show progress on this terminal."""
        self.display.screen = screen

    def open(self) -> None:
        """Start the local cluster where that is the one to certify, and look at the nodes.

        Raises `UsageProblem`. A cluster that does not answer is told by every item, as an error.
        """
        if self._is_open or self.seat.is_worker:
            return
        self._is_open = True
        for note in self.certification.notes if self.certification else ():
            self.news.tell(note)
        try:
            self._local = self._start_local()
        except ClusterProblem as problem:
            self._client = problem
        with suppress(ClusterProblem):
            self._selection = self._select(self.client.with_retry(_brief(self.client)))

    def _start_local(self) -> "LocalCluster | None":
        """Start the cluster that this run brings along; None where the user's is certified."""
        if self.settings.cluster == "embedded":
            from pytest_cre.cluster.local import start_embedded

            return start_embedded(
                scenario=self.settings.scenario,
                seed=self.settings.simulated_seed,
                folder=self.folder,
                timeout_s=START_TIMEOUT_S,
            )
        if self.settings.cluster == "controlplane":
            from pytest_cre.cluster.local import start_controlplane

            return start_controlplane(
                binaries=self.settings.controlplane_dir,
                scenario=self.settings.scenario,
                seed=self.settings.simulated_seed,
                namespace=self.settings.namespace or "default",
                folder=self.folder,
                timeout_s=CONTROLPLANE_START_TIMEOUT_S,
            )
        return None

    @property
    def local_kubeconfig(self) -> Path | None:
        """Return the kubeconfig of the local cluster, or None where the user's is certified."""
        return self._local.kubeconfig if self._local else self.seat.kubeconfig

    @property
    def folder(self) -> Path:
        """Return this run's own temporary folder."""
        if self.seat.folder is not None:
            return self.seat.folder
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
        from pytest_cre.cluster.rbac import missing_rights

        if self.settings.cluster != "kubernetes" and self.local_kubeconfig is None:
            # Never what a kubeconfig of the user's leads to.
            raise ClusterProblem(f"the {self.settings.cluster} cluster of this run did not start")
        client = connect(
            kubeconfig=str(self.local_kubeconfig or "") or self.settings.kubeconfig,
            context=self.settings.context,
            namespace=self.settings.namespace,
        )
        self._server_version = client.preflight()
        missing = missing_rights(client)
        if missing:
            raise ClusterProblem(
                f"{client.server}: these credentials may not {', '.join(missing)} "
                f"(namespace {client.namespace}); `pytest-cre rbac` prints the least rights of a run"
            )
        return client

    @property
    def selection(self) -> "Selection":
        """Return the nodes used and excluded, as they were when first asked for."""
        if self._selection is None:
            self._selection = self._select(self.client)
        return self._selection

    def _select(self, client: "Client") -> "Selection":
        from pytest_cre.cluster.inventory import read_nodes
        from pytest_cre.formats.selector import parse_selector
        from pytest_cre.plan.platform import selection_tolerations
        from pytest_cre.plan.selection import is_gpu_node, select_nodes
        from pytest_cre.run.tenants import lasting_holders

        nodes = read_nodes(client)
        gpu_nodes = [node for node in nodes if is_gpu_node(node)]
        names, matches = self.settings.nodes, parse_selector(self.settings.node_selector).matches
        wanted = [
            node.name
            for node in gpu_nodes
            if matches(node.labels) and (not names or node.name in names)
        ]
        return select_nodes(
            nodes,
            self.catalog.architectures,
            held=lasting_holders(client, wanted, self.run_id) if wanted else {},
            tolerations=selection_tolerations(
                gpu_nodes, self.catalog.platforms, self.settings.platform, self.site
            ),
            names=self.settings.nodes,
            selector=self.settings.node_selector,
            architecture=self.settings.architecture,
            max_nodes=self.settings.max_nodes,
        )

    def free_selection(self, stop: threading.Event) -> "Selection":
        """Return the selection without the nodes that somebody holds GPUs of right now.

        To be asked by whoever has the lease. What is held for a moment only is waited for.
        """
        from pytest_cre.plan.tenants import without_busy
        from pytest_cre.run.tenants import await_free

        return without_busy(
            self.selection,
            await_free(self.client, self.selection.nodes, stop=stop, on_wait=self.say),
        )

    @property
    def ground(self) -> "Ground":
        """Return platform and hardware that pods are fitted to; raises `UsageProblem`."""
        if self._ground is None:
            self._ground = self._ground_of(self.selection)
            for warning in self._ground.warnings:
                self.say(warning)
        return self._ground

    def _ground_of(self, selection: "Selection") -> "Ground":
        from pytest_cre.plan.platform import choose_platform, ground_of

        asked = self.settings.platform
        return ground_of(
            choose_platform(selection.nodes, self.catalog.platforms, asked),
            self.catalog.architectures.get(selection.architecture or ""),
            self.catalog.platforms,
            nodes=selection.nodes,
            was_asked=asked is not None,
            site=self.site,
        )

    def _known_ground(self) -> "Ground | None":
        """Return what the run stands on, as far as nodes were looked at and tell it.

        Where workers run the items, the main process has not asked for it yet.
        """
        if self._ground is not None or self._selection is None or not self._selection.nodes:
            return self._ground
        try:
            return self._ground_of(self._selection)
        except UsageProblem:
            return None  # each item tells it

    def tell_news(self) -> None:
        """Tell what other threads had to say, and a cluster that is silent; in the main thread."""
        while not self._said.empty():
            self.display.clear()
            self.news.tell(self._said.get())
        if isinstance(self._client, ClusterProblem) or self._client is None:
            return
        silence = self._client.silence
        if silence is not None and silence.lasted_s >= SILENCE_S:
            self.display.clear()
            self.news.tell(
                f"{silence.words}; no answer for {silence.lasted_s:.0f} s; "
                f"each request is tried again for {self._client.retry.budget_s:.0f} s",
                subject="silence",
            )

    @property
    def is_silent(self) -> bool:
        """Return whether the cluster has not answered for longer than a brief patience."""
        client = self._client
        if client is None or isinstance(client, ClusterProblem):
            return False
        silence = client.silence
        return silence is not None and silence.lasted_s >= BRIEF_S

    @property
    def ledger(self) -> "Ledger":
        """Return the file that names what is about to be created, before it is."""
        if self._ledger is None:
            from pytest_cre.run.ledger import SUFFIX, Ledger, ledger_folder

            folder = ledger_folder(os.environ)
            self._ledger = Ledger(folder / f"{self.seat.holder}{SUFFIX}", self.run_id)
        return self._ledger

    def owner(self) -> tuple[str, str]:
        """Return name and UID of the object that owns all others of this run."""
        if self._owner is None:
            from pytest_cre.run.owner import create_owner

            self._owner = create_owner(self.client, self.ledger)
        return self._owner

    def evidence_folder(self, planned: "PlannedItem | None") -> Path | None:
        """Return where an item's evidence goes; None where none is to be kept.

        A recording is made of evidence: where only that is wanted, the evidence is kept for so long.
        """
        root = self.settings.evidence_dir
        if root is None and self.settings.recording_dir is not None:
            root = self.folder / "evidence"
        return root / planned.folder if root and planned else None

    def save_recording(self, planned: "Mapping[str, PlannedItem]") -> tuple[str, ...]:
        """Save the run's recording, if one is wanted; return what it lacks.

        Raises `EvidenceProblem` for damage and when the disk refuses.
        """
        if self.settings.recording_dir is None:
            return ()
        from pytest_cre.evidence.store import WORKFLOW_FILE, read_workflow
        from pytest_cre.recording.save import save_recording
        from pytest_cre.recording.scenario import RecordedRun

        folders = [self.evidence_folder(planned[node_id]) for node_id in sorted(planned)]
        limits = self._simulated_limits()
        run = RecordedRun(
            nodes=tuple(node.name for node in self._selection.nodes) if self._selection else (),
            products={
                name: each.product_labels[0]
                for name, each in self.catalog.architectures.items()
                if each.product_labels
            },
            limits_json=limits[min(limits)] if limits else "[]",
        )
        return save_recording(
            self.settings.recording_dir,
            [
                partial(read_workflow, each)
                for each in folders
                if each and (each / WORKFLOW_FILE).exists()
            ],
            run,
            self.assessor.measure_group,
        )

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
            certification=self.certification.text if self.certification else "",
            certification_source=self.certification.source if self.certification else "",
            logs_place=str(root),
        )
        write_manifest(root, manifest)

    def _simulated_limits(self) -> dict[str, str]:
        nodes = self._selection.nodes if self._selection else ()
        return {node.name: node.simulated_limits for node in nodes if node.simulated_limits}

    def sweep(self) -> tuple[str, ...]:
        """Delete what this run created and still exists; return what could not be deleted.

        Objects that the user asked to keep stay, and with them the ledger that names them.
        """
        from pytest_cre.run.cleanup import sweep
        from pytest_cre.run.ledger import has_kept, ledger_folder, ledgers_of

        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None
        if self.seat.is_worker and not self.seat.is_orphan:
            return ()  # the main process does it, when all workers have ended
        ledgers = ledgers_of(ledger_folder(os.environ), self.run_id)
        if not ledgers or has_kept(ledgers):
            return ()
        policy = _brief(self.client)
        if self.is_silent:
            policy = replace(policy, budget_s=0.0, read_timeout_s=SILENT_READ_S)
        client = self.client.with_retry(policy)
        swept = sweep(client, self.run_id, ledgers, patience_s=SWEEP_PATIENCE_S)
        self._is_lost = not swept.was_answered
        if not swept.leftovers and swept.problem is None:
            for path in ledgers:
                path.unlink(missing_ok=True)
        return swept.leftovers

    def sweep_after(self, process: str) -> None:
        """Delete what a process of this run left when it died, and nothing else; let its lease go.

        Where the cluster does not answer, the last sweep of the run does it.
        """
        from pytest_cre.run.cleanup import sweep_process
        from pytest_cre.run.leases import release_lease
        from pytest_cre.run.ledger import SUFFIX, ledger_folder

        holder = replace(self.seat, process=process).holder
        ledger = ledger_folder(os.environ) / f"{holder}{SUFFIX}"
        with suppress(CreError):
            client = self.client.with_retry(_brief(self.client))
            if ledger.exists():
                sweep_process(client, self.run_id, ledger, patience_s=SWEEP_PATIENCE_S)
            # Last: whoever waits for the lease must not meet the dead worker's pods.
            release_lease(client, holder)

    def close(self) -> None:
        """Sweep if that was not done, and end the local cluster; safe to call twice."""
        try:
            if not self._is_lost:
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
                simulated_by=self.settings.simulated_by,
                logs_place=str(self.settings.evidence_dir) if self.settings.evidence_dir else None,
            )
        return self._assessor

    def conclude(self, items: "tuple[ItemReport, ...]", planned: Sequence[str]) -> "RunReport":
        """Clean up and return the report of the whole run; what is left behind is an error."""
        return self.report(items, planned, leftovers=self.sweep())

    @cached_property
    def served_workloads(self) -> "frozenset[WorkloadKind]":
        """Return the workload kinds that the cluster serves."""
        return self.client.served_workloads()

    @cached_property
    def provisions(self) -> "ClusterProvisions":
        """Return what the cluster provides besides nodes, asked for only where that is needed."""
        from pytest_cre.cluster.provisions import ClusterProvisions

        return ClusterProvisions(self.client)

    @cached_property
    def _catalog_sha256(self) -> str:
        from pytest_cre.catalog.digest import catalog_sha256

        return catalog_sha256(self.catalog)

    def report(
        self,
        items: "tuple[ItemReport, ...]",
        planned: Sequence[str],
        *,
        leftovers: tuple[str, ...] = (),
    ) -> "RunReport":
        """Return the report of the run as far as it has come."""
        from pytest_cre import __version__
        from pytest_cre.report.model import ClusterReport, PlatformReport, RunReport, with_result

        selection, ground = self._selection, self._known_ground()
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
                catalog_sha256=self._catalog_sha256,
                plugin_version=__version__,
                planned=tuple(planned),
                items=items,
                platform=PlatformReport(
                    name=ground.platform, told_by=ground.told_by, settings=ground.settings_of
                )
                if ground is not None and ground.platform is not None
                else None,
                warnings=ground.warnings if ground is not None else (),
            )
        )


def _brief(client: "Client") -> "RetryPolicy":
    """Return a short patience: after Ctrl-C a person waits, and CI systems kill what takes long."""
    return replace(client.retry, budget_s=BRIEF_S, read_timeout_s=BRIEF_S)
