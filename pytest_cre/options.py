"""Every command line option and ini setting of the plugin."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from pytest_cre.catalog.entry import SCALES, WorkloadKind
from pytest_cre.formats.duration import parse_duration
from pytest_cre.judge.missing import MissingLimit, SimulatedBy
from pytest_cre.settings import CLUSTERS, Keep

KINDS: tuple[WorkloadKind, ...] = get_args(WorkloadKind)


def positive_int(text: str) -> int:
    """Return a whole number of at least 1, for argparse."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return value


def duration(text: str) -> float:
    """Return seconds of `90s` or `1h30m`, for argparse."""
    try:
        seconds = parse_duration(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None
    if seconds <= 0:
        raise argparse.ArgumentTypeError("must be longer than nothing")
    return seconds


def whole_number(text: str) -> int:
    """Return a whole number, for argparse."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def key_value(text: str) -> tuple[str, str]:
    """Return the two sides of `KEY=VALUE`, for argparse."""
    key, sign, value = text.partition("=")
    if not key or not sign:
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE such as maxBytes=8G, got {text!r}")
    return key, value


def comma_list(text: str) -> tuple[str, ...]:
    """Return the parts of a comma separated list, one at least, for argparse."""
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if not parts:
        raise argparse.ArgumentTypeError(f"must name something, got {text!r}")
    return parts


def given(read: Callable[[str], object]) -> Callable[[str], object]:
    """Return `read` for values that hold something, for argparse.

    An empty value comes of a variable that is not set. Taken for an option that was not given, it
    would certify other nodes than were meant, or leave out a report.
    """

    def value(text: str) -> object:
        if not text.strip():
            raise argparse.ArgumentTypeError(f"needs a value, got {text!r}; is a variable not set?")
        return read(text)

    return value


def _shipped(folder: str) -> str:
    """Return the names of the package's files in a folder."""
    return ", ".join(sorted(path.stem for path in (Path(__file__).parent / folder).glob("*.yaml")))


def add_options(parser: pytest.Parser) -> None:
    """Register every option and ini setting of the plugin."""
    group = parser.getgroup("cre", "GPU cluster certification")

    def add(name: str, **kwargs: Any) -> None:
        group.addoption(name, **{**kwargs, "type": given(kwargs.get("type", str))})

    def both(
        name: str, ini: str, help_text: str, choices: Sequence[str] | None = None, **kwargs: object
    ) -> None:
        if choices:
            help_text = f"{help_text}: {', '.join(choices)}"
            kwargs["choices"] = choices
        add(name, help=f"{help_text} (ini: {ini})", **kwargs)
        parser.addini(ini, help_text, default=None)

    both("--cre-cluster", "cre_cluster", "Cluster to certify", choices=CLUSTERS, metavar="KIND")
    add(
        "--cre-controlplane",
        metavar="DIR",
        help="Programs of --cre-cluster controlplane; default: what `pytest-cre controlplane build` made",
    )
    add("--cre-kubeconfig", metavar="FILE", help="Kubeconfig of --cre-cluster kubernetes")
    add("--cre-context", metavar="NAME", help="Context of the kubeconfig")
    both("--cre-namespace", "cre_namespace", "Namespace to work in", metavar="NAME")
    add(
        "--cre-catalog",
        action="append",
        default=[],
        metavar="PATH",
        help="Folder with more catalog entries (repeatable; ini: cre_catalog)",
    )
    parser.addini("cre_catalog", "Folders with more catalog entries", type="paths", default=[])
    add(
        "--cre-profiles",
        action="append",
        default=[],
        metavar="PATH",
        help="Folder with more log profiles, architectures and limits (repeatable; ini: cre_profiles)",
    )
    parser.addini("cre_profiles", "Folders with more profiles", type="paths", default=[])
    add(
        "--cre-certification",
        metavar="FILE",
        help="Run what a Certification document of cluster-readiness-engine asks for",
    )
    add(
        "--cre-workload",
        metavar="FILE",
        help="Run the workload of a WorkloadRun document of cluster-readiness-engine",
    )
    add(
        "--cre-arch",
        metavar="NAME",
        help=f"GPU architecture to certify: {_shipped('profiles/architectures')}, or one of "
        "--cre-profiles; default: by majority",
    )
    platforms = f"Platform of the nodes: {_shipped('profiles/platforms')}, or one of --cre-profiles"
    both("--cre-platform", "cre_platform", platforms, metavar="NAME")
    both("--cre-site", "cre_site", "File that fits pods to a site", metavar="FILE")
    both(
        "--cre-simulated-by",
        "cre_simulated_by",
        "Limits of simulated nodes: those of the scenario, or the published ones",
        choices=get_args(SimulatedBy),
        metavar="LIMITS",
    )
    add(
        "--cre-option",
        action="append",
        default=[],
        type=key_value,
        metavar="KEY=VALUE",
        help="Value of a catalog option such as maxBytes=8G (repeatable)",
    )
    add(
        "--cre-scale",
        metavar="SCALE",
        help=f"Run only items of this scale: {', '.join(SCALES)}, or a number of nodes",
    )
    add(
        "--cre-kind",
        choices=KINDS,
        metavar="KIND",
        help=f"Run entries as this workload kind, not as the first that the cluster serves: "
        f"{', '.join(KINDS)}",
    )
    add("--cre-nodes", type=comma_list, default=(), metavar="NAME,...", help="Use only these nodes")
    both("--cre-node-selector", "cre_node_selector", "Label selector of nodes", metavar="SELECTOR")
    add("--cre-max-nodes", type=positive_int, metavar="N", help="Use at most this many nodes")
    add(
        "--cre-deadline",
        type=duration,
        metavar="DURATION",
        help="End of the whole run, such as 2h: what does not fit is not started and stays untested",
    )
    add(
        "--cre-gpu-minutes",
        type=positive_int,
        metavar="N",
        help="Most GPU-minutes of the whole run: what does not fit is not started",
    )
    add("--cre-evidence", metavar="DIR", help="Save specs, facts and raw logs in this folder")
    add("--cre-json", metavar="FILE", help="Write the report as JSON")
    add("--cre-junit", metavar="FILE", help="Write a JUnit file with one case per metric and group")
    add("--cre-html", metavar="FILE", help="Write the report as one HTML page")
    add(
        "--cre-save-recording",
        metavar="DIR",
        help="Save the run as a scenario that replays it, without names and addresses of the site",
    )
    both(
        "--cre-missing-limit",
        "cre_missing_limit",
        "Verdict of a figure that no limit applies to",
        choices=get_args(MissingLimit),
        metavar="POLICY",
    )
    both(
        "--cre-keep",
        "cre_keep",
        "When to keep a workload's objects",
        choices=get_args(Keep),
        metavar="WHEN",
    )
    add(
        "--cre-accept-excluded",
        type=comma_list,
        default=(),
        metavar="REASON,...",
        help="Reasons for which an excluded node does not make the run INCOMPLETE",
    )
    both(
        "--cre-scenario",
        "cre_scenario",
        f"Simulated hardware of a local cluster: {_shipped('simulator/scenarios')}, or a file",
        metavar="NAME_OR_FILE",
    )
    add("--cre-simulated-seed", type=whole_number, metavar="N", help="Seed of simulated noise")
