"""Containers that run as real processes on this machine, where a scenario asks for it.

This executes the container's command with the rights of whoever started the simulator, so it
happens only for containers that a scenario names.
"""

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from pytest_cre.ports import hold_port

if TYPE_CHECKING:
    from pytest_cre.simulator.world import ContainerRun

_GRACE_S = 5.0
_CHUNK_BYTES = 64 * 1024
_PORT_FLAGS = ("--master-port", "--master_port")
_NOT_FOUND_EXIT = 127
# Output of local ranks as it comes. That is the default, but torch 1.13, which Debian 12 has, fails
# on it under Python 3.11; naming a rank that is not there says the same.
_AS_IT_COMES = ("-r", "9:1", "-t", "9:1")

# The kernel ends the process when the simulator dies, even by SIGKILL.
_LEASH = (
    "import ctypes, os, sys\nctypes.CDLL(None).prctl(1, 9)\nos.execvp(sys.argv[1], sys.argv[1:])\n"
)


async def run_process(run: "ContainerRun", python: str) -> int:
    """Run the container's command; gives its exit code. Cancelling ends it and all it started."""
    with TemporaryDirectory(prefix="pytest-cre-pod-") as folder:
        root = Path(folder)
        _write_files(run.call.files, root)
        argv, env = _local_command(run, python, root)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                _LEASH,
                *argv,
                cwd=root,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as problem:
            run.write(f"simulator: cannot start {argv[0]}: {problem.strerror}", "stderr")
            return _NOT_FOUND_EXIT
        try:
            await asyncio.gather(
                _copy(run, process.stdout, "stdout"), _copy(run, process.stderr, "stderr")
            )
            code = await process.wait()
        finally:
            await _end(process)
    return code if code >= 0 else 128 - code


async def _copy(
    run: "ContainerRun", source: asyncio.StreamReader | None, stream: Literal["stdout", "stderr"]
) -> None:
    while source is not None and (data := await source.read(_CHUNK_BYTES)):
        run.log.write(data, stream)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process and whatever is left of its group."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.returncode is None:
        await process.wait()


def _write_files(files: Mapping[str, bytes], root: Path) -> None:
    for path in sorted(files):
        target = root / path.lstrip("/")
        if not target.resolve().is_relative_to(root.resolve()):
            continue  # a key such as ../x would leave the folder
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(files[path])


def _local_command(
    run: "ContainerRun", python: str, root: Path
) -> tuple[list[str], dict[str, str]]:
    """Return command and environment as they work here: paths, names, ports, no GPU."""
    local = _Localizer(run, root)
    words = list(run.call.argv)
    first = words[0].rpartition("/")[2] if words else "true"
    if first == "torchrun":
        words = [python, "-m", "torch.distributed.run", *_AS_IT_COMES, *_torchrun_words(words[1:])]
    elif re.fullmatch(r"python[0-9.]*", first):
        words[0] = python
    argv = [local.text(word) for word in words]
    for position, word in enumerate(argv):
        flag, equals, value = word.partition("=")
        if flag in _PORT_FLAGS and equals and value.isdigit():
            argv[position] = f"{flag}={local.port(int(value))}"
        elif flag in _PORT_FLAGS and not equals and argv[position + 1 : position + 2]:
            value = argv[position + 1]
            argv[position + 1] = str(local.port(int(value))) if value.isdigit() else value
    env = {name: local.text(value) for name, value in run.call.env.items()}
    if env.get("MASTER_PORT", "").isdigit():
        env["MASTER_PORT"] = str(local.port(int(env["MASTER_PORT"])))
    return argv, {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        **env,
        "HOME": str(root),
        "TMPDIR": str(root),
    }


def _torchrun_words(words: Sequence[str]) -> list[str]:
    """Return arguments with underscores in the options before the script: old versions know no other."""
    known: list[str] = []
    for position, word in enumerate(words):
        if word.endswith(".py"):
            return [*known, *words[position:]]
        flag, equals, value = word.partition("=")
        if flag.startswith("--"):
            flag = "--" + flag[2:].replace("-", "_")
        known.append(flag + equals + value)
    return known


class _Localizer:
    """Puts this machine's paths, addresses and ports in place of the cluster's."""

    def __init__(self, run: "ContainerRun", root: Path) -> None:
        self.run = run
        self.folders = sorted({str(Path(path).parent) for path in run.call.files}, key=len)[::-1]
        self.root = root
        subdomain = re.escape(run.subdomain)
        self.names = (
            re.compile(
                rf"[-a-z0-9]+\.{subdomain}(\.[-a-z0-9]+(\.svc(\.[-a-z0-9.]+)?)?)?(?![-a-z0-9])"
            )
            if run.subdomain
            else None
        )

    def text(self, word: str) -> str:
        """Return a word with paths of mounts and host names of pods replaced."""
        for folder in self.folders:
            inside = str(self.root) + folder
            pattern = rf"(?<![\w./-]){re.escape(folder)}(?=/|$)"
            word = re.sub(pattern, lambda _: inside, word)  # noqa: B023 - called at once
        return self.names.sub("127.0.0.1", word) if self.names else word

    def port(self, wanted: int) -> int:
        """Return the free port that stands for a port of the pods that work together."""
        ports = self.run.world.ports
        key = f"{self.run.owner_uid}:{wanted}"
        if key not in ports:
            with hold_port() as held:
                ports[key] = held.getsockname()[1]
        return ports[key]
