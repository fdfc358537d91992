import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

# Runs the command with a simulator of the test's own in place of the real one.
WITH_SIMULATOR = """
import sys, types
module = types.ModuleType("pytest_cre.simulator.run")
exec(sys.argv.pop(1), module.__dict__)
sys.modules["pytest_cre.simulator.run"] = module
from pytest_cre.embedded.__main__ import main
sys.exit(main())
"""


def ended(pid, timeout_s=5.0):
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def test_serve_when_ready_prints_one_line_and_a_private_kubeconfig(cluster):
    assert cluster.ready_line == f"ready {cluster.url}\n"
    assert urlsplit(cluster.url).hostname == "127.0.0.1"
    assert stat.S_IMODE(cluster.kubeconfig.stat().st_mode) == 0o600
    assert [path.name for path in cluster.folder.glob("*kubeconfig*")] == ["kubeconfig"]


def test_serve_when_ready_answers_at_once(cluster):
    assert cluster.get("/version")["major"] == "1"
    assert cluster.get("/version/")["gitVersion"].endswith("+pytest-cre.embedded")


def test_token_is_in_no_argument_and_no_environment_of_the_process(cluster):
    folder = Path(f"/proc/{cluster.process.pid}")
    assert len(cluster.token) >= 32
    assert cluster.token.encode() not in (folder / "cmdline").read_bytes()
    assert cluster.token.encode() not in (folder / "environ").read_bytes()


@pytest.mark.parametrize("path", ["/version", "/healthz", "/api", "/api/v1/pods", "/nope"])
@pytest.mark.parametrize("token", ["", "wrong", "Ä"])
def test_request_without_the_token_is_unauthorized(cluster, path, token):
    answer = cluster("GET", path, token=token.encode().decode("latin-1"))
    assert answer.code == 401
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


def test_certificate_passes_the_strictest_verification(cluster):
    context = ssl.create_default_context(cadata=None)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_verify_locations(cadata=_authority(cluster))
    address = urlsplit(cluster.url)
    with (
        socket.create_connection((address.hostname, address.port)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        assert secured.version() == "TLSv1.3"


def _authority(cluster):
    import base64
    import json

    config = json.loads(cluster.kubeconfig.read_text())
    data = config["clusters"][0]["cluster"]["certificate-authority-data"]
    return base64.b64decode(data).decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_server_cleanly_while_a_watch_is_open(
    make_cluster, monkeypatch, tmp_path, number
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    cluster = make_cluster()
    with cluster.open("GET", "/api/v1/pods?watch=1"):
        begun_s = time.monotonic()
        cluster.process.send_signal(number)
        assert cluster.process.wait(5) == 0
        assert time.monotonic() - begun_s < 2
    assert cluster.process.stderr.read() == ""
    assert list(tmp_path.iterdir()) == []


def test_end_of_standard_input_ends_the_server(cluster, make_cluster):
    other = make_cluster()
    assert other.token != cluster.token
    assert other.url != cluster.url
    other.process.stdin.close()
    assert other.process.wait(5) == 0
    other.process.stdin = None


@pytest.mark.parametrize("is_killed", [True, False])
def test_killed_parent_takes_the_server_and_its_own_folder_with_it(tmp_path, is_killed):
    folder = tmp_path / "parents"
    folder.mkdir()
    ending = "time.sleep(60)" if is_killed else "server.stdin.close(); server.wait()"
    parent = f"""
import subprocess, sys, time
server = subprocess.Popen(
    [sys.executable, "-m", "pytest_cre.embedded", "serve", "--no-simulator", "--parent-pipe",
     "--kubeconfig-out", {str(folder / "kubeconfig")!r}, "--parent-folder", {str(folder)!r}],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdout.readline()
print(server.pid, flush=True)
{ending}
"""
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        server_pid = int(process.stdout.readline())
        if is_killed:
            process.kill()
    assert ended(server_pid)
    # A parent that lives removes its folder itself.
    assert folder.exists() != is_killed


def test_killed_server_leaves_no_folder(serve, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    process, _path = serve(
        "import asyncio\n"
        "async def run_simulator(*, ready, ca_file, **more):\n"
        "    assert open(ca_file).read()\n"
        "    ready.set()\n"
        "    await asyncio.sleep(60)\n"
    )
    assert process.stdout.readline().startswith("ready")
    process.kill()
    process.wait(5)
    assert list(scratch.iterdir()) == []


@pytest.fixture
def serve(tmp_path):
    """Run the command with a simulator given as text; gives the process and the kubeconfig."""
    processes = []

    def start(simulator, *arguments):
        path = tmp_path / "kubeconfig"
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                WITH_SIMULATOR,
                simulator,
                "serve",
                "--kubeconfig-out",
                str(path),
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process, path

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_serve_with_a_scenario_that_cannot_be_played_says_so_in_one_line_and_exits_2(serve):
    process, path = serve(
        "async def run_simulator(*, scenario, **more):\n"
        "    raise ValueError(f'no part of {scenario};\\n choices: a, b')",
        "--scenario",
        "h100-2",
    )
    output, errors = process.communicate(timeout=10)
    assert (process.returncode, output) == (2, "")
    assert errors == "no part of h100-2; choices: a, b\n"
    assert not path.exists()


def test_serve_with_simulator_is_ready_only_when_its_nodes_are(serve, tmp_path):
    mark = tmp_path / "may-go-on"
    process, path = serve(
        "import asyncio, os\n"
        "async def run_simulator(*, server, token, ca_file, scenario, seed, ready, has_api_faults):\n"
        "    assert server.startswith('https://127.0.0.1:') and token and seed == 3\n"
        "    assert 'BEGIN CERTIFICATE' in open(ca_file).read()\n"
        f"    while not os.path.exists({str(mark)!r}):\n"
        f"        assert not os.path.exists({str(tmp_path / 'kubeconfig')!r})\n"
        "        await asyncio.sleep(0.01)\n"
        "    ready.set()\n"
        "    await asyncio.sleep(60)\n",
        "--seed",
        "3",
    )
    mark.touch()
    assert process.stdout.readline().startswith("ready https://127.0.0.1:")
    assert path.exists()
    process.terminate()
    assert process.wait(5) == 0


def test_serve_when_the_simulator_dies_later_ends_with_its_words(serve):
    process, _path = serve(
        "async def run_simulator(*, ready, **more):\n"
        "    ready.set()\n"
        "    raise ValueError('the nodes are gone')"
    )
    _output, errors = process.communicate(timeout=10)
    assert process.returncode == 2
    assert "the nodes are gone" in errors


def test_serve_into_a_missing_folder_is_one_line_and_exit_2(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest_cre.embedded",
            "serve",
            "--no-simulator",
            "--kubeconfig-out",
            str(tmp_path / "no" / "file"),
        ],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "No such file or directory" in done.stderr
