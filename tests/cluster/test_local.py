import os
import subprocess
import sys
import time

import pytest

from pytest_cre.cluster import local
from pytest_cre.cluster.local import start_embedded, start_process
from pytest_cre.errors import ClusterProblem, UsageProblem

SERVER = """
import os, pathlib, sys
pathlib.Path(sys.argv[1] + ".new").write_text("{}")
pathlib.Path(sys.argv[1] + ".new").rename(sys.argv[1])
sys.stdin.buffer.read()
"""


def start(tmp_path, program, *arguments, timeout_s=10.0, **more):
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-c", program, str(kubeconfig), *arguments]
    return start_process(command, kubeconfig, tmp_path / "log", timeout_s, **more)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_cluster_is_there_once_its_kubeconfig_is(tmp_path):
    cluster = start(tmp_path, SERVER)
    assert cluster.kubeconfig.read_text() == "{}"
    assert cluster.is_running()
    assert os.getsid(cluster.pid) == cluster.pid
    cluster.stop()
    assert not cluster.is_running()
    cluster.stop()


def test_a_kubeconfig_of_an_earlier_cluster_is_no_sign(tmp_path):
    (tmp_path / "kubeconfig").write_text("old")
    cluster = start(tmp_path, SERVER)
    assert cluster.kubeconfig.read_text() == "{}"
    cluster.stop()


def test_arguments_that_the_server_refuses_are_usage_in_its_own_words(tmp_path):
    program = (
        "import sys; sys.stderr.write('noise\\nscenario: unknown x; choices: a, b\\n'); sys.exit(2)"
    )
    with pytest.raises(UsageProblem) as found:
        start(tmp_path, program)
    assert str(found.value) == "scenario: unknown x; choices: a, b"


def test_a_server_that_dies_is_told_with_its_last_line(tmp_path):
    with pytest.raises(ClusterProblem, match="ended with code 1: ValueError: port taken"):
        start(tmp_path, "raise ValueError('port taken')")


def test_a_server_that_never_gets_ready_is_stopped_at_the_deadline(tmp_path, monkeypatch):
    started = []
    plain = subprocess.Popen

    def popen(*args, **more):
        started.append(plain(*args, **more))
        return started[0]

    monkeypatch.setattr(local.subprocess, "Popen", popen)
    with pytest.raises(ClusterProblem, match=r"did not get ready in 0\.3 s: it wrote nothing"):
        start(tmp_path, "import sys; sys.stdin.buffer.read()", timeout_s=0.3)
    assert started[0].poll() is not None


def test_a_server_that_ignores_everything_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "STOP_PATIENCE_S", 0.2)
    program = (
        "import pathlib, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "pathlib.Path(sys.argv[1]).write_text('{}'); time.sleep(30)"
    )
    cluster = start(tmp_path, program)
    cluster.stop()
    assert cluster.process.returncode == -9


def test_an_interrupt_while_waiting_leaves_no_process(tmp_path):
    pids = []

    def interrupt(seconds):
        pids.append(int((tmp_path / "pid").read_text()) if (tmp_path / "pid").exists() else 0)
        if pids[-1]:
            raise KeyboardInterrupt
        time.sleep(seconds)

    program = (
        "import os, pathlib, sys; path = pathlib.Path(sys.argv[1]).parent / 'pid';"
        "path.with_name('new').write_text(str(os.getpid())); path.with_name('new').rename(path);"
        "sys.stdin.buffer.read()"
    )
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path, program, sleep=interrupt)
    assert not is_alive(pids[-1])


def test_a_server_ends_when_its_starter_is_killed(tmp_path, eventually):
    program = f"""
import sys, os, pathlib
from pytest_cre.cluster.local import start_process
folder = pathlib.Path({str(tmp_path)!r})
command = [sys.executable, "-c", {SERVER!r}, str(folder / "kubeconfig")]
print(start_process(command, folder / "kubeconfig", folder / "log", 10).pid, flush=True)
sys.stdin.read()
"""
    starter = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with starter:
        pid = int(starter.stdout.readline())
        assert is_alive(pid)
        starter.kill()
    eventually(lambda: not is_alive(pid))


def test_a_folder_that_is_not_there_is_usage(tmp_path):
    with pytest.raises(UsageProblem, match="cannot be started"):
        start(tmp_path / "none", SERVER)


def test_an_unknown_scenario_is_usage(tmp_path):
    with pytest.raises(UsageProblem, match="no-such-scenario"):
        start_embedded(scenario="no-such-scenario", seed=1, folder=tmp_path, timeout_s=20)
