"""`pytest-cre lint`: every mistake in suites, profiles and scenarios, with place and remedy."""

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(subparsers: "Subparsers") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("lint", help="check suites, profiles and scenarios")
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="files or folders; default: those of the package"
    )


def run(args: argparse.Namespace) -> int:
    """Print a line per finding; return 1 when there is one."""
    from pytest_cre.catalog.lint import lint_files
    from pytest_cre.catalog.loader import shipped_profiles, shipped_suites
    from pytest_cre.cli.podlint import pod_problems

    paths = [Path(text) for text in args.paths] or [shipped_suites(), shipped_profiles()]
    count, lines, unread = lint_files(
        paths,
        today=datetime.now(UTC).date(),
        check_scenario=_scenario_problems,
        check_pods=pod_problems,
    )
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    words = f"{len(lines)} to mend" if lines else "nothing to mend"
    if unread:
        words += (
            f"; overrides and limits of {', '.join(unread)} were not checked: mend the above first"
        )
    sys.stdout.write(f"{count} {'file' if count == 1 else 'files'} checked, {words}\n")
    return 1 if lines else 0


def _scenario_problems(path: Path) -> Iterator[str]:
    """Yield the first mistake of a scenario, as a run would tell it."""
    from pytest_cre.catalog.files import shown
    from pytest_cre.simulator.scenario import load_scenario

    try:
        load_scenario(str(path))
    except ValueError as problem:
        words = str(problem)
        yield words if words.startswith(f"{path}:") else f"{shown(path)}:1:1: {words}"
