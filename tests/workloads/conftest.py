"""Real processes of an interpreter that has torch, that talk to each other over gloo."""

import os
import subprocess
from pathlib import Path

import pytest

from pytest_cre import workloads
from pytest_cre.ports import hold_port
from tests.workloads.interpreter import TIMEOUT_S, torch_python

SCRIPT = Path(workloads.__file__).parent / "collective.py"

# Several sweeps in one process, for starting torch takes longer than all of them.
SWEEPS = """
import os, socket, sys, time
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import collective
for sweep in sys.argv[2:]:
    os.environ["MASTER_PORT"], _, arguments = sweep.partition(" ")
    sys.argv = ["collective.py", *arguments.split()]
    # A rank that comes before rank 0 listens would try again only after a second.
    while os.environ["RANK"] != "0":
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", int(os.environ["MASTER_PORT"]))) == 0:
                break
        time.sleep(0.005)
    print("== %s exit %d" % (arguments, collective.main()), flush=True)
"""


@pytest.fixture(scope="session", name="torch_python")
def _torch_python():
    return torch_python()


@pytest.fixture(scope="session")
def environment():
    """The environment of a process: one thread, for ranks share few cores, and no old rendezvous."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return kept | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(scope="session")
def free_port():
    def take():
        with hold_port() as held:
            return held.getsockname()[1]

    return take


@pytest.fixture(scope="session")
def run_sweeps(torch_python, environment, free_port):
    """Run the script with each line of arguments on so many ranks; return rank 0's output by line."""

    def run(ranks, *sweeps):
        with_ports = [f"{free_port()} {sweep}" for sweep in sweeps]
        command = [torch_python, "-c", SWEEPS, str(SCRIPT), *with_ports]
        processes = []
        for rank in range(ranks):
            place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks}
            env = environment | {name: str(value) for name, value in place.items()}
            env["MASTER_ADDR"] = "127.0.0.1"
            output = subprocess.PIPE if rank == 0 else subprocess.DEVNULL
            processes.append(subprocess.Popen(command, env=env, stdout=output, text=True))
        try:
            text, _ = processes[0].communicate(timeout=TIMEOUT_S)
            codes = [process.wait(timeout=TIMEOUT_S) for process in processes]
        finally:
            for process in processes:
                process.kill()
        assert codes == [0] * ranks
        found, lines = {}, []
        for line in text.splitlines():
            if line.startswith("== "):
                arguments, _, code = line[3:].rpartition(" exit ")
                found[arguments] = (lines, int(code))
                lines = []
            else:
                lines.append(line)
        return found

    return run
