"""The command `pytest-cre`: one module per subcommand, loaded when it is needed."""

import argparse
import sys
from collections.abc import Sequence

from pytest_cre import __version__
from pytest_cre.errors import (
    CatalogProblem,
    ClusterProblem,
    CreError,
    EvidenceProblem,
    UsageProblem,
)

COMMANDS = (
    "measure",
    "rejudge",
    "render",
    "lint",
    "schema",
    "baseline",
    "cluster",
    "cleanup",
    "rbac",
    "simulate",
    "controlplane",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code (see docs/reference/cli.md)."""
    from importlib import import_module

    parser = argparse.ArgumentParser(
        prog="pytest-cre", description="Certify GPU clusters: the commands beside pytest"
    )
    parser.add_argument("--version", action="version", version=f"pytest-cre {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f"pytest_cre.cli.{name}").add_parser(subparsers)
    args = parser.parse_args(arguments)
    try:
        return int(import_module(f"pytest_cre.cli.{args.command}").run(args))
    except CreError as problem:
        print(f"pytest-cre {args.command}: {problem}", file=sys.stderr)  # noqa: T201
        return exit_code_of(problem)
    except BrokenPipeError:
        return 0  # the reader of our output had enough
    except KeyboardInterrupt:
        return 130


def exit_code_of(problem: CreError) -> int:
    """Return 2 for usage, 3 for unreadable input, 4 for a cluster that does not answer."""
    match problem:
        case CatalogProblem() | EvidenceProblem():
            return 3
        case UsageProblem():
            return 2
        case ClusterProblem():
            return 4
        case _:
            return 1
