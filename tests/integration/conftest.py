"""Tests on genuine Kubernetes. They run when asked for by this folder's path: `make integration`.

One control plane serves all of them; what a test breaks it mends before it ends.
"""

import os
from pathlib import Path

import pytest

from pytest_cre.cluster.client import connect
from pytest_cre.cluster.rbac import rbac_manifests
from pytest_cre.controlplane.plane import ControlPlane, PlaneSettings
from pytest_cre.controlplane.recipe import built_folder, check_programs, read_recipe
from pytest_cre.errors import UsageProblem
from tests.integration.running import SEED, RunningCertification

HERE = Path(__file__).parent
# The longest first. A worker takes its next file when two tests of one are left: `test_outages` has
# no more, so whatever is fifth follows it.
FIRST = ("kinds", "outages", "campaign", "least_role", "lifecycle", "render")
SCENARIO = """
extends: h100-8
nodes:
- {name: "h100-{index}", count: 2, gpu: h100}
"""


def pytest_ignore_collect(collection_path, config):
    """Leave this folder out of runs that do not name it: it needs programs that take long to build."""
    named = [Path(arg.partition("::")[0]).absolute() for arg in config.args]
    return None if any(path == HERE or HERE in path.parents for path in named) else True


def pytest_collection_modifyitems(items):
    """Begin with the files that take longest, so that no worker is left alone with one."""
    order = {HERE / f"test_{name}.py": place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path, len(order)))


@pytest.fixture(scope="session")
def programs(request) -> Path:
    """Return the folder of the genuine programs; without them no test here can run."""
    given = request.config.getoption("cre_controlplane", None)
    folder = Path(given).absolute() if given else built_folder(read_recipe(), os.environ)
    try:
        check_programs(folder)
    except UsageProblem as problem:
        pytest.exit(str(problem), returncode=4)
    return folder


@pytest.fixture(scope="session")
def scenario(tmp_path_factory) -> Path:
    """Return a scenario of two nodes with eight GPUs each."""
    path = tmp_path_factory.mktemp("scenario") / "two.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture(scope="session")
def plane(programs, scenario):
    """Return the control plane, with a harness account of exactly the printed rights."""
    settings = PlaneSettings(
        binaries=programs, scenario=str(scenario), seed=SEED, grants=rbac_manifests("default")
    )
    with ControlPlane(settings) as running:
        yield running


@pytest.fixture(scope="session")
def admin(plane):
    """Return the harness's client, with an administrator's rights."""
    return connect(kubeconfig=str(plane.admin_kubeconfig), context=None, namespace=None)


@pytest.fixture(scope="session")
def start_run(tmp_path_factory):
    """Start runs of the plugin with the given arguments."""
    started = []

    def start(*arguments):
        started.append(RunningCertification(tmp_path_factory.mktemp("run"), *map(str, arguments)))
        return started[-1]

    yield start
    for run in started:
        run.end()


@pytest.fixture(scope="session")
def start_certifying(plane, start_run):
    """Start runs of the plugin on the control plane, as the harness's account."""
    return lambda *arguments: start_run(f"--cre-kubeconfig={plane.harness_kubeconfig}", *arguments)
