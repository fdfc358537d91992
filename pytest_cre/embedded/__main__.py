"""`python -m pytest_cre.embedded serve`: one embedded cluster in a process of its own."""

import argparse
import asyncio
import contextlib
import logging
import os
import secrets
import shutil
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_cre.embedded.faults import FaultBook
    from pytest_cre.embedded.server import ClusterSettings

_LEAVE_TIMEOUT_S = 1.0
_EXITING = 0x4  # a flag of processes in /proc
_DEFAULT_SCENARIO = "h100-8"


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run the command; gives the exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    from pytest_cre.embedded.server import ClusterSettings
    from pytest_cre.formats.kubeconfig import check_replaceable

    settings = ClusterSettings(
        token=secrets.token_urlsafe(32),
        port=options.port,
        seed=options.seed,
        node_grace_s=options.node_grace,
        job_backoff_s=options.job_backoff,
        history_events=options.history,
        page_lifetime_s=options.page_lifetime,
        bookmark_interval_s=options.bookmark_interval,
    )
    parent_pid = os.getppid()
    try:
        check_replaceable(options.kubeconfig_out)
        asyncio.run(_serve(options, settings))
    except (ValueError, OSError) as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        return 2
    finally:
        if options.parent_pipe and options.parent_folder and _is_dead(parent_pid):
            shutil.rmtree(options.parent_folder, ignore_errors=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pytest_cre.embedded", allow_abbrev=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve until ended", allow_abbrev=False)
    add = serve.add_argument
    add("--kubeconfig-out", type=Path, required=True, metavar="FILE", help="written when ready")
    add("--scenario", default=_DEFAULT_SCENARIO, metavar="NAME_OR_FILE", help="simulated nodes")
    add("--no-simulator", action="store_true", help="serve without any node")
    add("--port", type=int, default=0, help="default: any free one")
    add("--seed", type=int, help="makes names and simulated noise repeatable")
    add("--parent-pipe", action="store_true", help="end when standard input does")
    add(
        "--parent-folder",
        type=Path,
        metavar="FOLDER",
        help="with --parent-pipe: removed when the parent has died, and could not do so itself",
    )
    add(
        "--node-grace",
        type=float,
        default=40.0,
        metavar="S",
        help="silence that makes a node Unknown",
    )
    add(
        "--job-backoff",
        type=float,
        default=10.0,
        metavar="S",
        help="first delay after a failed pod",
    )
    add("--history", type=int, default=2048, metavar="N", help="changes kept per kind for watches")
    add("--page-lifetime", type=float, default=300.0, metavar="S", help="life of a continue token")
    add("--bookmark-interval", type=float, default=30.0, metavar="S", help="time between bookmarks")
    return parser


async def _serve(options: argparse.Namespace, settings: "ClusterSettings") -> None:
    from pytest_cre.embedded.certificate import new_identity
    from pytest_cre.embedded.server import running_cluster

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if options.parent_pipe:
        _watch_parent(loop, stop)
    identity = new_identity()
    async with running_cluster(settings, identity, _faults(options)) as url:
        await _run(options, settings, url, identity.authority_pem, stop)


def _faults(options: argparse.Namespace) -> "FaultBook":
    """Return what the scenario plants in the API; raises `ValueError` in one line."""
    from pytest_cre.embedded.faults import FaultBook

    if options.no_simulator:
        return FaultBook()
    from pytest_cre.simulator.scenario import load_scenario

    return FaultBook.of(load_scenario(options.scenario).api_faults)


async def _run(
    options: argparse.Namespace,
    settings: "ClusterSettings",
    url: str,
    authority_pem: bytes,
    stop: asyncio.Event,
) -> None:
    """Bring the nodes up, say that all is ready, and stay until it is time to stop."""
    from pytest_cre.embedded.kubeconfig import write_kubeconfig

    stopping: asyncio.Task[object] = asyncio.create_task(stop.wait())
    tasks: list[asyncio.Task[object]] = [stopping]
    try:
        if not options.no_simulator:
            tasks.append(await _simulate(options, settings, url, authority_pem, stopping))
        if not stop.is_set():
            write_kubeconfig(
                options.kubeconfig_out,
                server=url,
                token=settings.token,
                authority_pem=authority_pem,
            )
            sys.stdout.write(f"ready {url}\n")
            sys.stdout.flush()
            await _first(tasks)
    finally:
        for task in tasks:
            task.cancel()
        # The simulated nodes take their leave while there is still a server to talk to.
        await asyncio.wait(tasks, timeout=_LEAVE_TIMEOUT_S)


async def _simulate(
    options: argparse.Namespace,
    settings: "ClusterSettings",
    url: str,
    authority_pem: bytes,
    stopping: "asyncio.Task[object]",
) -> "asyncio.Task[object]":
    """Start the simulated nodes; returns when they are all ready, or when it is time to stop."""
    from pytest_cre.simulator.run import run_simulator

    ready = asyncio.Event()
    # The file is read while the nodes come up; what stays is nothing that a kill could leave behind.
    with TemporaryDirectory(prefix="pytest-cre-") as folder:
        authority = Path(folder, "authority.pem")
        authority.write_bytes(authority_pem)
        simulator: asyncio.Task[object] = asyncio.create_task(
            run_simulator(
                server=url,
                token=settings.token,
                ca_file=str(authority),
                scenario=options.scenario,
                seed=options.seed,
                ready=ready,
                has_api_faults=True,
            )
        )
        waiting: asyncio.Task[object] = asyncio.create_task(ready.wait())
        try:
            await _first([waiting, stopping, simulator])
        except BaseException:
            simulator.cancel()
            raise
        finally:
            waiting.cancel()
    return simulator


async def _first(tasks: "list[asyncio.Task[object]]") -> None:
    """Wait until one task has ended; raises what it raised."""
    done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


def _is_dead(parent_pid: int) -> bool:
    """Whether the process that started this one has ended, or is about to."""
    if os.getppid() != parent_pid:
        return True
    try:
        fields = Path(f"/proc/{parent_pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        # Its files are closed a little before the system gives its children to another.
        return fields[0] in "XZ" or bool(int(fields[6]) & _EXITING)
    except (OSError, ValueError, IndexError):
        return False


def _watch_parent(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """End when standard input does: it is a pipe whose other end dies with the parent."""
    descriptor = sys.stdin.fileno()
    os.set_blocking(descriptor, False)

    def readable() -> None:
        with contextlib.suppress(BlockingIOError):
            if not os.read(descriptor, 4096):
                loop.remove_reader(descriptor)
                stop.set()

    loop.add_reader(descriptor, readable)


if __name__ == "__main__":
    sys.exit(main())
