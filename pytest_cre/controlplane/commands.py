"""Command lines of the programs: loopback only, no secret in any argument."""

import json
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pytest_cre.controlplane.credentials import Credentials, private_file, write_kubeconfig
from pytest_cre.controlplane.part import Part
from pytest_cre.ports import LOOPBACK, hold_port

ETCD = "etcd"
APISERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
JOBSET = "jobset"
TRAINER = "trainer"
MPI_OPERATOR = "mpi-operator"
SIMULATOR = "simulator"

# A file in the working folder, as absolute paths may be too long for a socket. It looks like host
# and port because etcd before 3.7 takes nothing else.
ETCD_SOCKET = "unix://etcd-client:1"
CONTROLLERS = (
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
)
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
# Collects garbage less often, as long as it stays small: a quarter of its start was that.
_ROOMY = {"GOGC": "300", "GOMEMLIMIT": "600MiB"}
_QPS = ("--kube-api-qps=300", "--kube-api-burst=500")  # the defaults slow a large Job down


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Ports on the loopback address; a part that is started again has the same."""

    api: int
    jobset_webhook: int
    jobset_health: int
    trainer_webhook: int
    trainer_health: int
    mpi_operator_health: int


def hold_ports(until: ExitStack) -> Ports:
    """Return ports that are kept for these programs until the stack is closed."""
    held = [until.enter_context(hold_port()) for _ in Ports.__slots__]
    numbers = [each.getsockname()[1] for each in held]
    return Ports(**dict(zip(Ports.__slots__, numbers, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """Where the programs of one control plane are and work."""

    folder: Path
    binaries: Path
    ports: Ports
    credentials: Credentials

    @property
    def server(self) -> str:
        """Return the URL of the API server."""
        return f"https://{LOOPBACK}:{self.ports.api}"

    def part(
        self,
        name: str,
        program: str,
        *arguments: str,
        stop_patience_s: float,
        env: Mapping[str, str] | None = None,
    ) -> Part:
        """Return a part with a temporary folder of its own and little else in its environment."""
        temporary = self.temporary_folder(name)
        temporary.mkdir(parents=True, exist_ok=True)
        plain = {"PATH": os.environ.get("PATH", ""), "HOME": str(temporary)}
        return Part(
            name,
            (str(self.binaries / program), *arguments),  # an absolute path stays what it is
            folder=self.folder,
            env=plain | {"TMPDIR": str(temporary)} | dict(env or {}),
            stop_patience_s=stop_patience_s,
        )

    def temporary_folder(self, name: str) -> Path:
        """Return the temporary folder of a part."""
        return self.folder / "tmp" / name

    def kubeconfig(self, user: str) -> str:
        """Write the kubeconfig of a user and return its path."""
        path = self.folder / f"{user}.kubeconfig"
        write_kubeconfig(
            path,
            server=self.server,
            token=self.credentials.tokens[user],
            authority_pem=self.credentials.authority.pem,
            namespace="default",
        )
        return str(path)

    def etcd(self) -> Part:
        """Return etcd on sockets in the private folder: its API knows no users."""
        client, peer = ETCD_SOCKET, "unix://etcd-peer:1"
        return self.part(
            ETCD,
            "server",
            "--data-dir=etcd",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            stop_patience_s=3.0,
        )

    def apiserver(self) -> Part:
        """Return kube-apiserver."""
        own = self.credentials
        policy = self.folder / "audit-policy.json"
        policy.write_text(json.dumps(AUDIT_POLICY))
        return self.part(
            APISERVER,
            "kube-apiserver",
            f"--etcd-servers={ETCD_SOCKET}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={self.ports.api}",
            "--endpoint-reconciler-type=none",  # a Service must not point to the loopback address
            "--tls-cert-file=apiserver.crt",
            "--tls-private-key-file=apiserver.key",
            "--anonymous-auth=false",
            f"--token-auth-file={own.token_file}",
            "--authorization-mode=RBAC",
            f"--service-account-key-file={own.service_account_public_key}",
            f"--service-account-signing-key-file={own.service_account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--kubelet-preferred-address-types=InternalIP",
            "--allow-privileged=true",  # as installers of clusters set it: diagnostics need it
            "--profiling=false",
            f"--audit-policy-file={policy}",
            "--audit-log-path=audit.log",
            stop_patience_s=1.0,  # it waits for open watches, and nothing of it is kept
            env=_ROOMY,
        )

    def controller_manager(self) -> Part:
        """Return kube-controller-manager with the controllers that a workload meets.

        It elects itself, as everywhere: so it ends when it has lost the API server, and comes back
        with a fresh view. Going on with an old one, it would take living nodes for dead.
        """
        return self.part(
            CONTROLLER_MANAGER,
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig(CONTROLLER_MANAGER)}",
            "--secure-port=0",
            *_QPS,
            f"--service-account-private-key-file={self.credentials.service_account_key}",
            f"--root-ca-file={self.credentials.authority_file}",
            f"--controllers={','.join(CONTROLLERS)}",
            stop_patience_s=2.0,
        )

    def scheduler(self) -> Part:
        """Return kube-scheduler."""
        return self.part(
            SCHEDULER,
            "kube-scheduler",
            f"--kubeconfig={self.kubeconfig(SCHEDULER)}",
            "--secure-port=0",
            *_QPS,
            stop_patience_s=2.0,
        )

    def jobset(self, certificates: Path) -> Part:
        """Return the JobSet controller, which serves its webhooks with the given certificate."""
        config = {
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "internalCertManagement": {"enable": False},
            "leaderElection": {"leaderElect": False},
            "webhook": {
                "host": LOOPBACK,
                "port": self.ports.jobset_webhook,
                "certDir": str(certificates),
            },
            "health": {"healthProbeBindAddress": f"{LOOPBACK}:{self.ports.jobset_health}"},
            "metrics": {"bindAddress": "0"},
        }
        path = self.folder / "jobset.json"
        path.write_text(json.dumps(config))
        return self.part(
            JOBSET,
            "jobset",
            f"--config={path}",
            f"--kubeconfig={self.kubeconfig(JOBSET)}",
            "--zap-log-level=info",
            stop_patience_s=2.0,
        )

    def trainer(self) -> Part:
        """Return the Kubeflow Trainer, which finds its certificate in its temporary folder."""
        return self.part(
            TRAINER,
            "trainer-controller-manager",
            f"--kubeconfig={self.kubeconfig(TRAINER)}",
            f"--health-probe-bind-address={LOOPBACK}:{self.ports.trainer_health}",
            f"--webhook-server-port={self.ports.trainer_webhook}",
            stop_patience_s=2.0,
        )

    def mpi_operator(self) -> Part:
        """Return the MPI operator."""
        return self.part(
            MPI_OPERATOR,
            "mpi-operator",
            f"-kubeConfig={self.kubeconfig(MPI_OPERATOR)}",
            "-monitoring-port=0",
            "-lock-namespace=kube-system",  # its own default does not exist here
            "-kube-api-qps=300",
            "-kube-api-burst=500",
            env={"MPI_OPERATOR_HEALTH_ADDRESS": f"{LOOPBACK}:{self.ports.mpi_operator_health}"},
            stop_patience_s=2.0,
        )

    def simulator(self, scenario: str, seed: int | None) -> Part:
        """Return the simulated nodes."""
        token = self.folder / "simulator.token"
        private_file(token, self.credentials.tokens[SIMULATOR].encode())
        arguments = ["-m", "pytest_cre.simulator", "--server", self.server]
        arguments += ["--token-file", str(token)]
        arguments += ["--ca-file", str(self.credentials.authority_file), "--scenario", scenario]
        arguments += [] if seed is None else ["--seed", str(seed)]
        package_root = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, (package_root, os.environ.get("PYTHONPATH"))))
        return self.part(
            SIMULATOR, sys.executable, *arguments, env={"PYTHONPATH": path}, stop_patience_s=5.0
        )
