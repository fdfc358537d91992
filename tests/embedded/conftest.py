"""A served cluster in its own process, and a scripted kubelet behind it."""

import contextlib
import functools
import itertools
import select
import subprocess
from pathlib import Path

import pytest

from pytest_cre.embedded.deletion import OWN_NAMESPACES
from tests.conformance.api import MERGE, Api
from tests.conformance.kubelet import serving_kubelet
from tests.warm.children import CLUSTER, ForkingPopen

# Short times, so that nothing has to be waited for.
ORDINARY = ("--seed", "7", "--page-lifetime", "0.4", "--job-backoff", "0.1")


class Cluster(Api):
    """One embedded cluster, served by a process of its own."""

    def __init__(self, folder, *arguments):
        self.folder = folder
        kubeconfig = Path(folder, "kubeconfig")
        self.process = ForkingPopen(
            [
                *CLUSTER,
                "serve",
                "--kubeconfig-out",
                str(kubeconfig),
                "--parent-pipe",
                *arguments,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        ready, _, _ = select.select([self.process.stdout], [], [], 20)
        self.ready_line = self.process.stdout.readline() if ready else ""
        assert self.ready_line, self.process.stderr.read() if self.process.poll() else "silent"
        super().__init__(kubeconfig)

    def clear(self):
        """Delete all that tests have made."""
        self("DELETE", "/api/v1/nodes")
        names = [item["metadata"]["name"] for item in self.get("/api/v1/namespaces")["items"]]
        namespaces = [f"/api/v1/namespaces/{name}" for name in names if name not in OWN_NAMESPACES]
        for path in namespaces:
            self("DELETE", path)
        for place in ("batch/v1", "jobs"), ("v1", "pods"), ("v1", "configmaps"), ("v1", "services"):
            self._clear(*place)
        for path in namespaces:
            self.gone(path)

    def _clear(self, version, plural):
        """Delete all objects of a kind, whatever holds them."""
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for item in self.get(f"{root}/{plural}")["items"]:
            metadata = item["metadata"]
            path = f"{root}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}"
            self("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
            self("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
            self.gone(path)

    def stop(self):
        self.close()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=10)
        return self.process.returncode


@pytest.fixture(scope="session")
def make_cluster(tmp_path_factory):
    """Start clusters with arguments of the test's own; all end with the session."""
    with contextlib.ExitStack() as stack:

        def make(*arguments):
            cluster = Cluster(tmp_path_factory.mktemp("cluster"), "--no-simulator", *arguments)
            stack.callback(cluster.stop)
            return cluster

        yield make


@pytest.fixture(scope="session")
def shared_cluster(make_cluster):
    """Give the one cluster with certain arguments: a start costs more than many tests."""
    return functools.cache(make_cluster)


@pytest.fixture(scope="module")
def cluster(shared_cluster, request):
    """A cluster that holds nothing but what this module puts there."""
    cluster = shared_cluster(*getattr(request.module, "SERVER_ARGUMENTS", ORDINARY))
    yield cluster
    cluster.clear()


_NUMBERS = itertools.count()


@pytest.fixture
def namespace(cluster):
    """The path of a namespace of the test's own."""
    name = f"test-{next(_NUMBERS)}"
    cluster.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return f"/api/v1/namespaces/{name}"


@pytest.fixture(scope="module")
def kubelet(cluster):
    with serving_kubelet(cluster) as kubelet:
        yield kubelet
