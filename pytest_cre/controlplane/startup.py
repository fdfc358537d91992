"""Starting in order: each step waits for the condition that the next one needs."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pytest_cre.controlplane import operators
from pytest_cre.controlplane.api import Api, Refusal
from pytest_cre.controlplane.commands import APISERVER, ETCD, SIMULATOR, Workshop, hold_ports
from pytest_cre.controlplane.credentials import make_credentials, write_kubeconfig
from pytest_cre.controlplane.grants import grant
from pytest_cre.controlplane.part import Part
from pytest_cre.controlplane.recipe import FIRST_DATA, OPERATORS
from pytest_cre.errors import ClusterProblem

START_TIMEOUT_S = 90.0
RESTART_PAUSE_S = 1.0
_POLL_S = 0.03
_FIRST = (ETCD, APISERVER)  # these have nothing to wait for
_DEATHS = 3  # of any other, before the start counts as failed
_NODE_LEASES = "kube-node-lease"  # made by the API server; kubelets need it
_PROBES = "/api/v1/namespaces/kube-system/configmaps"
_PROBE = "pytest-cre-probe"
_READY_LINE = b"ready"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneSettings:
    """What to start."""

    binaries: Path  # folder that `build` made
    scenario: str | None  # simulated nodes; None: none
    seed: int | None = None
    namespace: str = "default"  # the harness's; made if it is not there
    grants: Sequence[Mapping[str, Any]] = ()  # service account of the harness, roles, bindings


class Startup:
    """The start of one control plane. `parts` grows as it goes, so that a failed one can be ended."""

    def __init__(self, settings: PlaneSettings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.parts: dict[str, Part] = {}  # in the order they were started
        self.reached_s: dict[str, float] = {}  # seconds since the start
        self.server = ""  # its URL, once there is one
        self.harness_kubeconfig = folder / "harness.kubeconfig"
        self.admin_kubeconfig = folder / "administrator.kubeconfig"
        self._held = ExitStack()  # its ports
        self._started_s = time.monotonic()

    def run(self) -> Api:
        """Start everything; return the administrator's access once workloads can run."""
        workshop, api = self.serve_kinds(on_answer=self._start_nodes)
        # Only now: garbage collection learns of new kinds every half minute only.
        self._start(workshop.controller_manager(), workshop.scheduler())
        self._start_operators(workshop, api)
        self._persist("the harness's account", lambda: self._admit_harness(workshop, api))
        self.wait("/readyz", lambda: api.answers("/readyz"))
        self.wait("the default service account", lambda: self._has_account(api))
        self._persist("a probe", lambda: self._leave_garbage(api))
        self.wait("garbage collection", lambda: api.is_gone(f"{_PROBES}/{_PROBE}"))
        self.wait("the operators", lambda: self._operators_are_ready(workshop))
        if self.settings.scenario is not None:
            self.wait("the simulated nodes", self._nodes_are_ready)
        return api

    def stop(self) -> None:
        """End all parts, the last started first."""
        for part in reversed(self.parts.values()):
            part.stop()
        self._held.close()

    def serve_kinds(
        self, on_answer: Callable[[Workshop], None] = lambda _: None
    ) -> tuple[Workshop, Api]:
        """Start etcd and the API server; return once the operators' kinds are served.

        `on_answer` is called as soon as the API server answers at all.
        """
        (self.folder / "logs").mkdir()
        workshop = Workshop(
            folder=self.folder,
            binaries=self.settings.binaries.absolute(),
            ports=hold_ports(self._held),
            credentials=make_credentials(self.folder),
        )
        self.server = workshop.server
        first_data = self.settings.binaries / FIRST_DATA
        if first_data.is_dir():
            shutil.copytree(first_data, self.folder / "etcd")
        self._start(workshop.etcd(), workshop.apiserver())
        own = workshop.credentials
        api = Api(
            workshop.server,
            token=own.tokens["administrator"],
            authority_file=own.authority_file,
        )
        self.wait("the API server", lambda: api.answers(f"/api/v1/namespaces/{_NODE_LEASES}"))
        on_answer(workshop)
        crds = [crd for name in OPERATORS for crd in operators.crds_of(self._manifests(name))]
        if not first_data.is_dir():
            self._persist("the operators' kinds", lambda: operators.install_crds(api, crds))
        self.wait("the operators' kinds", lambda: operators.are_served(api, crds))
        return workshop, api

    def _manifests(self, operator: str) -> list[operators.Manifest]:
        return operators.read_manifests(self.settings.binaries, operator)

    def _start(self, *parts: Part) -> None:
        for part in parts:
            self.parts[part.name] = part
            part.start()

    def _start_nodes(self, workshop: Workshop) -> None:
        if self.settings.scenario is not None:
            self._start(workshop.simulator(self.settings.scenario, self.settings.seed))

    def _nodes_are_ready(self) -> bool:
        return _READY_LINE in self.parts[SIMULATOR].log.read_bytes().splitlines()

    def _start_operators(self, workshop: Workshop, api: Api) -> None:
        namespace = operators.trainer_namespace()
        secret = operators.trainer_secret(workshop, namespace)
        self._persist(
            "the Trainer's Secret",
            lambda: operators.install_trainer_secret(api, namespace, secret),
        )
        self._start(
            workshop.jobset(operators.install_jobset_certificate(workshop)),
            workshop.trainer(),
            workshop.mpi_operator(),
        )
        self._persist("the operators' webhooks", lambda: self._install_webhooks(workshop, api))

    def _install_webhooks(self, workshop: Workshop, api: Api) -> None:
        ports = workshop.ports
        for name, configuration, port in (
            ("jobset", "jobset", ports.jobset_webhook),
            # The Trainer looks for its configuration under this name, to put its authority in.
            ("trainer", "validator.trainer.kubeflow.org", ports.trainer_webhook),
        ):
            operators.install_webhooks(
                api,
                self._manifests(name),
                name=configuration,
                port=port,
                authority_pem=workshop.credentials.authority.pem,
            )

    def _admit_harness(self, workshop: Workshop, api: Api) -> None:
        namespace = self.settings.namespace
        api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        own = workshop.credentials
        administrator = own.tokens["administrator"]
        harness = grant(api, self.settings.grants) if self.settings.grants else administrator
        for path, token in (
            (self.admin_kubeconfig, administrator),
            (self.harness_kubeconfig, harness),
        ):
            write_kubeconfig(
                path,
                server=workshop.server,
                token=token,
                authority_pem=own.authority.pem,
                namespace=namespace,
            )

    def _has_account(self, api: Api) -> bool:
        """Return whether pods can be created: each needs the namespace's own service account."""
        return api.answers(f"/api/v1/namespaces/{self.settings.namespace}/serviceaccounts/default")

    def _leave_garbage(self, api: Api) -> None:
        """Delete an object so that only the garbage collector can remove it."""
        api.create(_PROBES, {"metadata": {"name": _PROBE}})
        api.call("DELETE", f"{_PROBES}/{_PROBE}", {"propagationPolicy": "Foreground"})

    def _operators_are_ready(self, workshop: Workshop) -> bool:
        ports = workshop.ports
        return all(
            operators.is_healthy(port, path)
            for port, path in (
                (ports.jobset_health, "/readyz"),
                (ports.trainer_health, "/readyz"),
                (ports.mpi_operator_health, "/healthz"),
            )
        )

    def _persist(self, what: str, do: Callable[[], T]) -> T:
        """Do something that a server which only just started may refuse for a moment."""
        while True:
            try:
                return do()
            except (Refusal, OSError) as problem:
                self._check(f"{what} ({problem})")
                time.sleep(_POLL_S)

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        while not holds():
            self._check(what)
            time.sleep(_POLL_S)
        self.reached_s[what] = time.monotonic() - self._started_s

    def _check(self, what: str) -> None:
        """Raise when a part does not live or the time is over.

        What talks to the API server gives up when that takes long to start: it is started again.
        """
        for part in self.parts.values():
            if not part.is_running():
                if part.name in _FIRST or part.deaths == _DEATHS:
                    raise ClusterProblem(f"control plane: {part.exit_words()}")
                part.tend(RESTART_PAUSE_S)
        if time.monotonic() - self._started_s > START_TIMEOUT_S:
            raise ClusterProblem(f"control plane: {what} not ready after {START_TIMEOUT_S:g} s")
