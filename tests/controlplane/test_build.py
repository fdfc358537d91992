import json
import threading

import pytest

from pytest_cre.controlplane import build as builds
from pytest_cre.controlplane.build import build
from pytest_cre.controlplane.recipe import PROGRAMS, built_folder, read_recipe
from pytest_cre.errors import ClusterProblem, UsageProblem


@pytest.fixture(autouse=True)
def prepared(monkeypatch):
    """Leave out what needs a genuine API server; return the folders it was asked for."""
    folders = []
    monkeypatch.setattr(builds, "prepare", folders.append)
    return folders


@pytest.fixture
def told():
    return []


@pytest.fixture
def make(environ, told):
    def make(recipe=None, target=None):
        return build(recipe or read_recipe(), target=target, environ=environ, tell=told.append)

    return make


def builds_in(calls):
    return [line for line in calls.read_text().splitlines() if line.startswith("build ")]


def test_build_makes_programs_manifests_and_first_data_in_the_cache(go, make, environ, prepared):
    folder = make()
    assert folder == built_folder(read_recipe(), environ)
    assert {path.name for path in folder.iterdir()} == {*PROGRAMS, "manifests", "recipe.json"}
    assert len(prepared) == 1
    manifests = json.loads((folder / "manifests" / "trainer.json").read_text())
    assert [each.get("name", each["kind"]) for each in manifests] == [
        "a",
        "b",
        "ValidatingWebhookConfiguration",
    ]
    assert [path.name for path in folder.parent.iterdir() if path.is_dir()] == [folder.name]


def test_every_module_is_built_static_and_kubernetes_says_its_version(go, make):
    make()
    kubernetes, *others = builds_in(go)
    assert "-X k8s.io/component-base/version.gitVersion=v1.37.2 " in kubernetes
    assert "version.gitMajor=1 " in kubernetes
    assert "version.gitMinor=37 " in kubernetes
    assert len(others) == 2
    assert all("-trimpath -ldflags=-s -w -o " in line for line in others)
    assert "CGO_ENABLED=0" in go.with_name("calls.env").read_text()


def test_second_build_builds_nothing(go, make, told):
    first = make()
    told.clear()
    count = len(go.read_text())
    assert make() == first
    assert len(go.read_text()) == count
    assert told == []


def test_build_that_was_cut_short_is_made_again(go, make):
    folder = make()
    (folder / "kubectl").unlink()
    assert make() == folder
    assert (folder / "kubectl").exists()
    assert len(builds_in(go)) == 6


def test_two_builds_at_once_build_once(go, make, environ, told):
    environ["GO_SECONDS"] = "0.2"
    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds_in(go)) == 3
    assert "another build is running; waiting for it" in told


def test_build_into_a_named_folder(go, make, tmp_path):
    assert make(target=tmp_path / "mine") == tmp_path / "mine"
    assert (tmp_path / "mine" / "kube-apiserver").exists()


def test_failed_build_names_its_log_and_leaves_nothing_half_made(go, make, environ):
    environ["GO_FAILS"] = "1"
    with pytest.raises(
        ClusterProblem, match=r"1/3 kubernetes ended with code 1: undefined: everything \(log"
    ) as found:
        make()
    folder = built_folder(read_recipe(), environ)
    assert str(folder.with_suffix(".log")) in str(found.value)
    assert not folder.exists()
    assert [path for path in folder.parent.iterdir() if path.is_dir()] == []


def test_build_without_go_is_usage(environ, make, monkeypatch):
    monkeypatch.setattr(builds, "find_go", lambda *_: (_ for _ in ()).throw(UsageProblem("no Go")))
    with pytest.raises(UsageProblem, match="no Go"):
        make()


def test_operators_are_built_from_corrected_sources(go, make, monkeypatch):
    seen = {}
    plain = builds._Build._go

    def look(self, module, what, *arguments):
        for file in (self.work / module).glob("corrected/**/*.go"):
            seen[module] = file.read_text()
        plain(self, module, what, *arguments)

    monkeypatch.setattr(builds._Build, "_go", look)
    make()
    assert seen == {
        "jobset-trainer": '\t\tCertDir: os.TempDir() + "/k8s-webhook-server/serving-certs",\n',
        "mpi-operator": '\tAddr: os.Getenv("MPI_OPERATOR_HEALTH_ADDRESS"),\n',
    }
    asked = go.read_text()
    assert "mod edit -replace=github.com/kubeflow/mpi-operator=./corrected" in asked
    assert "mod edit -replace=github.com/kubeflow/trainer/v2=./corrected" in asked


def test_source_that_changed_upstream_is_not_built_uncorrected(go, make, tmp_path):
    file = tmp_path / "modules/github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/server.go"
    file.chmod(0o644)
    file.write_text("Addr: other,\n")
    with pytest.raises(ClusterProblem, match=r"mpi-operator cmd/.*/server\.go: no longer says"):
        make()


def test_other_version_is_tidied_with_the_staging_modules_that_it_names_itself(go, make, tmp_path):
    make(read_recipe("1.36.3"))
    text = (tmp_path / "calls.kubernetes.mod").read_text()
    assert "require k8s.io/kubernetes v1.36.3\n" in text
    assert "\tk8s.io/api => k8s.io/api v0.36.3\n\tk8s.io/new => k8s.io/new v0.36.3\n" in text
    assert "k8s.io/kubernetes/cmd/kube-apiserver\n" in text
    assert "1.37" not in text
    assert "gitVersion=v1.36.3 " in builds_in(go)[0]
