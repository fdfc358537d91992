"""The cluster that a run certifies: how it is reached, which nodes it offers, what they stand on."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.errors import ClusterProblem, UsageProblem

if TYPE_CHECKING:
    from pytest_cre.catalog.entry import WorkloadKind
    from pytest_cre.catalog.loader import Catalog
    from pytest_cre.cluster.client import Client
    from pytest_cre.cluster.contact import Silence
    from pytest_cre.cluster.local import LocalCluster
    from pytest_cre.cluster.provisions import ClusterProvisions
    from pytest_cre.cluster.retry import RetryPolicy
    from pytest_cre.plan.model import Selection
    from pytest_cre.plan.platform import Ground
    from pytest_cre.plan.site import Site
    from pytest_cre.settings import Settings

START_TIMEOUT_S = 30.0
CONTROLPLANE_START_TIMEOUT_S = 120.0
BRIEF_S = 4.0


class Target:
    """The cluster of a run. Contacts nothing until it is started or asked.

    `kubeconfig` leads to the local cluster that another process of the run has started; `say` tells
    a person something.
    """

    def __init__(
        self,
        settings: "Settings",
        catalog: "Catalog",
        site: "Site",
        run_id: str,
        kubeconfig: Path | None,
        say: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._site = site
        self._run_id = run_id
        self._kubeconfig = kubeconfig
        self._say = say
        self._local: LocalCluster | None = None
        self._client: Client | ClusterProblem | None = None
        self._selection: Selection | None = None
        self._has_warned = False  # of the ground
        self.server_version: str | None = None

    def start(self, folder: Path) -> None:
        """Start the local cluster where that is the one to certify, and look at the nodes.

        Raises `UsageProblem`. A cluster that does not answer is told by whoever asks for it.
        """
        try:
            self._local = self._start_local(folder)
        except ClusterProblem as problem:
            self._client = problem
        with suppress(ClusterProblem):
            self._selection = self._select(self.client.with_retry(brief(self.client)))

    def stop(self) -> None:
        """End the local cluster; safe to call twice."""
        if self._local is not None:
            self._local.stop()
            self._local = None

    def _start_local(self, folder: Path) -> "LocalCluster | None":
        """Start the cluster that this run brings along; None where the user's is certified."""
        if self._settings.cluster == "embedded":
            from pytest_cre.cluster.local import start_embedded

            return start_embedded(
                scenario=self._settings.scenario,
                seed=self._settings.simulated_seed,
                folder=folder,
                timeout_s=START_TIMEOUT_S,
            )
        if self._settings.cluster == "controlplane":
            from pytest_cre.cluster.local import start_controlplane

            return start_controlplane(
                binaries=self._settings.controlplane_dir,
                scenario=self._settings.scenario,
                seed=self._settings.simulated_seed,
                namespace=self._settings.namespace or "default",
                folder=folder,
                timeout_s=CONTROLPLANE_START_TIMEOUT_S,
            )
        return None

    @property
    def local_kubeconfig(self) -> Path | None:
        """Return the kubeconfig of the local cluster, or None where the user's is certified."""
        return self._local.kubeconfig if self._local else self._kubeconfig

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

        if self._settings.cluster != "kubernetes" and self.local_kubeconfig is None:
            # Never what a kubeconfig of the user's leads to.
            raise ClusterProblem(f"the {self._settings.cluster} cluster of this run did not start")
        client = connect(
            kubeconfig=str(self.local_kubeconfig or "") or self._settings.kubeconfig,
            context=self._settings.context,
            namespace=self._settings.namespace,
        )
        self.server_version = client.preflight()
        missing = missing_rights(client)
        if missing:
            raise ClusterProblem(
                f"{client.server}: these credentials may not {', '.join(missing)} "
                f"(namespace {client.namespace}); `pytest-cre rbac` prints the least rights of a run"
            )
        return client

    @property
    def known_client(self) -> "Client | None":
        """Return the client where one is connected already."""
        return None if isinstance(self._client, ClusterProblem) else self._client

    @property
    def selection(self) -> "Selection":
        """Return the nodes used and excluded, as they were when first asked for."""
        if self._selection is None:
            self._selection = self._select(self.client)
        return self._selection

    @property
    def known_selection(self) -> "Selection | None":
        """Return the selection where nodes were looked at already."""
        return self._selection

    @property
    def simulated_limits(self) -> dict[str, str]:
        """Return the limits that simulated nodes bring, by node."""
        nodes = self._selection.nodes if self._selection else ()
        return {node.name: node.simulated_limits for node in nodes if node.simulated_limits}

    @property
    def is_simulated(self) -> bool:
        """Return whether the hardware is, as far as that is known."""
        return self._selection.is_simulated if self._selection else self._local is not None

    def _select(self, client: "Client") -> "Selection":
        from pytest_cre.cluster.inventory import read_nodes
        from pytest_cre.formats.selector import parse_selector
        from pytest_cre.plan.platform import selection_tolerations
        from pytest_cre.plan.selection import is_gpu_node, select_nodes
        from pytest_cre.run.tenants import lasting_holders

        nodes = read_nodes(client)
        gpu_nodes = [node for node in nodes if is_gpu_node(node)]
        names, matches = self._settings.nodes, parse_selector(self._settings.node_selector).matches
        wanted = [
            node.name
            for node in gpu_nodes
            if matches(node.labels) and (not names or node.name in names)
        ]
        return select_nodes(
            nodes,
            self._catalog.architectures,
            held=lasting_holders(client, wanted, self._run_id) if wanted else {},
            tolerations=selection_tolerations(
                gpu_nodes, self._catalog.platforms, self._settings.platform, self._site
            ),
            names=self._settings.nodes,
            selector=self._settings.node_selector,
            architecture=self._settings.architecture,
            max_nodes=self._settings.max_nodes,
        )

    def free_selection(self, stop: threading.Event) -> "Selection":
        """Return the selection without the nodes that somebody holds GPUs of right now.

        To be asked by whoever has the lease. What is held for a moment only is waited for.
        """
        from pytest_cre.plan.tenants import without_busy
        from pytest_cre.run.tenants import await_free

        return without_busy(
            self.selection,
            await_free(self.client, self.selection.nodes, stop=stop, on_wait=self._say),
        )

    @property
    def ground(self) -> "Ground":
        """Return platform and hardware that pods are fitted to; raises `UsageProblem`."""
        ground = self._ground
        if not self._has_warned:
            self._has_warned = True
            for warning in ground.warnings:
                self._say(warning)
        return ground

    @property
    def known_ground(self) -> "Ground | None":
        """Return what the run stands on, as far as nodes were looked at and tell it.

        Where workers run the items, they warn of it, not the main process.
        """
        if self._selection is None or not self._selection.nodes:
            return None
        try:
            return self._ground
        except UsageProblem:
            return None  # each item tells it

    @cached_property
    def _ground(self) -> "Ground":
        from pytest_cre.plan.platform import choose_platform, ground_of

        selection, asked = self.selection, self._settings.platform
        return ground_of(
            choose_platform(selection.nodes, self._catalog.platforms, asked),
            self._catalog.architectures.get(selection.architecture or ""),
            self._catalog.platforms,
            nodes=selection.nodes,
            was_asked=asked is not None,
            site=self._site,
        )

    @property
    def silence(self) -> "Silence | None":
        """Return since when the cluster has not answered; None where it does, or was not asked."""
        return self.known_client.silence if self.known_client is not None else None

    @property
    def is_silent(self) -> bool:
        """Return whether the cluster has not answered for longer than a brief patience."""
        return self.silence is not None and self.silence.lasted_s >= BRIEF_S

    @cached_property
    def served_workloads(self) -> "frozenset[WorkloadKind]":
        """Return the workload kinds that the cluster serves."""
        return self.client.served_workloads()

    @cached_property
    def provisions(self) -> "ClusterProvisions":
        """Return what the cluster provides besides nodes, asked for only where that is needed."""
        from pytest_cre.cluster.provisions import ClusterProvisions

        return ClusterProvisions(self.client)


def brief(client: "Client") -> "RetryPolicy":
    """Return a short patience: after Ctrl-C a person waits, and CI systems kill what takes long."""
    return replace(client.retry, budget_s=BRIEF_S, read_timeout_s=BRIEF_S)
