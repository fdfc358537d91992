"""Control planes come, and go without a trace, however their owners end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.running import until

SUPERVISOR = """
import subprocess, sys, time
server = subprocess.Popen(
    [sys.executable, "-m", "pytest_cre.controlplane", "serve", "--parent-pipe", *sys.argv[1:]],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdout.readline()
print(server.pid, flush=True)
time.sleep(600)
"""
PARTS = 8


def processes_in(folder):
    """Return the processes that work in a folder or below it, or name it in their arguments."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            place = str((path / "cwd").readlink())
            arguments = (path / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if place.startswith(str(folder)) or str(folder) in arguments:
            found.add(int(path.name))
    return found


@pytest.fixture
def temporary(tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


@pytest.fixture
def start(tmp_path, temporary):
    """Start a command with temporary folder and cache of its own; end what is left of it."""
    env = os.environ | {"TMPDIR": str(temporary), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    started = []

    def start(*command):
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
    for pid in processes_in(temporary):
        os.kill(pid, signal.SIGKILL)


def test_killed_parent_takes_everything_with_it(start, programs, scenario, tmp_path, temporary):
    kubeconfig = tmp_path / "kubeconfig"
    options = ("--kubeconfig-out", kubeconfig, "--binaries", programs, "--scenario", scenario)
    parent = start("-c", SUPERVISOR, *options)
    assert int(parent.stdout.readline())
    assert len(processes_in(temporary)) == PARTS
    parent.kill()
    until(lambda: not processes_in(temporary))
    until(lambda: not any(temporary.iterdir()))


def test_killed_supervisor_leaves_no_process(start, programs, scenario, tmp_path, temporary):
    kubeconfig = tmp_path / "kubeconfig"
    options = ("--kubeconfig-out", kubeconfig, "--binaries", programs, "--scenario", scenario)
    supervisor = start("-m", "pytest_cre.controlplane", "serve", *options)
    assert supervisor.stdout.readline().startswith("ready https://127.0.0.1:")
    assert len(processes_in(temporary)) == PARTS
    supervisor.kill()
    until(lambda: not processes_in(temporary))


def test_up_serves_until_down(start, programs, scenario, temporary):
    relative = os.path.relpath(scenario)
    up = start(
        "-m", "pytest_cre.cli", "controlplane", "up", "--dir", programs, "--scenario", relative
    )
    kubeconfig = Path(up.stdout.readline().strip())
    nodes = subprocess.run(
        [programs / "kubectl", f"--kubeconfig={kubeconfig}", "get", "nodes", "-o=name"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert nodes.stdout.split() == ["node/h100-0", "node/h100-1"]
    down = start("-m", "pytest_cre.cli", "controlplane", "down", "--dir", programs)
    assert down.wait(60) == 0
    assert up.wait(10) == 0
    assert not processes_in(temporary)
    assert not any(temporary.iterdir())


def test_part_that_ends_by_itself_is_started_again(plane):
    scheduler = plane.part("kube-scheduler")
    first = scheduler.pid
    os.kill(first, signal.SIGKILL)
    until(lambda: scheduler.pid not in (None, first))


def test_certification_starts_and_ends_a_control_plane_of_its_own(
    start_run, programs, scenario, tmp_path, monkeypatch
):
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("TMPDIR", str(own))
    run = start_run(
        "--cre-cluster=controlplane",
        f"--cre-controlplane={programs}",
        f"--cre-scenario={scenario}",
        "-k=nccl-broadcast and not intra",
    ).result()
    assert run.code == 0, run.output
    assert run.report["cluster"]["kind"] == "controlplane"
    assert run.report["settings"]["scenario"] == str(scenario)
    assert not processes_in(own)
    assert not any(own.iterdir())
