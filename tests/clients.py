"""The supported versions of the official client, each in a folder of its own.

`python -m tests.clients` runs the adapter's tests against every one of them. A version is installed
once, into the user's cache folder, and taken from there through PYTHONPATH.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("35.0.0", "36.0.3", "37.0.2")
TALKING = ("client", "contact", "inventory", "logs", "watch")  # the tests that open connections
TIMEOUT_S = 300


def folder_of(version: str) -> Path:
    """Return the folder that holds a version and what it needs; installs it the first time."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache / "pytest-cre" / "clients" / f"{version}-{python}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        target = Path(unfinished) / "client"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
        subprocess.run(
            [*pip, "--disable-pip-version-check", f"kubernetes=={version}"],
            check=True,
            timeout=TIMEOUT_S,
        )
        target.replace(folder)
    return folder


def environment(version: str) -> dict[str, str]:
    """Return the environment in which Python takes this version of the client."""
    paths = [str(folder_of(version)), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def installed(version: str) -> str:
    """Return the version that Python really imports in that environment."""
    done = subprocess.run(
        [sys.executable, "-c", "import kubernetes; print(kubernetes.__version__)"],
        env=environment(version),
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    return done.stdout.strip()


def main() -> int:
    """Run the tests against each version; 1 when any of them failed."""
    failed = []
    for version in VERSIONS:
        sys.stdout.write(f"kubernetes {installed(version)}\n")
        sys.stdout.flush()
        files = [f"tests/cluster/test_{name}.py" for name in TALKING]
        command = [sys.executable, "-m", "pytest", *files, "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(
            command, cwd=ROOT, env=environment(version), check=False, timeout=TIMEOUT_S
        )
        if done.returncode != 0:
            failed.append(version)
    sys.stdout.write(f"failed: {', '.join(failed)}\n" if failed else "all passed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
