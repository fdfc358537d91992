"""Whole runs of pytest that certify, each in a folder of its own, and a cluster to watch them on."""

import contextlib
import io
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Runs of pytest inside pytest forget what they import; these C modules cannot be loaded twice.
import pydantic  # noqa: F401
import pytest
import re2  # noqa: F401
import yaml  # noqa: F401

from pytest_cre.cli import main
from pytest_cre.cluster.client import Client, connect
from pytest_cre.cluster.local import LocalCluster, start_embedded
from pytest_cre.cluster.objects import CONFIG_MAP, JOB, LEASE, POD, SERVICE
from tests.home import home_in
from tests.warm.runs import WarmProcess, start_pytest

OURS = "app.kubernetes.io/managed-by=pytest-cre"
SUITES = ("--pyargs", "pytest_cre.suites")


@dataclass(frozen=True)
class Done:
    """A run that has ended."""

    code: int
    output: str
    folder: Path

    def json(self) -> dict:
        return json.loads((self.folder / "r.json").read_text())


@dataclass(frozen=True)
class Certifier:
    """Runs `pytest -m certification` in a folder in which no cluster is configured."""

    folder: Path
    started: list[WarmProcess] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        return {**home_in(self.folder), "COLUMNS": "200"}

    def start(self, *arguments: str, new_session: bool = False) -> WarmProcess:
        reports = ("--junitxml=r.xml", "--cre-junit=m.xml", "--cre-json=r.json")
        certify = ("-m", "certification", "-p", "no:cacheprovider", *reports, *arguments)
        environment = self.environment()
        process = start_pytest(certify, cwd=self.folder, env=environment, new_session=new_session)
        self.started.append(process)
        return process

    def end(self, process: WarmProcess) -> Done:
        output, _ = process.communicate(timeout=300)
        return Done(process.returncode, output, self.folder)

    def __call__(self, *arguments: str) -> Done:
        return self.end(self.start(*arguments))

    def rejudged(self, evidence: str = "evidence", form: str = "json") -> str:
        """Return what `pytest-cre rejudge` prints for the evidence of a run."""
        told = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(told):
            main(["rejudge", evidence, "--format", form])
        return told.getvalue()

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.communicate()


@dataclass(frozen=True)
class Served:
    """A cluster beside the runs, which outlives them."""

    cluster: LocalCluster
    client: Client

    @property
    def options(self) -> tuple[str, ...]:
        return ("--cre-cluster", "kubernetes", "--cre-kubeconfig", str(self.cluster.kubeconfig))

    def objects(self, selector: str = OURS) -> list[dict]:
        return [
            item
            for kind in (JOB, POD, SERVICE, CONFIG_MAP, LEASE)
            for item in self.client.list(kind, label_selector=selector).items
        ]

    def ours(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.objects()]

    def runs_pods(self) -> bool:
        pods = self.client.list(POD, label_selector=OURS).items
        return bool(pods) and all(pod["status"].get("phase") == "Running" for pod in pods)


@pytest.fixture
def certify(tmp_path: Path) -> Iterator[Certifier]:
    certifier = Certifier(tmp_path)
    yield certifier
    certifier.close()


@pytest.fixture(scope="session")
def certify_in() -> type[Certifier]:
    return Certifier


@pytest.fixture(scope="session")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A cluster one of whose nodes is slow."""
    cluster = start_embedded(
        scenario="slow-node", seed=None, folder=tmp_path_factory.mktemp("slow"), timeout_s=30
    )
    client = connect(kubeconfig=str(cluster.kubeconfig), context=None, namespace=None)
    yield Served(cluster, client)
    cluster.stop()


@pytest.fixture(scope="session")
def eventually() -> Callable[[Callable[[], object]], None]:
    """Wait until a condition holds; fails after three minutes."""

    def wait(condition: Callable[[], object]) -> None:
        ticker = threading.Event()
        for _ in range(3600):
            if condition():
                return
            ticker.wait(0.05)
        raise AssertionError("it never came to that")

    return wait
