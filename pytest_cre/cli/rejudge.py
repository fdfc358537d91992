"""`pytest-cre rejudge`: judge the evidence of a run again, without a cluster."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from pytest_cre.errors import UsageProblem
from pytest_cre.judge.missing import SimulatedBy

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(subparsers: "Subparsers") -> None:
    """Add the command and its options."""
    parser = subparsers.add_parser(
        "rejudge",
        help="judge the evidence of a run again, without a cluster",
        description="Read the folder that --cre-evidence was given, measure and judge its logs again "
        "and print the run's report: with the same limits, the bytes of --cre-json.",
    )
    parser.add_argument("folder", metavar="EVIDENCE_DIR", type=Path)
    parser.add_argument(
        "--profiles",
        metavar="DIR",
        action="append",
        type=Path,
        default=[],
        help="limits and log profiles that take the place of those with their name (repeatable)",
    )
    parser.add_argument(
        "--catalog",
        metavar="PATH",
        action="append",
        type=Path,
        default=[],
        help="catalog entries, where the run's own folders have moved (repeatable)",
    )
    parser.add_argument(
        "--simulated-by",
        choices=get_args(SimulatedBy),
        help="limits that judge simulated nodes (default: those that judged the run)",
    )
    parser.add_argument("--format", choices=("text", "json", "html"), default="text")


def run(args: argparse.Namespace) -> int:
    """Print the report; return the exit code that pytest would give the run.

    Raises `EvidenceProblem` (3) for missing or changed evidence, `UsageProblem` (2).
    """
    from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
    from pytest_cre.evidence.manifest import read_manifest
    from pytest_cre.rejudge import rejudge

    manifest = read_manifest(args.folder)
    catalogs = args.catalog or [Path(each) for each in manifest.catalogs]
    profiles = [*(Path(each) for each in manifest.profiles), *args.profiles]
    for path in (*catalogs, *profiles):
        if not path.exists():
            raise UsageProblem(
                f"no such file or folder: {path}; name its place with --catalog or --profiles"
            )
    catalog = load_catalog(
        suites=(shipped_suites(), *catalogs), profiles=(shipped_profiles(), *profiles)
    )
    report = rejudge(args.folder, manifest, catalog, simulated_by=args.simulated_by)
    if args.profiles and report.is_simulated and report.settings["simulated_by"] == "scenario":
        sys.stderr.write(
            "pytest-cre rejudge: the nodes are simulated and judged by the limits of their scenario; "
            "--simulated-by published judges them by those of --profiles\n"
        )
    if args.format == "json":
        from pytest_cre.report.json import render_json

        sys.stdout.write(render_json(report))
    elif args.format == "html":
        from pytest_cre.report.html.page import render_html

        sys.stdout.write(render_html(report))
    else:
        from pytest_cre.report.terminal import summary_lines

        sys.stdout.writelines(f"{line}\n" for line, _ in summary_lines(report))
    return report.exit_code
