"""One run against one cluster: connection, nodes, lease, workloads, verdicts, clean-up.

The only place that sees both sides of the waist: it hands plans to `run/`, and the evidence that
comes back to `measure/` and `judge/`.
"""

import os
import queue
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.errors import CreError
from pytest_cre.interrupt import INTERRUPTS
from pytest_cre.progress import ProgressDisplay
from pytest_cre.target import Target, brief

if TYPE_CHECKING:
    from pytest_cre.assessment import Assessor
    from pytest_cre.catalog.certification import Certification
    from pytest_cre.catalog.loader import Catalog
    from pytest_cre.evidence.manifest import PlannedItem
    from pytest_cre.evidence.model import GroupEvidence
    from pytest_cre.news import News
    from pytest_cre.plan.bounds import Bounds
    from pytest_cre.progress import Screen
    from pytest_cre.report.model import ItemReport, RunReport
    from pytest_cre.run.ledger import Ledger
    from pytest_cre.seat import Seat
    from pytest_cre.settings import Settings
    from pytest_cre.spending import Spending

SWEEP_PATIENCE_S = 10.0
HASTENED_PATIENCE_S = 1.0  # after a second interrupt
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
        self.news = news  # told in the main thread only
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()  # by other threads
        self._has_kept = False
        self.catalog = catalog
        self.seat = seat
        self.display = ProgressDisplay(news.tell, time.monotonic)
        self._began_s = time.monotonic()
        self.run_id = seat.run_id
        self.target = Target(
            settings,
            catalog,
            site_for(site_of(settings.site_file), certification),
            seat.run_id,
            seat.kubeconfig,
            self.say,
        )
        self._is_open = False
        self._is_swept = False  # as far as that can be: another sweep would only cost time
        self._folder: Path | None = None
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
        self.target.start(self.folder)

    @property
    def folder(self) -> Path:
        """Return this run's own temporary folder."""
        if self.seat.folder is not None:
            return self.seat.folder
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=f"pytest-cre-{self.run_id}-"))
        return self._folder

    def tell_news(self) -> None:
        """Tell what other threads had to say, and a cluster that is silent; in the main thread."""
        while not self._said.empty():
            self.display.clear()
            self.news.tell(self._said.get())
        client, silence = self.target.known_client, self.target.silence
        if client is not None and silence is not None and silence.lasted_s >= SILENCE_S:
            self.display.clear()
            self.news.tell(
                f"{silence.words}; no answer for {silence.lasted_s:.0f} s; "
                f"each request is tried again for {client.retry.budget_s:.0f} s",
                subject="silence",
            )

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

            self._owner = create_owner(self.target.client, self.ledger)
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
        limits, selection = self.target.simulated_limits, self.target.known_selection
        run = RecordedRun(
            nodes=tuple(node.name for node in selection.nodes) if selection else (),
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
            simulated_limits=self.target.simulated_limits,
            catalogs=tuple(str(path.absolute()) for path in self.settings.catalogs),
            profiles=tuple(str(path.absolute()) for path in self.settings.profiles),
            certification=self.certification.text if self.certification else "",
            certification_source=self.certification.source if self.certification else "",
            logs_place=str(root),
        )
        write_manifest(root, manifest)

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
        policy = brief(self.target.client)
        if self.target.is_silent or INTERRUPTS.is_given_up:
            policy = replace(policy, budget_s=0.0, read_timeout_s=SILENT_READ_S)
        client = self.target.client.with_retry(policy)
        swept = sweep(client, self.run_id, ledgers, patience_s=_sweep_patience_s)
        self._is_swept = bool(swept.leftovers) or not swept.was_answered
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
            client = self.target.client.with_retry(brief(self.target.client))
            if ledger.exists():
                sweep_process(client, self.run_id, ledger, patience_s=SWEEP_PATIENCE_S)
            # Last: whoever waits for the lease must not meet the dead worker's pods.
            release_lease(client, holder)

    def close(self) -> None:
        """Sweep if that was not done, and end the local cluster; safe to call twice."""
        try:
            if not self._is_swept:
                self.sweep()
        except CreError:
            pass  # the report has told it, or the run ended before there was one
        finally:
            self.target.stop()
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
                simulated_limits=self.target.simulated_limits,
                missing_limit=self.settings.missing_limit,
                simulated_by=self.settings.simulated_by,
                logs_place=str(self.settings.evidence_dir) if self.settings.evidence_dir else None,
            )
        return self._assessor

    def conclude(self, items: "tuple[ItemReport, ...]", planned: Sequence[str]) -> "RunReport":
        """Clean up and return the report of the whole run; what is left behind is an error."""
        return self.report(items, planned, leftovers=self.sweep())

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

        target = self.target
        selection, ground, client = target.known_selection, target.known_ground, target.known_client
        return with_result(
            RunReport(
                run_id=self.run_id,
                result="INCOMPLETE",
                is_simulated=target.is_simulated,
                cluster=ClusterReport(
                    kind=self.settings.cluster,
                    server_version=target.server_version,
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


def _sweep_patience_s() -> float:
    """Return how long deleted objects are waited for, as many interrupts as there have been."""
    if INTERRUPTS.is_given_up:
        return 0.0
    return HASTENED_PATIENCE_S if INTERRUPTS.is_hastened else SWEEP_PATIENCE_S
