import os
import time
from pathlib import Path

import pytest

from pytest_cre.controlplane.recipe import OPERATORS, PROGRAMS


def is_alive(pid):
    """Return whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def until(holds, timeout_s=10.0):
    """Return the condition's value once it is true; fail when it does not become so in time."""
    deadline_s = time.monotonic() + timeout_s
    while not (value := holds()):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    return value


@pytest.fixture(name="is_alive")
def _is_alive():
    return is_alive


@pytest.fixture(name="until")
def _until():
    return until


@pytest.fixture
def environ(tmp_path):
    """Return an environment whose home and cache are empty, with no Go."""
    return {"PATH": str(tmp_path / "path"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def programs(tmp_path):
    """Return a folder that has everything of a control plane, by name."""
    folder = tmp_path / "programs"
    (folder / "manifests").mkdir(parents=True)
    for name in PROGRAMS:
        (folder / name).touch()
    for name in OPERATORS:
        (folder / "manifests" / f"{name}.json").write_text("[]")
    return folder


GO = r"""#!/bin/sh
# Plays the Go compiler: what it is asked is written down, what it would make is made.
echo "$@" >> "$GO_CALLS"
env | grep -E '^(CGO_ENABLED|GO|XDG_CONFIG)' | sort > "$GO_CALLS.env"
case "$1 $2" in
"version ") echo "go version go$GO_VERSION linux/amd64" ;;
"mod download")
    # As the genuine one: of a module that is replaced by a folder it tells nothing.
    if grep -q "^replaced $4=" go.mod; then exit 0; fi
    case "$4" in *@*) module="${4%@*}" ;; *) module="$4" ;; esac
    echo "{\"Dir\": \"$GO_MODULES/$module\", \"GoMod\": \"$GO_MODULES/$module/go.mod\"}" ;;
"mod edit") echo "replaced ${3#-replace=}" >> go.mod ;;
"mod tidy") cp go.mod "$GO_CALLS.$(basename "$PWD").mod" ;;
build*)
    if [ -n "$GO_FAILS" ]; then echo "undefined: everything"; echo "go: downloading x"; exit 1; fi
    for argument; do case "$argument" in */) target="$argument" ;; esac; done
    case "$PWD" in
    */kubernetes) names="server kube-apiserver kube-controller-manager kube-scheduler kubectl" ;;
    */jobset-trainer) names="jobset trainer-controller-manager" ;;
    *) names="mpi-operator" ;;
    esac
    sleep "${GO_SECONDS:-0}"
    for name in $names; do echo program > "$target$name"; done ;;
esac
"""
SOURCES = {
    "sigs.k8s.io/jobset": {
        "config/components/crd/bases/jobsets.yaml": "kind: CustomResourceDefinition\n",
        "config/components/webhook/manifests.yaml": "---\nkind: MutatingWebhookConfiguration\n",
    },
    "github.com/kubeflow/trainer/v2": {
        "manifests/base/crds/b.yaml": "kind: CustomResourceDefinition\nname: b\n",
        "manifests/base/crds/a.yaml": "kind: CustomResourceDefinition\nname: a\n",
        "manifests/base/crds/kustomization.yaml": "kind: Kustomization\n",
        "manifests/base/webhook/manifests.yaml": "kind: ValidatingWebhookConfiguration\n",
        "pkg/util/cert/cert.go": "\t\tCertDir:        certDir,\n",
    },
    "github.com/kubeflow/mpi-operator": {
        "manifests/base/kubeflow.org_mpijobs.yaml": "kind: CustomResourceDefinition\n",
        "cmd/mpi-operator/app/server.go": '\tAddr: fmt.Sprintf(":%d", healthCheckPort),\n',
    },
    "k8s.io/kubernetes": {
        "go.mod": "replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n"
        "\tk8s.io/new => ./staging/src/k8s.io/new\n)\n"
    },
}


@pytest.fixture
def go(tmp_path, environ):
    """Put a Go on PATH that builds nothing; return the file with what it was asked."""
    path = tmp_path / "path" / "go"
    path.parent.mkdir()
    path.write_text(GO)
    path.chmod(0o755)
    modules = tmp_path / "modules"
    for module, files in SOURCES.items():
        for name, text in files.items():
            file = modules / module / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o444)
    calls = tmp_path / "calls"
    environ |= {
        "PATH": f"{path.parent}:{os.environ['PATH']}",
        "GO_CALLS": str(calls),
        "GO_MODULES": str(modules),
        "GO_VERSION": "1.26.8",
    }
    return calls
