"""Interpreters that a warm run starts, embedded clusters and workers of xdist: forks as well."""

import ast
import atexit
import functools
import gc
import importlib
import inspect
import logging
import os
import signal
import subprocess
import sys
import traceback
import warnings
import weakref
from collections.abc import Callable
from typing import NoReturn

from execnet.gateway_io import popen_bootstrapline

CLUSTER = [sys.executable, "-m", "pytest_cre.embedded"]
WORKER = [sys.executable, "-u", "-c", popen_bootstrapline]
PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


class ForkingPopen(subprocess.Popen):
    """Forks for these, and starts everything else as ever."""

    def _execute_child(self, args, *rest):
        if list(args[:3]) == CLUSTER:
            program = functools.partial(be_cluster, args[3:])
        elif list(args) == WORKER:
            program = be_worker
        else:
            super()._execute_child(args, *rest)
            return
        given = inspect.signature(super()._execute_child).bind(args, *rest).arguments
        self.pid = os.fork()
        if self.pid == 0:
            streams = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
            be(program, streams, new_session=given["start_new_session"])
        self._child_created = True
        self._close_pipe_fds(*(given[name] for name in PIPES))


def be(program: Callable[[], int], streams: list[int], *, new_session: bool) -> NoReturn:
    """Be an interpreter that runs this and ends, whatever pytest has made of this process."""
    gc.freeze()  # what is pytest's is never looked at again
    weakref.finalize._registry.clear()  # folders and the like are the parent's to remove
    atexit._clear()
    code = 1
    try:
        if new_session:
            os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for target, source in enumerate(streams):
            if source != -1:
                os.dup2(source, target)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, closefd=False)  # noqa: SIM115
            for number, mode in enumerate("rww")
        )
        logging.getLogger().handlers.clear()
        warnings.resetwarnings()
        code = program()
        atexit._run_exitfuncs()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def be_cluster(arguments: list[str]) -> int:
    """Be `python -m pytest_cre.embedded`."""
    return importlib.import_module(f"{CLUSTER[-1]}.__main__").main(arguments)


def be_worker() -> int:
    """Be what execnet tells this process to be."""
    exec(ast.literal_eval(sys.stdin.readline()), {"__name__": "__main__"})  # noqa: S102
    return 0
