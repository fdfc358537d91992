"""Which process of a run this is: the only one, or a worker that shares its cluster."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Self

MAIN = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A process of a run. Only `main` starts a cluster, sweeps all and writes the reports."""

    run_id: str
    process: str = MAIN  # a worker's name, such as `gw0`
    parent_pid: int | None = None  # of a worker
    folder: Path | None = None  # of a worker: shared by all processes of the run
    kubeconfig: Path | None = None  # of a worker: the local cluster that `main` has started

    @classmethod
    def new(cls) -> Self:
        """Return the seat of a run that begins."""
        return cls(run_id=secrets.token_hex(5))

    @property
    def is_worker(self) -> bool:
        """Return whether another process of the run sweeps and reports."""
        return self.parent_pid is not None

    @property
    def is_orphan(self) -> bool:
        """Return whether this is a worker whose run has died around it."""
        return self.is_worker and os.getppid() != self.parent_pid

    @property
    def holder(self) -> str:
        """Return the name under which this process, and no other, holds the lease."""
        return f"{self.run_id}-{self.process}"
