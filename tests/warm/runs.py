"""Runs of pytest that start from an interpreter which has imported all that they need.

Imports take most of the time of a short run. A warm interpreter has done them, and forks for each
run: a process as any other, with its own folder, environment and files, that can be signalled and
killed.
"""

import atexit
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

ENVIRONMENT = dict(os.environ)  # before any test changes it
START_PATIENCE_S = 60.0


@functools.cache
def warm_python() -> "WarmPython":
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


class WarmPython:
    """An interpreter that waits to be asked. It ends with whoever started it, and its runs with it."""

    def __init__(self) -> None:
        self._door, theirs = pair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.warm"],
            cwd=Path(__file__).parents[2],
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


def pair() -> tuple[socket.socket, socket.socket]:
    """Return two ends of a line that keeps messages apart."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
