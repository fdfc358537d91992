"""Building the programs: once per recipe and user, safe when two builds start at once."""

import fcntl
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pytest_cre.controlplane.gotool import find_go, go_environment
from pytest_cre.controlplane.manifests import SOURCES, write_manifests
from pytest_cre.controlplane.prepared import prepare
from pytest_cre.controlplane.recipe import (
    CORRECTIONS,
    KUBERNETES,
    MODULES,
    Correction,
    Recipe,
    built_folder,
    cache_folder,
    missing_programs,
)
from pytest_cre.errors import ClusterProblem

_STAGED = re.compile(r"^\s*(k8s\.io/\S+) => \./staging/\S+", re.MULTILINE)
_FETCHING = ("go: downloading ", "go: finding ", "go: found ")
_TICK_S = 20.0


def build(
    recipe: Recipe,
    *,
    target: Path | None,
    environ: Mapping[str, str],
    tell: Callable[[str], None],
) -> Path:
    """Return the folder with the programs; builds them first where they are not.

    `target` is the folder to make, None the user's cache. `tell` gets lines of progress. Raises
    `UsageProblem` where there is no Go, `ClusterProblem` with the log's place when a build fails.
    """
    folder = target or built_folder(recipe, environ)
    if _is_done(folder, recipe):
        return folder
    cache = cache_folder(environ)
    with _locked(cache, folder, tell):
        if _is_done(folder, recipe):  # somebody else built it while we waited
            return folder
        go = find_go(recipe.go_version, environ)
        log = cache / f"{recipe.digest}.log"
        tell(f"building Kubernetes {recipe.kubernetes} and the operators, once; log: {log}")
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            with log.open("wb") as output:
                _Build(recipe, go, scratch, environ, output, tell).run()
            shutil.rmtree(scratch / "work")
            if folder.exists():
                shutil.rmtree(folder)
            scratch.rename(folder)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    return folder


def _is_done(folder: Path, recipe: Recipe) -> bool:
    try:
        made_from = json.loads((folder / "recipe.json").read_bytes())
    except (OSError, ValueError):
        return False
    return made_from == {"digest": recipe.digest} and not missing_programs(folder)


@contextmanager
def _locked(cache: Path, folder: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a folder; the kernel lets go of it when we die."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{folder.name}.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("another build is running; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class _Build:
    """One build into an empty folder."""

    def __init__(
        self,
        recipe: Recipe,
        go: Path,
        target: Path,
        environ: Mapping[str, str],
        log: IO[bytes],
        tell: Callable[[str], None],
    ) -> None:
        self.recipe, self.go, self.target = recipe, go, target
        self.work = target / "work"
        self.log, self.tell = log, tell
        self.work.mkdir()
        self.env = go_environment(environ, scratch=self.work, cache=cache_folder(environ))

    def run(self) -> None:
        """Build every module, copy the operators' manifests, prepare the first data."""
        for number, module in enumerate(MODULES, 1):
            begun_s = time.monotonic()
            place = f"{number}/{len(MODULES)} {module}"
            self._lay_out(module)
            for operator, source in SOURCES.items():
                if source.module == module:
                    folder = self._folder_of(module, source.path)
                    write_manifests(self.target / "manifests", operator, folder)
            for correction in CORRECTIONS:
                if correction.module == module:
                    self._correct(self.work / module, correction)
            flags = f"-ldflags={self._flags(module)}"
            self._go(module, place, "build", "-trimpath", flags, "-o", f"{self.target}/", "tool")
            self.tell(f"{place}: built in {time.monotonic() - begun_s:.0f} s")
        prepare(self.target)
        (self.target / "recipe.json").write_text(json.dumps({"digest": self.recipe.digest}))

    def _lay_out(self, module: str) -> None:
        """Write the module's files, for another version of Kubernetes where that is asked for."""
        folder = self.work / module
        folder.mkdir()
        for name, text in self.recipe.files[module].items():
            (folder / name).write_text(text, encoding="utf-8")
        if module == KUBERNETES and not self.recipe.is_pinned:
            self._change_version(folder)

    def _change_version(self, folder: Path) -> None:
        """Require another Kubernetes: its staging modules are those that its own go.mod names."""
        version = f"v{self.recipe.kubernetes}"
        found = self._download(KUBERNETES, f"k8s.io/kubernetes@{version}")
        staged = _STAGED.findall(Path(found["GoMod"]).read_text(encoding="utf-8"))
        staging_version = f"v0.{self.recipe.kubernetes.partition('.')[2]}"
        text = self.recipe.files[KUBERNETES]["go.mod"]
        go_line = re.search(r"^go .*$", text, re.MULTILINE)
        tools = re.search(r"^tool \((.*?)^\)", text, re.MULTILINE | re.DOTALL)
        if not staged or go_line is None or tools is None:
            raise ClusterProblem(f"k8s.io/kubernetes {version}: its go.mod is not understood")
        replaces = "".join(f"\t{name} => {name} {staging_version}\n" for name in sorted(staged))
        (folder / "go.mod").write_text(
            f"module controlplane/kubernetes\n\n{go_line[0]}\n\n"
            f"require k8s.io/kubernetes {version}\n\nreplace (\n{replaces})\n\n{tools[0]}\n"
        )
        (folder / "go.sum").unlink()
        self._go(KUBERNETES, f"go mod tidy for Kubernetes {version}", "mod", "tidy")

    def _correct(self, folder: Path, correction: Correction) -> None:
        """Build a copy of a module that has one expression replaced."""
        source = self._folder_of(correction.module, correction.path)
        copy = folder / "corrected"
        shutil.copytree(source, copy, copy_function=shutil.copyfile)
        for path in (copy, *(each for each in copy.rglob("*") if each.is_dir())):
            path.chmod(0o755)  # as in Go's cache, folders are read-only
        file = copy / correction.file
        text = file.read_text(encoding="utf-8")
        if text.count(correction.old) != 1:
            raise ClusterProblem(
                f"{correction.path} {correction.file}: no longer says {correction.old!r} once"
            )
        file.write_text(text.replace(correction.old, correction.new), encoding="utf-8")
        self._go(
            correction.module,
            f"correcting {correction.path}",
            "mod",
            "edit",
            f"-replace={correction.path}=./corrected",
        )

    def _flags(self, module: str) -> str:
        if module != KUBERNETES:
            return "-s -w"
        version = self.recipe.kubernetes
        major, minor, _patch = version.split(".")
        name = "-X k8s.io/component-base/version.git"
        return f"-s -w {name}Version=v{version} {name}Major={major} {name}Minor={minor}"

    def _folder_of(self, module: str, path: str) -> Path:
        return Path(self._download(module, path)["Dir"])

    def _download(self, module: str, path: str) -> dict[str, str]:
        done = subprocess.run(
            [self.go, "mod", "download", "-json", path],
            cwd=self.work / module,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=self.log,
            check=False,
        )
        if done.returncode != 0:
            raise self._failure(f"go mod download {path}", done.returncode)
        found: dict[str, str] = json.loads(done.stdout)
        return found

    def _go(self, module: str, what: str, *arguments: str) -> None:
        """Run Go in a module's folder; tells now and then that it still runs."""
        process = subprocess.Popen(
            [self.go, *arguments],
            cwd=self.work / module,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        begun_s = time.monotonic()
        try:
            while True:
                try:
                    code = process.wait(_TICK_S)
                    break
                except subprocess.TimeoutExpired:
                    self.tell(f"{what}: {time.monotonic() - begun_s:.0f} s ...")
        except BaseException:
            process.terminate()
            process.wait()
            raise
        if code != 0:
            raise self._failure(what, code)

    def _failure(self, what: str, code: int) -> ClusterProblem:
        """Return the problem with what Go said last, beside what it fetched."""
        path = Path(self.log.name)
        lines = path.read_text(errors="replace").splitlines()
        said = [each.strip() for each in lines if each and not each.startswith(_FETCHING)]
        last = said[-1][:300] if said else "it said nothing"
        return ClusterProblem(f"{what} ended with code {code}: {last} (log: {path})")
