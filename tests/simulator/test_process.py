import os
import sys
import time

import pytest

SCENARIO = "extends: h100-2\nprocesses: [{{match: {{namespace: default}}, python: {python}}}]\n"


def play(machines, words, files=(), **how):
    world = machines.world(SCENARIO.format(python=sys.executable))
    pods = [machines.pod(words, node="h100-0", index=0, files=list(files), **how)]
    return machines.play(world, pods, dict(files))[0]


def test_process_runs_for_real_with_its_files_and_environment(machines):
    script = "import os, sys\nprint(os.environ['A'], sys.argv[1])\nsys.exit(5)\n"
    played = play(
        machines, ["python3", "/cre/a.py", "word"], {"a.py": script}.items(), env={"A": "1"}
    )
    assert (played.code, played.text) == (5, "1 word\n")


def test_process_sees_nothing_of_the_own_environment(machines, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    script = "import os\nprint('SECRET_TOKEN' in os.environ)\n"
    assert play(machines, ["python3", "/cre/a.py"], {"a.py": script}.items()).text == "False\n"


def test_process_gets_local_names_and_one_free_port_per_job(machines):
    words = ["python3", "/cre/a.py", "--master-addr=job-0.job", "--master-port=29500", "/crew/x"]
    played = play(machines, words, {"a.py": "import sys\nprint(*sys.argv[1:])\n"}.items())
    address, port, path = played.text.split()
    assert address == "--master-addr=127.0.0.1"
    assert port.startswith("--master-port=")
    assert port != "--master-port=29500"
    assert path == "/crew/x"


def test_process_that_cannot_be_started_says_so(machines):
    played = play(machines, ["/no/such/program"])
    assert played.code == 1
    assert "No such file" in played.text


def test_process_ends_with_all_it_started_when_its_container_does(machines):
    world = machines.world(
        SCENARIO.format(python=sys.executable)
        + "faults: [{action: crash, exitCode: 9, after: {seconds: 0.6}}]\n"
    )
    script = (
        "import os, time\nchild = os.fork()\nif child: print(child, flush=True)\ntime.sleep(60)\n"
    )
    pod = machines.pod(["python3", "/cre/a.py"], node="h100-0", index=0, files=["a.py"])
    played = machines.play(world, [pod], {"a.py": script})[0]
    assert played.code == 9
    child = int(played.lines[0])
    deadline_s = time.monotonic() + 5
    while _is_alive(child) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert not _is_alive(child)


def _is_alive(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{number}/stat") as file:  # noqa: PTH123
        return file.read().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("name", ["../out.py", "a/../../out.py"])
def test_process_files_stay_in_their_folder(machines, name):
    script = "print('ran')\n"
    played = play(machines, ["python3", "/cre/a.py"], {"a.py": script, name: "x"}.items())
    assert played.text == "ran\n"
    assert not (machines.folder.parent / "out.py").exists()


def test_process_of_torchrun_gets_options_that_every_version_knows(machines, tmp_path):
    package = tmp_path / "torch" / "distributed"
    package.mkdir(parents=True)
    (package / "run.py").write_text("import sys\nprint(*sys.argv[1:])\n")
    words = ["torchrun", "--nproc-per-node=1", "--node-rank", "0", "/cre/a.py", "--log-dir=x"]
    played = play(machines, words, {"a.py": ""}.items(), env={"PYTHONPATH": str(tmp_path)})
    first, rank, zero, script, own = played.text.split()[4:]
    assert (first, rank, zero, own) == ("--nproc_per_node=1", "--node_rank", "0", "--log-dir=x")
    assert script.endswith("/cre/a.py")
