"""`python -m tests.warm`: the warm interpreter. It is asked through its standard input."""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile

import pytest

from tests.warm.children import ForkingPopen
from tests.warm.runs import pair

WARM_UP = ("-m", "certification", "--pyargs", "pytest_cre.suites", "--collect-only", "-q")
# What of other packages is imported only when it is needed.
LATE = (
    *("kubernetes.config", "kubernetes.client.rest", "kubernetes.client.api_client"),
    *("cryptography.x509", "cryptography.hazmat.primitives.serialization"),
    *("cel_expr_python.cel", "junit_xml", "tabulate", "xml.dom.minidom"),
)
# Programs of their own, some of which need what is not installed here.
APART = ("controlplane", "suites", "workloads")
PR_SET_PDEATHSIG = 1


def warm_up() -> None:
    """Import what a certification needs, the plugin as pytest itself does."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        code = pytest.main([*WARM_UP, "-p", "no:cacheprovider"])
    assert code == pytest.ExitCode.OK, code
    package = importlib.import_module("pytest_cre")
    for name in LATE:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, "pytest_cre."):
        parts = module.name.split(".")
        if parts[1] not in APART and parts[-1] != "__main__":
            importlib.import_module(module.name)
    store = importlib.import_module("pytest_cre.evidence.store")
    for adapter in (store._group_adapter, store._workflow_adapter):
        adapter()
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


if __name__ == "__main__":
    own = socket.socket(fileno=os.dup(0))
    warm_up()
    serve(own)
