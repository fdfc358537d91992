"""`pytest-cre simulate --kubeconfig-out`: whose files it replaces and deletes."""

import signal
import subprocess
import sys

import pytest

COMMAND = (sys.executable, "-m", "pytest_cre.cli", "simulate", "--scenario", "h100-2")


@pytest.fixture
def simulate(tmp_path):
    started = []

    def start():
        process = subprocess.Popen(
            [*COMMAND, "--kubeconfig-out", str(tmp_path / "config")],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == f"{tmp_path / 'config'}\n"
        return process

    yield start
    for process in started:
        end(process)
        process.stdout.close()


def end(process):
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


def test_file_of_a_user_is_neither_overwritten_nor_deleted(tmp_path):
    path = tmp_path / "config"
    path.write_text("apiVersion: v1\nkind: Config\n")

    done = subprocess.run(
        [*COMMAND, "--kubeconfig-out", str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )

    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "exists and is not one of pytest-cre's" in done.stderr
    assert path.read_text() == "apiVersion: v1\nkind: Config\n"


def test_older_process_leaves_the_file_of_a_newer_one(simulate, tmp_path):
    path = tmp_path / "config"
    older = simulate()
    first = path.read_bytes()
    newer = simulate()
    second = path.read_bytes()
    assert first != second

    end(older)
    assert path.read_bytes() == second

    end(newer)
    assert not path.exists()
