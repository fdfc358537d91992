"""`pytest-cre cleanup`: delete what a run left behind."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

LEFT_BEHIND = 10


def add_parser(subparsers: "Subparsers") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "cleanup",
        help="delete what a run left behind in a cluster",
        description="Delete the objects of one run, or without --run those of every run of this "
        "user on this machine whose process has ended. Other runs are listed, never touched.",
    )
    parser.add_argument("--run", metavar="ID", help="id of the run, as its report shows it")
    parser.add_argument("--kubeconfig", metavar="F", help="kubeconfig of the cluster")
    parser.add_argument("--context", metavar="C", help="context of the kubeconfig")
    parser.add_argument("--namespace", metavar="N", help="namespace; default: the context's")


def run(args: argparse.Namespace) -> int:
    """Delete, print what was deleted and what is left; exit code 10 when anything is left."""
    from pytest_cre.cluster.client import connect
    from pytest_cre.plan.names import check_run_id
    from pytest_cre.run.cleanup import labelled_runs, sweep
    from pytest_cre.run.ledger import ended_runs, ledger_folder, ledgers_of

    client = connect(kubeconfig=args.kubeconfig, context=args.context, namespace=args.namespace)
    client.preflight()
    folder = ledger_folder(os.environ)
    run_ids = [check_run_id(args.run)] if args.run else ended_runs(folder)
    code, untouched = 0, list[str]()
    for run_id in run_ids:
        ledgers = ledgers_of(folder, run_id)
        swept = sweep(client, run_id, ledgers)
        for name in swept.deleted:
            sys.stdout.write(f"run {run_id}: deleted {name}\n")
        for name in swept.leftovers:
            sys.stdout.write(f"run {run_id}: left behind {name}\n")
        if swept.problem is not None:
            sys.stdout.write(f"run {run_id}: {swept.problem}\n")
        if swept.leftovers or swept.problem is not None:
            code = LEFT_BEHIND
        elif swept.deleted:
            _forget(ledgers)
        else:
            untouched.append(run_id)
    labelled = labelled_runs(client)
    for run_id in untouched:
        words = f"nothing of it in namespace {client.namespace}"
        if run_id in labelled:
            words = f"{labelled[run_id]} objects with its label, not proven to be its own: left"
            code = LEFT_BEHIND
        # It may have run on another cluster, which the ledger is still needed for.
        sys.stdout.write(f"run {run_id}: {words}\n")
    others = {each: count for each, count in labelled.items() if each not in run_ids}
    for run_id, count in others.items():
        sys.stdout.write(f"run {run_id}: {count} objects, not touched; it may be running\n")
    if not run_ids and not others:
        sys.stdout.write(f"nothing of pytest-cre in namespace {client.namespace}\n")
    return code


def _forget(ledgers: "tuple[Path, ...]") -> None:
    for path in ledgers:
        path.unlink(missing_ok=True)
