"""A home for what tests start."""

import os
from pathlib import Path


def home_in(folder: Path) -> dict[str, str]:
    """Return an environment with its home in a folder, in which no cluster is configured."""
    kept = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    return {**kept, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
