"""A running control plane: kept alive, put to trouble by name, stopped in order."""

import shutil
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from pytest_cre.controlplane.api import Api, Refusal
from pytest_cre.controlplane.part import Part
from pytest_cre.controlplane.startup import RESTART_PAUSE_S, PlaneSettings, Startup
from pytest_cre.errors import ClusterProblem

__all__ = ["ControlPlane", "PlaneSettings"]

_TEND_S = 0.2


class ControlPlane:
    """One control plane in a private temporary folder. `with` starts and stops it.

    Parts that end by themselves are started again, as a kubelet would. Everything ends with the
    process that started it, even if that is killed. `part("kube-apiserver").kill()` and the like
    make trouble; `start()` of the same part ends it.
    """

    def __init__(self, settings: PlaneSettings) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pytest-cre-controlplane-"))
        self.audit_log = self.folder / "audit.log"
        self._startup = Startup(settings, self.folder)
        self._api: Api | None = None
        self._is_stopping = threading.Event()
        self._keeper: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def server(self) -> str:
        """Return the URL of the API server."""
        return self._startup.server

    @property
    def harness_kubeconfig(self) -> Path:
        """Return the kubeconfig of the account that the grants are for."""
        return self._startup.harness_kubeconfig

    @property
    def admin_kubeconfig(self) -> Path:
        """Return the kubeconfig of an administrator."""
        return self._startup.admin_kubeconfig

    @property
    def reached_s(self) -> dict[str, float]:
        """Return what was reached after how many seconds of the start."""
        return dict(self._startup.reached_s)

    @property
    def api(self) -> Api:
        """Return the administrator's access."""
        if self._api is None:
            raise RuntimeError("the control plane was not started")
        return self._api

    def is_ready(self) -> bool:
        """Return whether the API server answers and says that it is ready."""
        return self.api.answers("/readyz")

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return all parts, in the order they were started."""
        return tuple(self._startup.parts.values())

    def part(self, name: str) -> Part:
        """Return a part by its name, such as `etcd` or `kube-apiserver`."""
        return self._startup.parts[name]

    def start(self) -> None:
        """Start everything and return once workloads can run.

        Raises `ClusterProblem`, naming the logs that are left behind, when that cannot be.
        """
        try:
            self._api = self._startup.run()
        except (ClusterProblem, Refusal, ValueError, OSError) as problem:
            self.stop(keep_logs=True)
            words = " ".join(str(problem).split())
            raise ClusterProblem(f"{words} (logs: {self.folder / 'logs'})") from None
        except BaseException:
            self.stop()
            raise
        self._keeper = threading.Thread(target=self._keep, name="cre-controlplane", daemon=True)
        self._keeper.start()

    def stop(self, *, keep_logs: bool = False) -> None:
        """End everything, the last started first; remove the folder, or all of it but the logs."""
        self._startup.stop()
        # After them: what the keeper started dies with its thread.
        self._is_stopping.set()
        if self._keeper is not None:
            self._keeper.join()
            self._keeper = None
        kept = {"logs", "audit.log"} if keep_logs else set()
        for path in list(self.folder.iterdir()) if self.folder.exists() else ():
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
        if not kept:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _keep(self) -> None:
        """Start again what ended by itself."""
        while not self._is_stopping.wait(_TEND_S):
            for part in self.parts:
                part.tend(RESTART_PAUSE_S)
