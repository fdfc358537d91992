import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_cre.controlplane.part import Part

PROGRAM = """
import os, pathlib, sys, time
pathlib.Path("starts").open("a").write(f"{os.getpid()}\\n")
print("started", flush=True)
time.sleep(60)
"""


@pytest.fixture
def make_part(tmp_path):
    (tmp_path / "logs").mkdir()
    made = []

    def make(program=PROGRAM, stop_patience_s=5.0):
        command = [sys.executable, "-c", program]
        part = Part(
            "worker", command, folder=tmp_path, env={"OWN": "1"}, stop_patience_s=stop_patience_s
        )
        made.append(part)
        return part

    yield make
    for part in made:
        part.kill()


@pytest.fixture
def part(make_part, until):
    part = make_part()
    part.start()
    until(lambda: "started" in part.log.read_text())
    return part


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_part_runs_in_its_folder_with_its_environment_alone(make_part, until):
    part = make_part("import os; print(sorted(os.environ), os.getcwd())")
    part.start()
    until(lambda: not part.is_running())
    names, _, folder = part.log.read_text().strip().partition("] ")
    assert "'OWN'" in names
    assert "'PATH'" not in names
    assert folder == str(part.log.parents[1])


def test_part_that_is_started_twice_runs_once(part):
    pid = part.pid
    part.start()
    assert part.pid == pid


def test_stopped_part_is_not_started_again(part):
    part.stop()
    part.tend(0.0)
    assert not part.is_running()
    assert part.pid is None
    assert part.deaths == 0


def test_killed_part_stays_down_until_it_is_started(part, tmp_path, until):
    part.kill()
    part.tend(0.0)
    assert not part.is_running()
    part.start()
    until(lambda: len((tmp_path / "starts").read_text().split()) == 2)
    assert part.is_running()


def test_part_that_ends_by_itself_is_started_again_after_the_pause(part, until):
    first = part.pid
    os.kill(first, signal.SIGKILL)
    until(lambda: not part.is_running())
    part.tend(3600.0)
    assert not part.is_running()
    part.tend(0.0)
    assert part.is_running()
    assert part.pid != first
    assert part.deaths == 1


def test_suspended_part_hangs_and_goes_on(part, until):
    part.suspend()
    until(lambda: state_of(part.pid) == "T")
    assert part.is_running()
    part.resume()
    until(lambda: state_of(part.pid) != "T")


def test_suspended_part_can_be_stopped_in_order(part):
    part.suspend()
    begun_s = time.monotonic()
    part.stop()
    assert not part.is_running()
    assert time.monotonic() - begun_s < 4.0


def test_part_that_ignores_its_end_is_killed(make_part, until):
    part = make_part(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('ready', flush=True); time.sleep(60)",
        stop_patience_s=0.1,
    )
    part.start()
    until(lambda: "ready" in part.log.read_text())
    part.stop()
    assert not part.is_running()


def test_exit_is_told_with_code_and_last_words(make_part, until):
    part = make_part("import sys; print('noise', flush=True); sys.exit('port taken\\n')")
    part.start()
    until(lambda: not part.is_running())
    assert part.exit_words() == "worker ended with code 1: port taken"


@pytest.mark.parametrize(
    "told",
    ['ERROR setup {"error": "address in use"}', "E1201 01:40:14.463 server.go:9] address in use"],
)
def test_exit_is_told_by_the_last_error_not_by_the_stack_below_it(make_part, until, told):
    part = make_part(f"import sys; sys.exit({told!r} + '\\nmain.main\\n\\truntime/proc.go:290')")
    part.start()
    until(lambda: not part.is_running())
    assert part.exit_words() == f"worker ended with code 1: {told}"


def test_program_that_is_not_there_is_told_by_its_name(tmp_path, make_part, until):
    part = make_part()
    part.command = (str(tmp_path / "nothing"),)
    part.start()
    until(lambda: not part.is_running())
    assert part.exit_words().endswith("nothing: No such file or directory")


def test_part_dies_when_its_parent_is_killed(tmp_path, is_alive, until):
    parent = f"""
import pathlib, sys, time
from pytest_cre.controlplane.part import Part
folder = pathlib.Path({str(tmp_path)!r})
(folder / "logs").mkdir()
part = Part("worker", [sys.executable, "-c", "import time; time.sleep(60)"],
            folder=folder, env={{}}, stop_patience_s=1.0)
part.start()
print(part.pid, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        pid = int(process.stdout.readline())
        assert is_alive(pid)
        process.kill()
    until(lambda: not is_alive(pid))
