"""Runs of pytest that start from an interpreter which has imported all that they need.

Imports take most of the time of a short run. A warm interpreter has done them, and forks for each
run: a process as any other, with its own folder, environment and files, that can be signalled and
killed.
"""

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import inspect
import json
import logging
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

import pytest

WARM_UP = ("-m", "certification", "--pyargs", "pytest_cre.suites", "--collect-only", "-q")
LATE_CLIENT = ("kubernetes.config", "kubernetes.client.rest", "kubernetes.client.api_client")
# Programs of their own, some of which need what is not installed here.
APART = ("controlplane", "suites", "workloads")
CLUSTER = [sys.executable, "-m", "pytest_cre.embedded"]
PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
START_PATIENCE_S = 60.0
ENVIRONMENT = dict(os.environ)  # before any test changes it
PR_SET_PDEATHSIG = 1


class WarmPython:
    """An interpreter that waits to be asked. It ends with whoever started it, and its runs with it."""

    def __init__(self) -> None:
        self._door, theirs = pair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.warm"],
            cwd=Path(__file__).parents[1],
            env=ENVIRONMENT,
            stdin=theirs,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()

    def start(self, asked: Mapping[str, object]) -> "WarmProcess":
        """Ask for a process that does `become`; what it writes comes through one pipe."""
        ours, theirs = pair()
        read_end, write_end = os.pipe()
        try:
            files = [theirs.fileno(), write_end]
            socket.send_fds(self._door, [json.dumps(asked).encode()], files)
        finally:
            theirs.close()
            os.close(write_end)
        return WarmProcess(ours, read_end)

    def close(self) -> None:
        """End it."""
        self._door.close()
        self._process.wait()


class WarmProcess:
    """A process that was asked for: what `subprocess.Popen` offers, as far as tests use it."""

    def __init__(self, line: socket.socket, output: int) -> None:
        self._line = line
        self.stdout = os.fdopen(output, encoding="utf-8", errors="replace")
        self.returncode: int | None = None
        self.pid = int(self._next(START_PATIENCE_S))

    def _next(self, timeout_s: float | None) -> str:
        """Return the next word about the process: its id, then its exit code."""
        self._line.settimeout(timeout_s)
        try:
            word = self._line.recv(64)
        except (TimeoutError, BlockingIOError):
            raise subprocess.TimeoutExpired("pytest", timeout_s or 0.0) from None
        assert word, "the warm interpreter has died"
        return word.decode()

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.returncode = int(self._next(timeout))
            self._line.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """Return what is left of its output, once it has ended."""
        read = [""]
        if not self.stdout.closed:
            reader = threading.Thread(target=lambda: read.append(self.stdout.read()), daemon=True)
            reader.start()
            reader.join(timeout)
            if reader.is_alive():
                raise subprocess.TimeoutExpired("pytest", timeout or 0.0)
            self.stdout.close()
        self.wait(timeout)
        return read[-1], None

    def send_signal(self, signum: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, signum)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@functools.cache
def warm_python() -> WarmPython:
    """Return the warm interpreter of this process, which is started the first time."""
    python = WarmPython()
    atexit.register(python.close)
    return python


def start_pytest(
    arguments: Iterable[str], *, cwd: Path, env: Mapping[str, str], new_session: bool = False
) -> "WarmProcess | subprocess.Popen[str]":
    """Start `python -m pytest`; by a new interpreter where its environment asks for another one."""
    argv = ["pytest", *map(str, arguments)]
    if read_by_python(env) != read_by_python(ENVIRONMENT):
        return subprocess.Popen(
            [sys.executable, "-m", *argv],
            cwd=cwd,
            env=dict(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=new_session,
        )
    return warm_python().start(
        {"argv": argv, "cwd": str(cwd), "env": dict(env), "new_session": new_session}
    )


def read_by_python(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an interpreter reads when it starts, such as PYTHONPATH."""
    return {name: value for name, value in env.items() if name.startswith("PYTHON")}


def run_pytest(
    arguments: Iterable[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run `python -m pytest` to its end; `stdout` holds all that it wrote."""
    process = start_pytest(arguments, cwd=cwd, env=env)
    try:
        output, _ = process.communicate(timeout_s)
    finally:
        process.kill()
    return subprocess.CompletedProcess("pytest", process.returncode or 0, output)


def pair() -> tuple[socket.socket, socket.socket]:
    """Return two ends of a line that keeps messages apart."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def warm_up() -> None:
    """Import what a certification needs, the plugin as pytest itself does."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        code = pytest.main([*WARM_UP, "-p", "no:cacheprovider"])
    assert code == pytest.ExitCode.OK, code
    package = importlib.import_module("pytest_cre")
    for name in LATE_CLIENT:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, "pytest_cre."):
        parts = module.name.split(".")
        if parts[1] not in APART and parts[-1] != "__main__":
            importlib.import_module(module.name)
    gc.freeze()  # the forks need not copy what they only read


def serve(door: socket.socket) -> None:
    """Fork for each request, and tell how each fork ended."""
    lines: dict[int, socket.socket] = {}
    woken, wake = pair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    selector = selectors.DefaultSelector()
    selector.register(door, selectors.EVENT_READ)
    selector.register(woken, selectors.EVENT_READ)
    while True:
        ready = [key.fileobj for key, _ in selector.select()]
        if woken in ready:
            woken.recv(4096)
            tell_ends(lines)
        if door not in ready:
            continue
        message, files, _, _ = socket.recv_fds(door, 1 << 20, 2)
        if not message:
            return
        line, output = socket.socket(fileno=files[0]), files[1]
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            selector.close()
            for each in (door, woken, wake, line, *lines.values()):
                each.close()
            become(json.loads(message), output)
        os.close(output)
        line.send(str(pid).encode())
        lines[pid] = line


def tell_ends(lines: dict[int, socket.socket]) -> None:
    """Tell of every fork that has ended."""
    while lines:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with lines.pop(pid) as line, contextlib.suppress(OSError):
            line.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(asked: dict, output: int) -> None:
    """Be `python -m pytest`, for as long as there is somebody to run it for."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if asked["new_session"]:
        os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, output), (2, output)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv = asked["argv"]
    sys.path[0] = asked["cwd"]
    subprocess.Popen = ForkingPopen
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)


class ForkingPopen(subprocess.Popen):
    """Starts an embedded cluster by a fork, and everything else as ever."""

    def _execute_child(self, args, *rest):
        if list(args[:3]) != CLUSTER:
            super()._execute_child(args, *rest)
            return
        given = inspect.signature(super()._execute_child).bind(args, *rest).arguments
        self.pid = os.fork()
        if self.pid == 0:
            be_cluster(args[3:], given["p2cread"], given["errwrite"])
        self._child_created = True
        self._close_pipe_fds(*(given[name] for name in PIPES))


def be_cluster(arguments: list[str], commands: int, errors: int) -> NoReturn:
    """Be `python -m pytest_cre.embedded`, whatever pytest has made of this process."""
    gc.freeze()  # what is pytest's is never looked at again
    code = 1
    try:
        os.setsid()
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_WRONLY)
        for target, source in ((0, commands), (1, nothing), (2, errors)):
            os.dup2(source, target)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        logging.getLogger().handlers.clear()
        warnings.resetwarnings()
        code = importlib.import_module(f"{CLUSTER[-1]}.__main__").main(arguments)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    own = socket.socket(fileno=os.dup(0))
    warm_up()
    serve(own)
