"""What is built: the Go modules that lie beside this file, and what is corrected in them."""

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_cre.errors import UsageProblem

PROGRAMS = (
    "jobset",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubectl",
    "mpi-operator",
    "server",  # etcd: its module's root package has this name
    "trainer-controller-manager",
)
MODULES = ("kubernetes", "jobset-trainer", "mpi-operator")  # in the order they are built
KUBERNETES = "kubernetes"
OPERATORS = ("jobset", "mpi-operator", "trainer")
FIRST_DATA = "first-data"
FORMAT = 1  # of the folder that a build makes: raised when its contents change
_FOLDER = Path(__file__).with_name("modules")
_REQUIRED = re.compile(r"^(?:require )?\s*k8s\.io/kubernetes v(\d+\.\d+\.\d+)\b", re.MULTILINE)
_GO = re.compile(r"^go (\d+)\.(\d+)", re.MULTILINE)
_VERSION = re.compile(r"1\.\d{1,3}\.\d{1,3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A place that an operator takes from the machine, taken from its environment instead.

    Both programs expect to be alone in a container; here several may run at once.
    """

    module: str  # of MODULES
    path: str  # Go module path
    file: str
    old: str
    new: str


CORRECTIONS = (
    Correction(
        module="mpi-operator",
        path="github.com/kubeflow/mpi-operator",
        file="cmd/mpi-operator/app/server.go",
        old='fmt.Sprintf(":%d", healthCheckPort)',
        new='os.Getenv("MPI_OPERATOR_HEALTH_ADDRESS")',
    ),
    Correction(
        module="jobset-trainer",
        path="github.com/kubeflow/trainer/v2",
        file="pkg/util/cert/cert.go",
        old="CertDir:        certDir,",
        new='CertDir: os.TempDir() + "/k8s-webhook-server/serving-certs",',
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One set of programs to build."""

    files: Mapping[str, Mapping[str, str]]  # by module: go.mod and go.sum
    kubernetes: str  # version without the v
    is_pinned: bool  # whether go.mod says so itself

    @property
    def digest(self) -> str:
        """Return what tells this build from others."""
        content = {
            "corrections": [(each.path, each.file, each.new) for each in CORRECTIONS],
            "files": self.files,
            "format": FORMAT,
            "kubernetes": self.kubernetes,
            "machine": platform.machine(),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def go_version(self) -> tuple[int, int]:
        """Return the oldest Go that builds it."""
        found = [_GO.search(files["go.mod"]) for files in self.files.values()]
        return max((int(each[1]), int(each[2])) for each in found if each)


def read_recipe(kubernetes: str | None = None) -> Recipe:
    """Return the recipe as shipped, or for another version of Kubernetes."""
    files = {
        module: {
            name: (_FOLDER / module / name).read_text(encoding="utf-8")
            for name in ("go.mod", "go.sum")
        }
        for module in MODULES
    }
    pinned = _REQUIRED.search(files[KUBERNETES]["go.mod"])
    if pinned is None:
        raise UsageProblem(f"{_FOLDER / KUBERNETES / 'go.mod'}: requires no k8s.io/kubernetes")
    version = (kubernetes or pinned[1]).removeprefix("v")
    if not _VERSION.fullmatch(version):
        raise UsageProblem(f"--kubernetes: must be a version such as {pinned[1]}, got {version!r}")
    return Recipe(files=files, kubernetes=version, is_pinned=version == pinned[1])


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the user's folder for what is built."""
    given = environ.get("XDG_CACHE_HOME")
    base = Path(given) if given and Path(given).is_absolute() else Path.home() / ".cache"
    return base / "pytest-cre" / "controlplane"


def built_folder(recipe: Recipe, environ: Mapping[str, str]) -> Path:
    """Return where the recipe's programs are once they are built."""
    return cache_folder(environ) / recipe.digest


def missing_programs(folder: Path) -> tuple[str, ...]:
    """Return the programs and manifests that a folder lacks."""
    needed = (*PROGRAMS, *(f"manifests/{name}.json" for name in OPERATORS))
    return tuple(name for name in needed if not (folder / name).is_file())


def check_programs(folder: Path) -> None:
    """Raise `UsageProblem` when a folder does not hold a whole control plane."""
    missing = missing_programs(folder)
    if not missing:
        return
    if not folder.is_dir():
        raise UsageProblem(
            f"no control plane in {folder}; build it with: pytest-cre controlplane build "
            "(once, about 11 minutes on 2 cores)"
        )
    raise UsageProblem(
        f"{folder} lacks {', '.join(missing)}; make a whole one with: "
        f"pytest-cre controlplane build --dir {folder}"
    )
