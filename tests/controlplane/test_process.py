import os
import subprocess
import sys

import pytest


@pytest.fixture
def serve(tmp_path, environ):
    def serve(*arguments):
        command = [sys.executable, "-m", "pytest_cre.controlplane", "serve"]
        command += ["--kubeconfig-out", str(tmp_path / "kubeconfig"), *map(str, arguments)]
        return subprocess.run(
            command,
            env=os.environ | {"XDG_CACHE_HOME": environ["XDG_CACHE_HOME"], "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    return serve


def test_unknown_scenario_is_told_before_anything_is_started(serve, programs):
    done = serve("--binaries", programs, "--scenario", "moon")
    assert done.returncode == 2
    assert "scenario 'moon' is unknown; choices: " in done.stderr
    assert done.stderr.count("\n") == 1


def test_control_plane_that_was_not_built_says_how_to(serve, environ):
    done = serve()
    assert done.returncode == 2
    assert done.stderr.startswith(f"no control plane in {environ['XDG_CACHE_HOME']}/pytest-cre/")
    assert "pytest-cre controlplane build" in done.stderr


def test_program_that_does_not_start_is_named_and_its_logs_are_kept(serve, programs, tmp_path):
    for name in ("server", "kube-apiserver"):
        (programs / name).write_text("#!/bin/sh\necho 'bad flag' >&2\nexit 3\n")
        (programs / name).chmod(0o755)
    done = serve("--binaries", programs, "--no-simulator")
    assert done.returncode == 4
    (folder,) = tmp_path.glob("pytest-cre-controlplane-*")
    assert done.stderr.startswith("control plane: ")
    assert done.stderr.endswith(f"ended with code 3: bad flag (logs: {folder}/logs)\n")
    assert [path.name for path in folder.iterdir()] == ["logs"]


def test_command_without_an_action_is_usage():
    done = subprocess.run(
        [sys.executable, "-m", "pytest_cre.cli", "controlplane"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "ACTION" in done.stderr


def test_down_when_nothing_runs_is_fine(environ):
    done = subprocess.run(
        [sys.executable, "-m", "pytest_cre.cli", "controlplane", "down"],
        env=os.environ | {"XDG_CACHE_HOME": environ["XDG_CACHE_HOME"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "pytest-cre controlplane: no control plane runs\n"
