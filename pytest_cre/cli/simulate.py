"""`pytest-cre simulate`: an embedded cluster with simulated GPU nodes, until Ctrl-C."""

import argparse
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

START_TIMEOUT_S = 30.0


def add_parser(subparsers: "Subparsers") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "simulate", help="serve an embedded cluster with simulated GPU nodes until Ctrl-C"
    )
    parser.add_argument(
        "--scenario", default=DEFAULT_SCENARIO, metavar="NAME_OR_FILE", help="simulated hardware"
    )
    parser.add_argument("--seed", type=whole_number, metavar="N", help="seed of simulated noise")
    parser.add_argument(
        "--kubeconfig-out", metavar="FILE", help="where to write the kubeconfig; default: temporary"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until an interrupt; print the kubeconfig's path once the nodes are ready."""
    from pytest_cre.cluster.local import start_embedded

    stop = threading.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: stop.set())
    with tempfile.TemporaryDirectory(prefix="pytest-cre-simulate-") as folder:
        cluster = start_embedded(
            scenario=args.scenario, seed=args.seed, folder=Path(folder), timeout_s=START_TIMEOUT_S
        )
        try:
            kubeconfig = Path(args.kubeconfig_out or cluster.kubeconfig).absolute()
            if args.kubeconfig_out:
                _copy_private(cluster.kubeconfig, kubeconfig)
            sys.stdout.write(f"{kubeconfig}\n")
            sys.stdout.flush()
            while not stop.wait(0.2) and cluster.is_running():
                pass
            return 0 if stop.is_set() else 4
        finally:
            cluster.stop()
            if args.kubeconfig_out:
                Path(args.kubeconfig_out).unlink(missing_ok=True)


def _copy_private(source: Path, target: Path) -> None:
    """Copy a file that holds a token, readable by its owner only."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    target.touch(mode=0o600)
    target.write_bytes(source.read_bytes())
