"""A cluster on this machine, in a process of its own that ends when we do."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_cre.errors import ClusterProblem, UsageProblem

USAGE_EXIT = 2
STOP_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCluster:
    """A running local cluster. It lives as long as our end of its standard input is open."""

    kubeconfig: Path
    process: "subprocess.Popen[bytes]"

    def is_running(self) -> bool:
        """Return whether its process lives."""
        return self.process.poll() is None

    def stop(self) -> None:
        """End the process and wait for its end; safe to call twice."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self.is_running():
            self.process.terminate()
            try:
                self.process.wait(STOP_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def start_embedded(
    *, scenario: str, seed: int | None, folder: Path, timeout_s: float
) -> LocalCluster:
    """Start an embedded cluster with simulated nodes and return it once every node is ready.

    Raises `UsageProblem` with the server's own words for an unknown scenario, `ClusterProblem`
    when it does not get ready.
    """
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "pytest_cre.embedded", "serve", "--parent-pipe"]
    command += ["--kubeconfig-out", str(kubeconfig), "--scenario", scenario]
    if seed is not None:
        command += ["--seed", str(seed)]
    return start_process(command, kubeconfig, folder / "embedded.log", timeout_s)


def start_process(
    command: Sequence[str],
    kubeconfig: Path,
    log: Path,
    timeout_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> LocalCluster:
    """Start a cluster process that writes its kubeconfig once it serves."""
    with log.open("wb") as output:
        # Its own session, so that Ctrl-C reaches us first and the sweep still has a cluster.
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=output,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    cluster = LocalCluster(kubeconfig=kubeconfig, process=process)
    deadline = time.monotonic() + timeout_s
    while not kubeconfig.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            code = process.poll()
            cluster.stop()
            words = _last_line(log)
            if code == USAGE_EXIT:
                raise UsageProblem(words)
            state = f"ended with exit code {code}" if code is not None else "did not get ready"
            raise ClusterProblem(f"local cluster {state} within {timeout_s:.0f} s: {words}")
        sleep(0.01)
    return cluster


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it wrote nothing"
