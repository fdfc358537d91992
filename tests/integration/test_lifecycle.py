"""Control planes come, and go without a trace, however their owners end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.running import processes_in, until

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
