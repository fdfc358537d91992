import os
import signal
import subprocess
import sys

import pytest

from pytest_cre.controlplane.running import end_all, registered
from pytest_cre.errors import ClusterProblem

UP = """
import os, signal, sys
from pathlib import Path
from pytest_cre.controlplane.running import registered
signal.signal(signal.SIGTERM, {handler})
with registered(os.environ, Path(sys.argv[1]) if sys.argv[1:] else None):
    print("up", flush=True)
    while True:
        signal.pause()
"""


@pytest.fixture
def start(environ):
    started = []

    def start(*arguments, handler="lambda *_: sys.exit(0)"):
        process = subprocess.Popen(
            [sys.executable, "-c", UP.format(handler=handler), *map(str, arguments)],
            env=os.environ | {"XDG_CACHE_HOME": environ["XDG_CACHE_HOME"]},
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout.readline() == b"up\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_down_ends_all_that_run(environ, start):
    processes = [start(), start("/some/programs")]
    assert end_all(environ, None, patience_s=10) == tuple(sorted(each.pid for each in processes))
    assert [each.wait(5) for each in processes] == [0, 0]
    assert end_all(environ, None, patience_s=10) == ()


def test_down_with_a_folder_ends_those_that_run_from_it(environ, start, tmp_path):
    other, meant = start(), start(tmp_path)
    assert end_all(environ, tmp_path, patience_s=10) == (meant.pid,)
    assert meant.wait(5) == 0
    assert other.poll() is None


def test_down_leaves_a_process_alone_that_got_the_number_of_a_killed_one(environ, start, tmp_path):
    killed = start()
    killed.kill()
    killed.wait()
    (record,) = (tmp_path / "cache" / "pytest-cre" / "controlplane" / "running").iterdir()
    record.write_text(f'{{"pid": {os.getpid()}, "programs": null}}')
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert end_all(environ, None, patience_s=10) == ()
    assert not record.exists()


def test_down_says_which_process_does_not_end(environ, start):
    process = start(handler="signal.SIG_IGN")
    with pytest.raises(ClusterProblem, match=f"process {process.pid} still runs"):
        end_all(environ, None, patience_s=0.2)


def test_nothing_stays_when_up_ends(environ, tmp_path):
    with registered(environ, None):
        pass
    assert list((tmp_path / "cache" / "pytest-cre" / "controlplane" / "running").iterdir()) == []
