"""Run a command that the kernel kills when its parent dies, however the parent dies.

`python -I -S tether.py PARENT_PID COMMAND [ARGUMENT...]`: becomes the command. A program of its own,
because code between fork and exec is unsafe in a process with threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask for the signal, see that the parent still lives, and become the command."""
    parent, *command = sys.argv[1:]
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != int(parent):  # it died before we asked
        sys.exit("the parent is gone")
    try:
        os.execv(command[0], command)  # noqa: S606
    except OSError as problem:
        sys.exit(f"{command[0]}: {problem.strerror}")


if __name__ == "__main__":
    main()
