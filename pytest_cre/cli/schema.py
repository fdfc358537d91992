"""`pytest-cre schema`: JSON Schemas of the YAML files, for editors."""

import argparse
import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

KINDS = ("entry", "log-profile", "architecture", "platform", "limits", "site")


def add_parser(subparsers: "Subparsers") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("schema", help="print the JSON Schema of a kind of file")
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))


def run(args: argparse.Namespace) -> int:
    """Print the schema."""
    from pytest_cre.catalog.schema import json_schema

    sys.stdout.write(json.dumps(json_schema(args.kind), indent=2) + "\n")
    return 0
