"""First data of a cluster, made once at build time: a control plane starts twice as fast from it.

It holds what kube-apiserver makes in an empty etcd, and the operators' kinds: no secret, no node.
"""

import shutil
import tempfile
from pathlib import Path

from pytest_cre.controlplane.recipe import FIRST_DATA
from pytest_cre.controlplane.startup import PlaneSettings, Startup


def prepare(binaries: Path) -> None:
    """Start the API server once, let it settle, and keep its data beside the programs."""
    target = binaries / FIRST_DATA
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="pytest-cre-controlplane-") as name:
        startup = Startup(PlaneSettings(binaries=binaries, scenario=None), Path(name))
        try:
            _workshop, api = startup.serve_kinds()
            startup.wait("/readyz", lambda: api.answers("/readyz"))
        finally:
            startup.stop()
        shutil.copytree(Path(name) / "etcd", target)
