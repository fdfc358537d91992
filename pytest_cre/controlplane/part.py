"""One program of the control plane: started, watched, stopped, and put to trouble by name."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_TETHER = Path(__file__).with_name("tether.py")
_KILL_PATIENCE_S = 10.0
# A word of most loggers, or the mark of Kubernetes' own; what follows may be a stack or its usage.
_ERROR = re.compile(r"\b(error|fatal|panic)\b|^[EF]\d{4} ", re.IGNORECASE)


class Part:
    """A program that lives no longer than the thread that started it."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        folder: Path,
        env: Mapping[str, str],
        stop_patience_s: float,
    ) -> None:
        self.name = name
        self.command = tuple(command)
        self.log = folder / "logs" / f"{name}.log"
        self.is_wanted = False  # a part that ends while it is wanted is started again
        self.deaths = 0  # times that it ended while it was wanted
        self.started_s = 0.0  # monotonic
        self._folder = folder
        self._env = dict(env)
        self._stop_patience_s = stop_patience_s
        self._process: subprocess.Popen[bytes] | None = None
        self._is_suspended = False
        self._lock = threading.RLock()

    @property
    def pid(self) -> int | None:
        """Return its process id, None when it does not run."""
        return self._process.pid if self._process and self.is_running() else None

    def is_running(self) -> bool:
        """Return whether its process lives; a suspended one does."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, with the same arguments, ports and data as before; does nothing if it runs."""
        with self._lock:
            self.is_wanted = True
            if self.is_running():
                return
            tether = [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid())]
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    [*tether, *self.command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self._folder,
                    env=self._env,
                    start_new_session=True,  # Ctrl-C in a terminal is for us, not for them
                )
            self.started_s = time.monotonic()
            self._is_suspended = False

    def kill(self) -> None:
        """End it as power loss would, and keep it down until `start`."""
        self._end(signal.SIGKILL, _KILL_PATIENCE_S)

    def stop(self) -> None:
        """End it in order; one that takes too long is killed."""
        self._end(signal.SIGTERM, self._stop_patience_s)

    def suspend(self) -> None:
        """Let it hang: it keeps its sockets and answers nobody until `resume`."""
        with self._lock:
            self._signal(signal.SIGSTOP)
            self._is_suspended = True

    def resume(self) -> None:
        """Let it go on after `suspend`."""
        with self._lock:
            self._signal(signal.SIGCONT)
            self._is_suspended = False

    def tend(self, pause_s: float) -> None:
        """Start it again if it ended by itself, not sooner than this long after its last start."""
        with self._lock:
            if not self.is_wanted or self.is_running():
                return
            if time.monotonic() - self.started_s >= pause_s:
                self.deaths += 1
                self.start()

    def exit_words(self) -> str:
        """Return how it ended, with the last line of its log that tells of an error, else the last."""
        code = self._process.returncode if self._process else None
        lines = self.log.read_text(errors="replace").split("\n") if self.log.exists() else []
        said = [line.strip() for line in lines if line.strip()] or ["it wrote nothing"]
        last = next((line for line in reversed(said) if _ERROR.search(line)), said[-1])
        return f"{self.name} ended with code {code}: {last[:400]}"

    def _end(self, number: signal.Signals, patience_s: float) -> None:
        with self._lock:
            self.is_wanted = False
            if self._process is None:
                return
            if self._is_suspended:
                self.resume()
            self._signal(number)
            try:
                self._process.wait(patience_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.is_running():
            self._process.send_signal(number)
