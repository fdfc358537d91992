"""What one run was asked to do: command line options and ini settings, read into one frozen value."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast, get_args

import pytest

from pytest_cre.catalog.entry import WorkloadKind
from pytest_cre.errors import UsageProblem
from pytest_cre.judge.missing import MissingLimit, SimulatedBy

ClusterChoice = Literal["embedded", "controlplane", "kubernetes"]
Keep = Literal["never", "failed", "always"]

CLUSTERS: tuple[ClusterChoice, ...] = ("embedded", "controlplane", "kubernetes")
FOLDERS = ("cre_evidence", "cre_save_recording")
DEFAULT_SCENARIO = "h100-8"
SERVICE_ACCOUNT_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one run was asked to do."""

    cluster: ClusterChoice
    controlplane_dir: Path | None = None  # programs of the genuine control plane; None: as built
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    catalogs: tuple[Path, ...] = ()  # besides the shipped one
    certification_file: Path | None = None  # upstream's Certification
    workload_file: Path | None = None  # upstream's WorkloadRun
    profiles: tuple[Path, ...] = ()  # besides the shipped ones
    architecture: str | None = None
    platform: str | None = None
    site_file: Path | None = None
    simulated_by: SimulatedBy = "scenario"
    options: Mapping[str, str] = field(default_factory=dict)
    scale: str | None = None
    kind: WorkloadKind | None = None
    nodes: tuple[str, ...] = ()
    node_selector: str = ""
    max_nodes: int | None = None
    deadline_s: float | None = None  # of the whole run
    gpu_minutes: float | None = None
    evidence_dir: Path | None = None
    json_file: Path | None = None
    junit_file: Path | None = None
    html_file: Path | None = None
    recording_dir: Path | None = None
    missing_limit: MissingLimit = "skip"
    keep: Keep = "never"
    accepted_exclusions: tuple[str, ...] = ()
    scenario: str = DEFAULT_SCENARIO
    simulated_seed: int | None = None

    def reported(self) -> dict[str, object]:
        """Return the settings that a result depends on, for the report."""
        return {
            "architecture": self.architecture,
            "platform": self.platform,
            "site": str(self.site_file) if self.site_file else None,
            "simulated_by": self.simulated_by,
            "options": dict(sorted(self.options.items())),
            "certification": str(self.certification_file) if self.certification_file else None,
            "workload": str(self.workload_file) if self.workload_file else None,
            "scale": self.scale,
            "kind": self.kind,
            "nodes": list(self.nodes),
            "node_selector": self.node_selector,
            "max_nodes": self.max_nodes,
            "deadline_s": self.deadline_s,
            "gpu_minutes": self.gpu_minutes,
            "missing_limit": self.missing_limit,
            "accepted_exclusions": sorted(self.accepted_exclusions),
            "scenario": None if self.cluster == "kubernetes" else self.scenario,
            "simulated_seed": self.simulated_seed,
        }


def read_settings(config: pytest.Config, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of this run; raises `UsageProblem` in one line."""
    from pytest_cre.evidence.model import EXCLUSION_REASONS  # here: every pytest run loads us

    get = config.getoption

    def either(name: str) -> str | None:
        value = get(name) if get(name) is not None else config.getini(name)
        return cast("str | None", value) or None

    def choice(name: str, choices: Sequence[str], default: str) -> str:
        value = either(name) or default
        if value not in choices:
            raise UsageProblem(
                f"{name}: unknown value {value!r} in the ini file; choices: {', '.join(choices)}"
            )
        return value

    kubeconfig = cast("str | None", get("cre_kubeconfig"))
    given = either("cre_cluster")
    if given is not None and given not in CLUSTERS:
        raise UsageProblem(
            f"cre_cluster: unknown value {given!r} in the ini file; choices: {', '.join(CLUSTERS)}"
        )
    controlplane_dir = cast("str | None", get("cre_controlplane"))
    if get("cre_cluster") is None:  # naming a kubeconfig or a folder of programs is a choice
        given = "kubernetes" if kubeconfig else "controlplane" if controlplane_dir else given
    cluster: ClusterChoice = given or choose_cluster(os.environ if environ is None else environ)
    for name in ("cre_kubeconfig", "cre_context"):
        if get(name) and cluster != "kubernetes":
            flag = "--" + name.replace("_", "-")
            raise UsageProblem(f"{flag} belongs to --cre-cluster kubernetes, not to {cluster}")
    if controlplane_dir and cluster != "controlplane":
        raise UsageProblem(
            f"--cre-controlplane belongs to --cre-cluster controlplane, not to {cluster}"
        )
    if get("cre_scenario") and cluster == "kubernetes":
        raise UsageProblem(
            "--cre-scenario belongs to --cre-cluster embedded or controlplane, not to kubernetes"
        )
    if kubeconfig and not Path(kubeconfig).is_file():
        raise UsageProblem(f"--cre-kubeconfig: no such file: {kubeconfig}")

    def paths(name: str) -> tuple[Path, ...]:
        found = (*(Path(text) for text in get(name)), *config.getini(name))
        for path in found:
            if not path.exists():
                raise UsageProblem(f"--{name.replace('_', '-')}: no such file or folder: {path}")
        return found

    def file(name: str) -> Path | None:
        text = cast("str | None", get(name))
        path = Path(text).absolute() if text else None
        flag = "--" + name.replace("_", "-")
        if path is not None and path.is_dir() and name not in FOLDERS:
            raise UsageProblem(f"{flag}: is a folder, not a file: {path}")
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as problem:
                raise UsageProblem(
                    f"{flag}: {path.parent} cannot be made: {problem.strerror}"
                ) from None
            check_writable(flag, path, is_folder=name == "cre_evidence")
        return path

    for reason in get("cre_accept_excluded"):
        if reason not in EXCLUSION_REASONS:
            raise UsageProblem(
                f"--cre-accept-excluded: unknown reason {reason!r}; "
                f"choices: {', '.join(EXCLUSION_REASONS)}"
            )

    def existing(name: str, text: str | None) -> Path | None:
        if text and not Path(text).is_file():
            raise UsageProblem(f"--{name.replace('_', '-')}: no such file: {text}")
        return Path(text) if text else None

    site_file = existing("cre_site", either("cre_site"))
    certification_file = existing("cre_certification", get("cre_certification"))
    workload_file = existing("cre_workload", get("cre_workload"))
    if certification_file is not None and workload_file is not None:
        raise UsageProblem("--cre-certification and --cre-workload exclude each other; give one")
    recording_dir, evidence_dir = file("cre_save_recording"), file("cre_evidence")
    if recording_dir is not None:
        check_recording_dir(recording_dir, evidence_dir)

    return Settings(
        cluster=cluster,
        controlplane_dir=Path(controlplane_dir).absolute() if controlplane_dir else None,
        kubeconfig=kubeconfig,
        context=get("cre_context"),
        namespace=either("cre_namespace"),
        catalogs=paths("cre_catalog"),
        certification_file=certification_file,
        workload_file=workload_file,
        profiles=paths("cre_profiles"),
        architecture=get("cre_arch"),
        platform=either("cre_platform"),
        site_file=site_file,
        simulated_by=cast(
            "SimulatedBy", choice("cre_simulated_by", get_args(SimulatedBy), "scenario")
        ),
        options=dict(get("cre_option")),
        scale=get("cre_scale"),
        kind=get("cre_kind"),
        nodes=tuple(get("cre_nodes")),
        node_selector=either("cre_node_selector") or "",
        max_nodes=get("cre_max_nodes"),
        deadline_s=get("cre_deadline"),
        gpu_minutes=get("cre_gpu_minutes"),
        evidence_dir=evidence_dir,
        json_file=file("cre_json"),
        junit_file=file("cre_junit"),
        html_file=file("cre_html"),
        recording_dir=recording_dir,
        missing_limit=cast(
            "MissingLimit", choice("cre_missing_limit", get_args(MissingLimit), "skip")
        ),
        keep=cast("Keep", choice("cre_keep", ("never", "failed", "always"), "never")),
        accepted_exclusions=tuple(get("cre_accept_excluded")),
        scenario=either("cre_scenario") or DEFAULT_SCENARIO,
        simulated_seed=get("cre_simulated_seed"),
    )


def check_writable(flag: str, path: Path, *, is_folder: bool) -> None:
    """Raise `UsageProblem` where a file, or files in a folder, could not be written in the end.

    What was measured for hours is not to be lost for a place that was wrong from the start. The
    folder is made; a device must take a write, a pipe is not touched.
    """
    import tempfile

    if is_folder and path.exists() and not path.is_dir():
        raise UsageProblem(f"{flag}: is a file, not a folder: {path}")
    try:
        if is_folder:
            path.mkdir(exist_ok=True)
        elif path.is_char_device() or path.is_block_device():
            with path.open("ab", buffering=0) as device:
                device.write(b"")
            return
        elif path.exists() and not path.is_file():
            return
        with tempfile.TemporaryFile(dir=path if is_folder else path.parent):
            pass
    except OSError as problem:
        raise UsageProblem(f"{flag}: {path} cannot be written: {problem.strerror}") from None


def check_recording_dir(path: Path, evidence: Path | None) -> None:
    """Raise `UsageProblem` for a folder that cannot be replaced as a whole by a recording."""
    flag = "--cre-save-recording"
    if evidence is not None and (path in (evidence, *evidence.parents) or evidence in path.parents):
        raise UsageProblem(f"{flag}: must be apart from the folder of --cre-evidence, got {path}")
    if path.exists() and not path.is_dir():
        raise UsageProblem(f"{flag}: is a file, not a folder: {path}")
    if path.is_dir() and any(path.iterdir()) and not (path / "scenario.yaml").is_file():
        raise UsageProblem(f"{flag}: is not empty and holds no recording: {path}")


def choose_cluster(environ: Mapping[str, str]) -> ClusterChoice:
    """Return `embedded` where no cluster is configured; where one is, the user must say."""
    home = Path(environ["HOME"]) / ".kube/config" if environ.get("HOME") else None
    found = None
    if environ.get("KUBECONFIG"):
        found = "KUBECONFIG"
    elif home and home.is_file():
        found = str(home)
    elif environ.get("KUBERNETES_SERVICE_HOST") and SERVICE_ACCOUNT_TOKEN.is_file():
        found = "an in-cluster service account"
    if found is None:
        return "embedded"
    raise UsageProblem(
        f"--cre-cluster is needed because a cluster is configured ({found}): "
        "'kubernetes' runs GPU Jobs there, 'embedded' simulates a cluster on this machine, "
        "'controlplane' runs genuine Kubernetes with simulated hardware on this machine"
    )
