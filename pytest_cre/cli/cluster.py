"""`pytest-cre cluster`: the GPU nodes a run would use, and why it leaves out the others."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_cre.evidence.model import GpuHolder

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(subparsers: "Subparsers") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("cluster", help="print the GPU nodes of a cluster")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--from", dest="file", metavar="FILE", help="saved node list, JSON or YAML")
    source.add_argument("--kubeconfig", metavar="F", help="kubeconfig of the cluster")
    parser.add_argument("--context", metavar="C", help="context of the kubeconfig")
    parser.add_argument(
        "--selector", default="", metavar="SELECTOR", help="label selector of nodes"
    )


def run(args: argparse.Namespace) -> int:
    """Print a row per GPU node; exit code 10 when any is left out."""
    from tabulate import tabulate

    from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
    from pytest_cre.cluster.client import ApiProblem, connect
    from pytest_cre.cluster.gpuholders import read_gpu_holders
    from pytest_cre.cluster.inventory import load_nodes, read_nodes
    from pytest_cre.plan.platform import choose_platform, ground_of, selection_tolerations
    from pytest_cre.plan.selection import is_gpu_node, select_nodes

    held: Mapping[str, Sequence[GpuHolder]] = {}
    unknown = ""
    if args.file:
        nodes = load_nodes(Path(args.file))
    else:
        client = connect(kubeconfig=args.kubeconfig, context=args.context, namespace=None)
        client.preflight()
        nodes = read_nodes(client)
        try:
            held = read_gpu_holders(client, [node.name for node in nodes if is_gpu_node(node)])
        except ApiProblem as problem:
            unknown = f"warning: whether GPUs are in use is not known: {problem}\n"
    catalog = load_catalog(suites=(shipped_suites(),), profiles=(shipped_profiles(),))
    gpu_nodes = [node for node in nodes if is_gpu_node(node)]
    selection = select_nodes(
        nodes,
        catalog.architectures,
        selector=args.selector,
        held=held,
        tolerations=selection_tolerations(gpu_nodes, catalog.platforms),
    )
    by_name = {node.name: node for node in nodes}
    reasons = {each.node: f"{each.reason}: {each.message}" for each in selection.excluded}
    rows = [
        (
            name,
            by_name[name].gpu_product or "-",
            by_name[name].gpus_allocatable,
            "yes" if by_name[name].is_simulated else "no",
            reasons.get(name, "used"),
        )
        for name in sorted({node.name for node in selection.nodes} | reasons.keys())
    ]
    headers = ("node", "product", "GPUs", "simulated", "verdict")
    sys.stdout.write(tabulate(rows, headers=headers, tablefmt="simple") + "\n")
    used = len(selection.nodes)
    platform = choose_platform(selection.nodes, catalog.platforms)
    ground = ground_of(
        platform,
        catalog.architectures.get(selection.architecture or ""),
        catalog.platforms,
        nodes=selection.nodes,
    )
    sys.stdout.write(
        f"{used} GPU nodes of architecture {selection.architecture or 'unknown'} on platform "
        f"{platform} would be used, {len(selection.excluded)} left out\n"
    )
    sys.stdout.write(unknown + "".join(f"warning: {line}\n" for line in ground.warnings))
    return 10 if selection.excluded or not used else 0
