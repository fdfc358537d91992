"""Runs of the plugin in processes of their own, and waiting for conditions."""

import io
import json
import os
import signal
import subprocess
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_cre.cli import main
from tests.warm.runs import start_pytest

SEED = 7


@dataclass(frozen=True, kw_only=True)
class Certification:
    """What a run of the plugin gave."""

    code: int
    output: str
    report: dict[str, Any]
    evidence: Path

    def item(self, name: str) -> dict[str, Any]:
        """Return the item of an id."""
        (found,) = [each for each in self.report["items"] if f"[{name}]" in each["node_id"]]
        return found

    def log(self, name: str, pod: int = 0) -> Path:
        """Return the log of one pod of an entry's only group, by its place in the evidence."""
        (folder,) = self.evidence.glob(f"*.{name}@full-scale")
        (path,) = folder.glob(f"*/attempt-0/logs/{pod:04d}-*.log")
        return path

    def measured(self, name: str, pod: int = 0) -> dict[str, Any]:
        """Return what `pytest-cre measure` reads from the log of one of the entry's pods."""
        with redirect_stdout(io.StringIO()) as told:
            code = main(["measure", "--format", "json", str(self.log(name, pod))])
        assert code in (0, 10)
        return dict(json.loads(told.getvalue()))


class RunningCertification:
    """`pytest -m certification` in a process and a folder of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._report = folder / "report.json"
        self._evidence = folder / "evidence"
        self._output: str | None = None
        suites = ("--pyargs", "pytest_cre.suites", "-m", "certification", f"--rootdir={folder}")
        files = (f"--cre-json={self._report}", f"--cre-evidence={self._evidence}")
        env = {name: os.environ[name] for name in os.environ if name != "KUBECONFIG"}
        env["XDG_STATE_HOME"] = str(folder / "state")
        self.process = start_pytest(
            [*suites, "-p", "no:cacheprovider", *files, *arguments], cwd=folder, env=env
        )

    def result(self, timeout_s: float = 180.0) -> Certification:
        """Wait for its end and return what it gave."""
        output = self._wait(timeout_s)
        report = json.loads(self._report.read_text()) if self._report.exists() else {}
        return Certification(
            code=self.process.wait(), output=output, report=report, evidence=self._evidence
        )

    def _wait(self, timeout_s: float | None = None) -> str:
        """Wait for its end and return its output."""
        if self._output is None:
            self._output, _ = self.process.communicate(timeout_s)
        return self._output

    def logs(self) -> list[Path]:
        """Return the logs that have reached the disk so far."""
        return sorted(self._evidence.rglob("*.log"))

    def end(self) -> None:
        """End it if it still runs."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self._wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self._wait()


def until(holds: Any, timeout_s: float = 60.0, poll_s: float = 0.05) -> Any:
    """Return the condition's value once it is true; fail when it does not become so in time."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        value = holds()
        if value:
            return value
        assert time.monotonic() < deadline_s, f"not within {timeout_s:g} s"
        time.sleep(poll_s)


def processes_in(folder: Path) -> set[int]:
    """Return the processes that work in a folder or below it, or name it in their arguments."""
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            place = str((path / "cwd").readlink())
            arguments = (path / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if place.startswith(str(folder)) or str(folder) in arguments:
            found.add(int(path.name))
    return found
