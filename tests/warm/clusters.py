"""Embedded clusters that a warm run starts: forks as well."""

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
from typing import NoReturn

CLUSTER = [sys.executable, "-m", "pytest_cre.embedded"]
PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


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
