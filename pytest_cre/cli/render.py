"""`pytest-cre render`: the manifests that a run would create, without a cluster."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_cre.catalog.loader import Catalog
    from pytest_cre.evidence.model import NodeFacts
    from pytest_cre.plan.model import WorkflowPlan
    from pytest_cre.plan.platform import Ground

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

KINDS = ("indexedJob", "jobSet", "mpiJob", "trainJob")


def add_parser(subparsers: "Subparsers") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "render",
        help="print the manifests that a run would create",
        description="Print what a run would create, byte for byte. What only a run knows has a name: "
        "run-id-placeholder, owner-uid-placeholder, node-placeholder-0 and so on. Overrides that were "
        "applied are told on standard error.",
    )
    parser.add_argument("entry", metavar="ENTRY", help="such as communication/nccl-all-reduce")
    parser.add_argument("--platform", required=True, metavar="P")
    parser.add_argument("--arch", required=True, metavar="A")
    nodes = parser.add_mutually_exclusive_group(required=True)
    nodes.add_argument("--nodes", type=_count, metavar="N", help="number of nodes")
    nodes.add_argument("--from", dest="file", type=Path, metavar="FILE", help="saved node list")
    parser.add_argument("--kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--scale", metavar="SCALE", help="default: the entry's first")
    parser.add_argument("--namespace", default="default", metavar="NS")
    parser.add_argument("--option", action="append", default=[], type=_pair, metavar="KEY=VALUE")
    parser.add_argument("--site", type=Path, metavar="FILE")
    parser.add_argument("--catalog", action="append", default=[], type=Path, metavar="PATH")
    parser.add_argument("--profiles", action="append", default=[], type=Path, metavar="PATH")
    parser.add_argument(
        "--unowned",
        action="store_true",
        help="leave the owner out: kubectl apply creates these to stay, any other the cluster deletes at once",
    )
    parser.add_argument("--format", choices=("yaml", "json"), default="yaml")


def run(args: argparse.Namespace) -> int:
    """Print the manifests in the order of their creation, those of each group after another."""
    from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
    from pytest_cre.itemrun import scripts_of
    from pytest_cre.plan.preview import preview
    from pytest_cre.plan.sitefile import site_of

    catalog = load_catalog(
        suites=(shipped_suites(), *args.catalog), profiles=(shipped_profiles(), *args.profiles)
    )
    entry = catalog.entry(args.entry)
    catalog.platform(args.platform)
    plan, ground = preview(
        entry,
        platform=args.platform,
        architecture=catalog.architecture(args.arch),
        platforms=catalog.platforms,
        nodes=args.nodes or _selected(args.file, args.arch, args.platform, catalog),
        scripts=scripts_of(entry),
        kind=args.kind,
        scale=args.scale,
        namespace=args.namespace,
        options=dict(args.option),
        site=site_of(args.site),
    )
    for line in _notes(plan, ground):
        sys.stderr.write(f"{line}\n")
    manifests = [manifest for group in plan.groups for manifest in group.manifests]
    if args.unowned:
        manifests = [_unowned(manifest) for manifest in manifests]
    sys.stdout.write(_json(manifests) if args.format == "json" else _yaml(manifests))
    return 0


def _selected(
    file: Path, architecture: str, platform: str, catalog: "Catalog"
) -> "Sequence[NodeFacts]":
    from pytest_cre.cluster.inventory import load_nodes
    from pytest_cre.plan.platform import selection_tolerations
    from pytest_cre.plan.selection import select_nodes

    nodes = load_nodes(file)
    return select_nodes(
        nodes,
        catalog.architectures,
        architecture=architecture,
        tolerations=selection_tolerations(nodes, catalog.platforms, platform),
    ).nodes


def _unowned(manifest: "Mapping[str, object]") -> "Mapping[str, object]":
    metadata = cast("Mapping[str, object]", manifest["metadata"])
    kept = {key: value for key, value in metadata.items() if key != "ownerReferences"}
    return {**manifest, "metadata": kept}


def _notes(plan: "WorkflowPlan", ground: "Ground") -> list[str]:
    lines = [f"warning: {warning}" for warning in ground.warnings]
    for override in plan.groups[0].overrides:
        changes = ", ".join(override.changes) or "no-op"
        lines.append(f"override {override.name} ({override.place}): {changes}")
    return lines


def _yaml(manifests: "Sequence[Mapping[str, object]]") -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes scripts as the lines that they are."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    # Through JSON, so that what is shared between manifests is not written as an alias.
    plain = json.loads(json.dumps(manifests))
    dumped = yaml.dump_all(plain, Dumper=Dumper, sort_keys=False, explicit_start=True, width=100)
    return str(dumped)


def _json(manifests: "Sequence[Mapping[str, object]]") -> str:
    whole = {"apiVersion": "v1", "kind": "List", "items": manifests}
    return json.dumps(whole, indent=2) + "\n"


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:7]) <= 100_000:
        raise argparse.ArgumentTypeError(f"must be a number of nodes, got {text!r}")
    return int(text)


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not key or not sign:
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE such as maxBytes=8G, got {text!r}")
    return key, value
