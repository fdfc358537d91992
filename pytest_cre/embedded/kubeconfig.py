"""The kubeconfig that a client needs; its appearance says that the cluster is ready."""

import base64
import json
import os
import tempfile
from pathlib import Path


def write_kubeconfig(path: Path, *, server: str, token: str, authority_pem: bytes) -> None:
    """Write the file in one step, readable by its owner only."""
    name = "pytest-cre-embedded"
    cluster = {
        "server": server,
        "certificate-authority-data": base64.b64encode(authority_pem).decode(),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}
        ],
        "current-context": name,
    }
    # JSON is YAML, and needs no library here. mkstemp makes the file with mode 0600.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(config, file, indent=1)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
