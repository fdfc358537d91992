"""`pytest-cre simulate`: an embedded cluster with simulated GPU nodes, until Ctrl-C."""

import argparse
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.errors import UsageProblem
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
    from pytest_cre.formats.kubeconfig import delete_own

    wanted = Path(args.kubeconfig_out).absolute() if args.kubeconfig_out else None
    _check(wanted)  # before a cluster is started
    stop = threading.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: stop.set())
    with tempfile.TemporaryDirectory(prefix="pytest-cre-simulate-") as folder:
        cluster = start_embedded(
            scenario=args.scenario, seed=args.seed, folder=Path(folder), timeout_s=START_TIMEOUT_S
        )
        written = b""
        try:
            if wanted:
                _check(wanted)
                written = cluster.kubeconfig.read_bytes()
                _write_private(wanted, written)
            sys.stdout.write(f"{wanted or cluster.kubeconfig}\n")
            sys.stdout.flush()
            while not stop.wait(0.2) and cluster.is_running():
                pass
            return 0 if stop.is_set() else 4
        finally:
            cluster.stop()
            if wanted and written:
                delete_own(wanted, written)


def _check(wanted: Path | None) -> None:
    from pytest_cre.formats.kubeconfig import check_replaceable

    try:
        if wanted:
            check_replaceable(wanted)
    except ValueError as problem:
        raise UsageProblem(str(problem)) from None


def _write_private(target: Path, content: bytes) -> None:
    """Write a file that holds a token, readable by its owner only."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.touch(mode=0o600)
        target.write_bytes(content)
    except OSError as problem:
        raise UsageProblem(f"kubeconfig {target}: cannot be written: {problem.strerror}") from None
