"""The warm interpreter of these tests: its runs are runs as from a command line."""

import atexit
import os
import signal
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.home import home_in
from tests.warm.children import CLUSTER, ForkingPopen
from tests.warm.runs import run_pytest, start_pytest

SHOWS = """
import os
import sys


def test_it():
    print("cwd", os.getcwd(), "own", os.environ["OWN"], "client", sys.modules.get("kubernetes"))
"""
WAITS = "import time\n\n\ndef test_it():\n    print('started', flush=True)\n    time.sleep(600)\n"


@pytest.fixture
def env(tmp_path):
    return {**home_in(tmp_path), "OWN": "value"}


def test_run_has_its_own_folder_and_environment_and_pytests_exit_code(tmp_path, env):
    (tmp_path / "test_mine.py").write_text(SHOWS)

    done = run_pytest(["-s"], cwd=tmp_path, env=env)
    empty = run_pytest(["-k", "nothing"], cwd=tmp_path, env=env)

    assert (done.returncode, empty.returncode) == (0, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert f"cwd {tmp_path} own value client <module" in done.stdout
    assert "warning" not in done.stdout


def test_variables_that_python_reads_at_its_start_take_a_new_interpreter(tmp_path, env):
    (tmp_path / "test_mine.py").write_text(SHOWS)

    done = run_pytest(["-s"], cwd=tmp_path, env={**env, "PYTHONPATH": str(tmp_path)})

    assert done.returncode == 0, done.stdout
    assert "client None" in done.stdout


def test_run_that_is_killed_or_interrupted_says_so(tmp_path, env):
    (tmp_path / "test_mine.py").write_text(WAITS)
    codes = []
    for signum in (signal.SIGKILL, signal.SIGINT):
        process = start_pytest(["-s"], cwd=tmp_path, env=env)
        assert any("started" in line for line in process.stdout)
        assert process.poll() is None
        os.kill(process.pid, signum)
        process.communicate(60)
        codes.append(process.returncode)

    assert codes == [-signal.SIGKILL, pytest.ExitCode.INTERRUPTED]


def test_fork_removes_no_folder_of_its_parent():
    folder = TemporaryDirectory()
    path, clean_up = Path(folder.name), folder.cleanup
    atexit.register(clean_up)
    del folder, clean_up  # now only `atexit` holds it

    help_of_it = ForkingPopen([*CLUSTER, "--help"], stdout=subprocess.PIPE, text=True)
    told, _ = help_of_it.communicate(timeout=60)

    assert told.startswith("usage: python -m pytest_cre.embedded")
    assert help_of_it.returncode == 0
    assert path.is_dir()
