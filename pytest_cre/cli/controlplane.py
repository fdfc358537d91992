"""`pytest-cre controlplane build|up|down`: genuine Kubernetes on this machine."""

import argparse
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.options import whole_number
from pytest_cre.settings import DEFAULT_SCENARIO

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

START_TIMEOUT_S = 120.0
STOP_PATIENCE_S = 60.0


def add_parser(subparsers: "Subparsers") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "controlplane", help="build, start and stop genuine Kubernetes on this machine"
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="build the programs once; prints their folder")
    build.add_argument(
        "--kubernetes", metavar="VERSION", help="another version than the pinned one"
    )
    up = actions.add_parser("up", help="serve with simulated GPU nodes until Ctrl-C or down")
    up.add_argument(
        "--scenario", default=DEFAULT_SCENARIO, metavar="NAME_OR_FILE", help="simulated hardware"
    )
    up.add_argument("--seed", type=whole_number, metavar="N", help="seed of simulated noise")
    up.add_argument("--namespace", default="default", metavar="NS", help="namespace to work in")
    down = actions.add_parser("down", help="end what up has started")
    for each, place in (
        (build, "folder to build into; default: the user's cache"),
        (up, "folder with the programs; default: the user's cache"),
        (down, "end only what runs from this folder; default: all"),
    ):
        each.add_argument("--dir", type=Path, metavar="DIR", help=place)


def run(args: argparse.Namespace) -> int:
    """Do what the action says."""
    match args.action:
        case "build":
            return _build(args)
        case "up":
            return _up(args)
        case _:
            return _down(args)


def _build(args: argparse.Namespace) -> int:
    from pytest_cre.controlplane.build import build
    from pytest_cre.controlplane.recipe import read_recipe

    folder = build(read_recipe(args.kubernetes), target=args.dir, environ=os.environ, tell=_tell)
    sys.stdout.write(f"{folder}\n")
    return 0


def _up(args: argparse.Namespace) -> int:
    """Serve until an interrupt; print the kubeconfig's path once workloads can run."""
    from pytest_cre.cluster.local import start_controlplane
    from pytest_cre.controlplane.running import registered

    stop = threading.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: stop.set())
    with (
        registered(os.environ, args.dir),
        tempfile.TemporaryDirectory(prefix="pytest-cre-controlplane-up-") as folder,
    ):
        cluster = start_controlplane(
            binaries=args.dir,
            scenario=args.scenario,
            seed=args.seed,
            namespace=args.namespace,
            folder=Path(folder),
            timeout_s=START_TIMEOUT_S,
        )
        try:
            sys.stdout.write(f"{cluster.kubeconfig}\n")
            sys.stdout.flush()
            while not stop.wait(0.2) and cluster.is_running():
                pass
            return 0 if stop.is_set() else 4
        finally:
            cluster.stop()


def _down(args: argparse.Namespace) -> int:
    from pytest_cre.controlplane.running import end_all

    ended = end_all(os.environ, args.dir, patience_s=STOP_PATIENCE_S)
    _tell(f"ended {len(ended)} control plane(s)" if ended else "no control plane runs")
    return 0


def _tell(line: str) -> None:
    """Write a line of progress; results alone go to standard output."""
    sys.stderr.write(f"pytest-cre controlplane: {line}\n")
    sys.stderr.flush()
