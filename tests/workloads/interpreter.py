"""An interpreter that has torch, and imports it in no time."""

import atexit
import functools
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.warm import with_torch

TIMEOUT_S = 120


@functools.cache
def torch_python() -> str:
    """Return an interpreter that imports torch in no time, made of this one or else the system's."""
    looks = "import importlib.util as u; raise SystemExit(not u.find_spec('torch'))"
    for python in (sys.executable, "/usr/bin/python3"):
        if Path(python).exists():
            found = subprocess.run([python, "-c", looks], check=False, timeout=TIMEOUT_S)
            if found.returncode == 0:
                return warm(python)
    pytest.skip("no torch: neither this Python nor /usr/bin/python3 can import it")


def warm(python: str) -> str:
    """Start the server of `tests.warm.with_torch`; return the program that asks it."""
    folder = tempfile.TemporaryDirectory(prefix="torch-python-")
    program, address = Path(folder.name, "python"), f"{folder.name}/door"
    server = subprocess.Popen(
        [python, with_torch.__file__, "serve", address],
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # read when torch is imported
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(folder.cleanup)
    atexit.register(server.communicate)
    assert server.stdout.readline() == "ready\n"
    asks = shlex.join([python, "-IS", with_torch.__file__, "ask", address, str(program)])
    program.write_text(f'#!/bin/sh\nexec {asks} "$@"\n')
    program.chmod(0o755)
    return str(program)
