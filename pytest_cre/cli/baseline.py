"""`pytest-cre baseline`: limits of a site from its own accepted runs."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.errors import UsageProblem

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(subparsers: "Subparsers") -> None:
    """Add the command and its options."""
    parser = subparsers.add_parser(
        "baseline",
        help="make site limits from the evidence of accepted runs",
        description="Measure the evidence of runs that were accepted again and write limits of tier "
        "site: the median less its spread. --cre-profiles takes the file as it is.",
    )
    parser.add_argument("folders", metavar="EVIDENCE_DIR", type=Path, nargs="+")
    parser.add_argument("--out", metavar="FILE", type=Path, required=True)
    parser.add_argument(
        "--simulated", action="store_true", help="take simulated hardware, to rehearse"
    )
    parser.add_argument("--catalog", metavar="PATH", action="append", type=Path, default=[])
    parser.add_argument("--profiles", metavar="PATH", action="append", type=Path, default=[])


def run(args: argparse.Namespace) -> int:
    """Write the file; return 0, or for evidence that is refused 1 failed, 2 simulated, 10 not whole."""
    import yaml

    from pytest_cre.baseline import BaselineRefusal, baseline_of
    from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
    from pytest_cre.evidence.manifest import read_manifest

    manifests = [read_manifest(folder) for folder in args.folders]
    catalogs = args.catalog or [Path(each) for one in manifests for each in one.catalogs]
    profiles = args.profiles or [Path(each) for one in manifests for each in one.profiles]
    for path in (*catalogs, *profiles):
        if not path.exists():
            raise UsageProblem(
                f"no such file or folder: {path}; name it by --catalog or --profiles"
            )
    catalog = load_catalog(
        suites=(shipped_suites(), *catalogs), profiles=(shipped_profiles(), *profiles)
    )
    try:
        made = baseline_of(args.folders, catalog, allow_simulated=args.simulated)
    except BaselineRefusal as refusal:
        print(f"pytest-cre baseline: {refusal}", file=sys.stderr)  # noqa: T201
        return refusal.exit_code
    text = yaml.safe_dump(dict(made.document), sort_keys=False, allow_unicode=True, width=100)
    try:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UsageProblem(f"{args.out} cannot be written: {problem.strerror}") from None
    for warning in made.warnings:
        print(f"pytest-cre baseline: {warning}", file=sys.stderr)  # noqa: T201
    print(f"{args.out}: {len(made.document['limits'])} limits")  # noqa: T201
    return 0
