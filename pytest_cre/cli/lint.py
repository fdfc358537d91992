"""`pytest-cre lint`: every mistake in suites and profiles, with its place and its remedy."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(subparsers: "Subparsers") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("lint", help="check suites and profiles")
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="files or folders; default: those of the package"
    )


def run(args: argparse.Namespace) -> int:
    """Print a line per finding; return 1 when there is one."""
    from pytest_cre.catalog.lint import lint_files
    from pytest_cre.catalog.loader import shipped_profiles, shipped_suites

    paths = [Path(text) for text in args.paths] or [shipped_suites(), shipped_profiles()]
    count, lines = lint_files(paths)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    words = f"{len(lines)} to mend" if lines else "nothing to mend"
    sys.stdout.write(f"{count} {'file' if count == 1 else 'files'} checked, {words}\n")
    return 1 if lines else 0
