"""`pytest-cre rbac`: the least rights that a run needs, as manifests."""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(subparsers: "Subparsers") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("rbac", help="print the least Role and ClusterRole that work")
    parser.add_argument("--namespace", default="default", metavar="NS", help="namespace to work in")


def run(args: argparse.Namespace) -> int:
    """Print the manifests as YAML, ready for `kubectl apply -f -`."""
    import yaml

    from pytest_cre.cluster.rbac import rbac_manifests

    sys.stdout.write(yaml.safe_dump_all(rbac_manifests(args.namespace), sort_keys=False))
    return 0
