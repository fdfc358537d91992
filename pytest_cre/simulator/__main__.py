"""`python -m pytest_cre.simulator`: simulated GPU nodes for an API server that runs already."""

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.simulator.run import run_simulator

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run the command; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pytest_cre.simulator", allow_abbrev=False)
    add = parser.add_argument
    add("--server", required=True, metavar="URL", help="the API server")
    add("--token-file", type=Path, metavar="FILE", help="file with a bearer token")
    add("--ca-file", metavar="FILE", help="certificate that the server is verified with")
    add("--scenario", default="h100-8", metavar="NAME_OR_FILE", help="simulated hardware")
    add("--seed", type=int, metavar="N", help="seed of simulated noise")
    add("--verbose", action="store_true", help="tell of every call that had to be repeated")
    options = parser.parse_args(arguments)
    level = logging.DEBUG if options.verbose else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    logging.getLogger("pytest_cre").setLevel(level)
    try:
        asyncio.run(_play(options))
    except (ValueError, OSError) as problem:
        sys.stderr.write(f"{' '.join(str(problem).split())}\n")
        return 2
    return 0


async def _play(options: argparse.Namespace) -> None:
    """Play the nodes until a signal; say so when they are ready."""
    token = options.token_file.read_text().strip() if options.token_file else None
    loop = asyncio.get_running_loop()
    stop, ready = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    playing: asyncio.Task[object] = asyncio.create_task(
        run_simulator(
            server=options.server,
            token=token,
            ca_file=options.ca_file,
            scenario=options.scenario,
            seed=options.seed,
            ready=ready,
        )
    )
    stopping: asyncio.Task[object] = asyncio.create_task(stop.wait())
    waiting: asyncio.Task[object] = asyncio.create_task(ready.wait())
    await asyncio.wait((playing, stopping, waiting), return_when=asyncio.FIRST_COMPLETED)
    if ready.is_set():
        sys.stdout.write("ready\n")
        sys.stdout.flush()
    waiting.cancel()
    await asyncio.wait((playing, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not playing.done():
        playing.cancel()
    await asyncio.gather(playing, return_exceptions=playing.cancelled() or stop.is_set())


if __name__ == "__main__":
    sys.exit(main())
