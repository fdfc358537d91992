"""`python -m pytest_cre.controlplane serve`: one control plane in a process of its own."""

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.errors import ClusterProblem, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

_DEFAULT_SCENARIO = "h100-8"


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run the command; gives the exit code."""
    options = _parser().parse_args(arguments)
    try:
        _serve(options)
    except (UsageProblem, ValueError, OSError) as problem:
        return _say(problem, 2)
    except ClusterProblem as problem:
        return _say(problem, 4)
    return 0


def _say(problem: BaseException, code: int) -> int:
    sys.stderr.write(f"{' '.join(str(problem).split())}\n")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pytest_cre.controlplane", allow_abbrev=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve until ended", allow_abbrev=False)
    add = serve.add_argument
    add("--binaries", type=Path, metavar="DIR", help="folder with the programs; default: as built")
    add("--kubeconfig-out", type=Path, required=True, metavar="FILE", help="written when ready")
    add("--scenario", default=_DEFAULT_SCENARIO, metavar="NAME_OR_FILE", help="simulated nodes")
    add("--no-simulator", action="store_true", help="serve without any node")
    add("--seed", type=int, help="makes simulated noise repeatable")
    add("--namespace", default="default", metavar="NAME", help="namespace of the kubeconfig")
    add(
        "--grants",
        type=Path,
        metavar="FILE",
        help="JSON list of a service account, roles and bindings: the kubeconfig's account; "
        "default: an administrator",
    )
    add("--parent-pipe", action="store_true", help="end when standard input does")
    return parser


def _serve(options: argparse.Namespace) -> None:
    """Start, say so, and stay until a signal or the end of standard input."""
    from pytest_cre.controlplane.credentials import private_file
    from pytest_cre.controlplane.plane import ControlPlane, PlaneSettings
    from pytest_cre.controlplane.recipe import built_folder, check_programs, read_recipe
    from pytest_cre.formats.kubeconfig import check_replaceable, delete_own
    from pytest_cre.simulator.scenario import load_scenario, shipped_scenarios

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _interrupt)
    if options.parent_pipe:
        threading.Thread(target=_watch_parent, daemon=True).start()
    check_replaceable(options.kubeconfig_out)
    scenario = None if options.no_simulator else options.scenario
    if scenario is not None:
        load_scenario(scenario)  # a mistake is told before anything is started
        if scenario not in shipped_scenarios():
            scenario = str(Path(scenario).absolute())  # the simulator runs in another folder
    binaries = options.binaries or built_folder(read_recipe(), os.environ)
    check_programs(binaries)
    settings = PlaneSettings(
        binaries=binaries,
        scenario=scenario,
        seed=options.seed,
        namespace=options.namespace,
        grants=json.loads(options.grants.read_text()) if options.grants else (),
    )
    with contextlib.suppress(KeyboardInterrupt), ControlPlane(settings) as plane:
        new = options.kubeconfig_out.with_name(f".{options.kubeconfig_out.name}.new")
        written = plane.harness_kubeconfig.read_bytes()
        private_file(new, written)
        new.replace(options.kubeconfig_out)  # in one step: its appearance is the sign
        try:
            sys.stdout.write(f"ready {plane.server} {plane.folder}\n")
            sys.stdout.flush()
            while True:
                signal.pause()
        finally:
            delete_own(options.kubeconfig_out, written)


def _interrupt(*_: object) -> None:
    """Leave wherever we are, once; what follows is clean-up and must not be disturbed."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _watch_parent() -> None:
    """End when standard input does: it is a pipe whose other end dies with the parent."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
