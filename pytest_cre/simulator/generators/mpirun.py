"""mpirun: the ranks on the hosts of a host file, their output in the launcher's log."""

import asyncio
import time
from typing import TYPE_CHECKING

from pytest_cre.simulator.commandline import Launch
from pytest_cre.simulator.generators.team import NOTICE_S, Team, TeamDriver, run_torch
from pytest_cre.simulator.rendezvous import Group, PeerLost

if TYPE_CHECKING:
    from pytest_cre.simulator.world import ContainerRun

_POLL_S = 0.05


async def run_ranks(run: "ContainerRun", launch: Launch, driver: TeamDriver) -> int:
    """Do the work with the ranks that the launcher starts; gives the exit code."""
    if launch.launcher == "mpirun":
        return await run_mpi(run, launch, driver)
    return await run_torch(run, launch, driver)


async def run_mpi(run: "ContainerRun", launch: Launch, driver: TeamDriver) -> int:
    """Start the ranks on the hosts of the host file, or on this node alone without one."""
    hosts = _hosts(run, launch)
    group: Group[ContainerRun] = Group(f"mpirun/{run.key}", len(hosts) + 1)
    left = launch.total_processes
    deadline_s = time.monotonic() + run.world.scenario.rendezvous_timeout_s
    for number, (host, slots) in enumerate(hosts):
        while (worker := run.world.run_at(run.subject.namespace, host)) is None:
            if time.monotonic() > deadline_s:
                run.write(f"ssh: Could not resolve hostname {host}: Name or service not known")
                run.write("ORTE was unable to reliably start one or more daemons.", "stderr")
                return 1
            await asyncio.sleep(_POLL_S)
        count = launch.processes or slots or worker.call.gpus or worker.node.gpus or 1
        if left is not None:
            count = min(count, left)
            left -= count
        group.join(number, count, worker)
        worker.launcher = run
    if not hosts:
        count = launch.total_processes or launch.processes or run.call.gpus or run.node.gpus or 1
        group.join(0, count, run)
    else:
        group.join(-1, 0, run)
    run.world.groups[group.key] = group
    group.complete.set()

    async def drive() -> int:
        return await driver(Team(group, launch))

    try:
        code = await group.work(run, drive)
    except PeerLost as lost:
        await asyncio.sleep(NOTICE_S)
        run.write(
            f"{run.host_name}: Test NCCL failure common.cu:401 "
            "'remote process exited or there was a network error / '\n"
            f" .. {lost.host_name} pid 120: Test failure common.cu:591",
        )
        code = 3
    finally:
        group.is_closed = True
        for worker in group.members.values():
            worker.launcher = None
        run.world.groups.pop(group.key, None)
    if code:
        run.write(
            "mpirun detected that one or more processes exited with non-zero status, thus causing "
            f"the job to be terminated.\n  Exit code:    {code}",
            "stderr",
        )
    return code


def _hosts(run: "ContainerRun", launch: Launch) -> list[tuple[str, int | None]]:
    """Return hosts and slots of the host file, which the MPI operator mounts and names."""
    given = (
        launch.options.get("--hostfile"),
        launch.options.get("-hostfile"),
        launch.options.get("-machinefile"),
        launch.env.get("OMPI_MCA_orte_default_hostfile"),
        launch.env.get("PRTE_MCA_default_hostfile"),
    )
    path = next((each for each in given if each), "/etc/mpi/hostfile")
    hosts: list[tuple[str, int | None]] = []
    for line in run.call.files.get(path, b"").decode("utf-8", "replace").splitlines():
        words = line.partition("#")[0].split()
        if words:
            slots = next((word[6:] for word in words[1:] if word.startswith("slots=")), "")
            hosts.append((words[0].partition(":")[0], int(slots) if slots.isdigit() else None))
    return hosts
