"""A cluster on this machine, in a process of its own that ends when we do."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_cre.errors import ClusterProblem, UsageProblem

USAGE_EXIT = 2
STOP_PATIENCE_S = 5.0
POLL_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCluster:
    """A running local cluster. It lives as long as our end of its standard input is open."""

    kubeconfig: Path
    process: "subprocess.Popen[bytes]"
    stop_patience_s: float = STOP_PATIENCE_S

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self.process.pid

    def is_running(self) -> bool:
        """Return whether its process lives."""
        return self.process.poll() is None

    def stop(self) -> None:
        """End the process and wait for its end; safe to call twice."""
        if self.process.stdin is not None:
            self.process.stdin.close()  # nothing was written, so nothing can be left to flush
        if self.is_running():
            self.process.terminate()
            try:
                self.process.wait(self.stop_patience_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def start_embedded(
    *, scenario: str, seed: int | None, folder: Path, timeout_s: float
) -> LocalCluster:
    """Start an embedded cluster with simulated nodes and return it once every node is ready.

    `folder` is this process's own temporary one: the cluster removes it when the process was killed.
    Raises `UsageProblem` with the server's own words for an unknown scenario, `ClusterProblem`
    when it does not get ready.
    """
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "pytest_cre.embedded", "serve", "--parent-pipe"]
    command += ["--kubeconfig-out", str(kubeconfig), "--scenario", scenario]
    command += ["--parent-folder", str(folder)]
    if seed is not None:
        command += ["--seed", str(seed)]
    return start_process(command, kubeconfig, folder / "embedded.log", timeout_s)


def start_controlplane(
    *,
    binaries: Path | None,
    scenario: str,
    seed: int | None,
    namespace: str,
    folder: Path,
    timeout_s: float,
) -> LocalCluster:
    """Start a genuine control plane with simulated nodes; the kubeconfig has the least rights.

    `binaries` is the folder that holds its programs, None the place where they are built. Raises
    `UsageProblem` when they are not there or the scenario is unknown, `ClusterProblem` with the
    place of its logs when it does not get ready.
    """
    from pytest_cre.cluster.rbac import rbac_manifests

    kubeconfig = folder / "kubeconfig"
    grants = folder / "grants.json"
    grants.write_text(json.dumps(rbac_manifests(namespace)))
    command = [sys.executable, "-m", "pytest_cre.controlplane", "serve", "--parent-pipe"]
    command += ["--kubeconfig-out", str(kubeconfig), "--scenario", scenario]
    command += ["--grants", str(grants), "--namespace", namespace]
    command += [] if binaries is None else ["--binaries", str(binaries)]
    command += [] if seed is None else ["--seed", str(seed)]
    return start_process(
        command, kubeconfig, folder / "controlplane.log", timeout_s, stop_patience_s=30.0
    )


def start_process(
    command: Sequence[str],
    kubeconfig: Path,
    log: Path,
    timeout_s: float,
    sleep: Callable[[float], None] = time.sleep,
    stop_patience_s: float = STOP_PATIENCE_S,
) -> LocalCluster:
    """Start a cluster process that writes its kubeconfig once it serves.

    An exit code of 2 means that its arguments were wrong: then its last line is the `UsageProblem`.
    """
    try:
        kubeconfig.unlink(missing_ok=True)  # its appearance is the sign
        with log.open("wb") as output:
            # Its own session, so that Ctrl-C reaches us first and the sweep still has a cluster.
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=output,
                start_new_session=True,
            )
    except OSError as problem:
        raise UsageProblem(f"local cluster cannot be started: {problem}") from None
    cluster = LocalCluster(kubeconfig=kubeconfig, process=process, stop_patience_s=stop_patience_s)
    deadline = time.monotonic() + timeout_s
    try:
        while cluster.is_running() and time.monotonic() < deadline:
            if kubeconfig.exists():
                return cluster
            sleep(POLL_S)
        code = process.poll()
    except BaseException:
        cluster.stop()
        raise
    cluster.stop()
    words = _last_line(log)
    if code == USAGE_EXIT:
        raise UsageProblem(words)
    state = f"did not get ready in {timeout_s:g} s" if code is None else f"ended with code {code}"
    raise ClusterProblem(f"local cluster {state}: {words}")


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it wrote nothing"
