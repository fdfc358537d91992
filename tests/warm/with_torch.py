"""An interpreter that has imported torch, and a program that stands for it as `python` does.

Importing torch takes longer than all that the tests do with it. `serve` imports it once and forks for
each `ask`, which hands over its arguments, folder, environment and streams, and ends as the fork does.
Needs no other package: it runs under the interpreter that has torch, often the system's.
"""

import atexit
import contextlib
import ctypes
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import traceback

PR_SET_PDEATHSIG = 1
FORWARDED = (signal.SIGINT, signal.SIGTERM)


def serve(address: str) -> None:
    """Fork for whoever asks; end with standard input."""
    import torch.distributed.run  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(address)
        door.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            ready, _, _ = select.select([door, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            line, _ = door.accept()
            if os.fork() == 0:
                door.close()
                keep(line)
            line.close()


def keep(line: socket.socket) -> None:
    """Fork once more and be what lies between program and asker: signals one way, the end the other."""
    die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, streams, _, _ = socket.recv_fds(line, 1 << 20, 3)
    pid = os.fork()
    if pid == 0:
        line.close()
        be(json.loads(message), streams)
    for each in streams:
        os.close(each)
    ended = os.pidfd_open(pid)
    while True:
        ready, _, _ = select.select([line, ended], [], [])
        if ended in ready:
            line.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
            os._exit(0)
        told = line.recv(64)
        with contextlib.suppress(ProcessLookupError):
            if told:
                os.kill(pid, int(told))
            else:  # who asked was killed
                os.killpg(pid, signal.SIGKILL)
                os._exit(0)


def be(asked: dict, streams: list[int]) -> None:
    """Be the interpreter that was asked for."""
    os.setsid()
    die_with_parent()
    for target, source in enumerate(streams):
        os.dup2(source, target)
        os.close(source)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.executable = asked["executable"]
    code = 1
    try:
        run(asked["arguments"])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
    with contextlib.suppress(BaseException):
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def run(arguments: list[str]) -> None:
    """Run what a command line names: a module, a text or a script."""
    if arguments[0] == "-u":
        sys.stdout.reconfigure(write_through=True)
        arguments = arguments[1:]
    match arguments:
        case ["-m", module, *rest]:
            sys.argv, sys.path[0] = [module, *rest], ""
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", text, *rest]:
            sys.argv, sys.path[0] = ["-c", *rest], ""
            exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102
        case [script, *_]:
            sys.argv, sys.path[0] = arguments, os.path.dirname(script)  # noqa: PTH120
            runpy.run_path(script, run_name="__main__")


def ask(address: str, executable: str, arguments: list[str]) -> None:
    """Have a program run, and end as it does."""
    place = {"cwd": os.getcwd(), "env": dict(os.environ)}  # noqa: PTH109 - pathlib takes long
    asked = {"executable": executable, "arguments": arguments, **place}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.connect(address)
        socket.send_fds(line, [json.dumps(asked).encode()], [0, 1, 2])
        for signum in FORWARDED:
            signal.signal(signum, lambda number, _: line.send(str(number).encode()))
        code = int(line.recv(64) or 1)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        ask(sys.argv[2], sys.argv[3], sys.argv[4:])
