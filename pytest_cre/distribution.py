"""pytest-xdist: one cluster for all workers, one report of all their items.

The controller starts the cluster and hands each worker its seat. Workers take the cluster one after
another by its lease, send the reports of their items, and sweep nothing but their own groups.
"""

import json
import os
import queue
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_cre.errors import UsageProblem
from pytest_cre.seat import Seat

if TYPE_CHECKING:
    from pytest_cre.campaign import Campaign
    from pytest_cre.news import News
    from pytest_cre.reports import Promise, Reports

MODES = ("load", "worksteal")  # the others run an item once per worker, or again after a crash
INPUT = "cre"  # our part of what xdist hands to a worker
LISTEN_S = 0.5
STOP_PATIENCE_S = 10.0  # workers clean up in less; xdist would kill them after as long


class Gateway(Protocol):
    """What we use of execnet's."""

    @property
    def id(self) -> str:
        """Return the worker's name."""


class Node(Protocol):
    """What we use of xdist's handle of a worker."""

    gateway: Gateway
    workerinput: dict[str, Any]


def is_controller(config: pytest.Config) -> bool:
    """Return whether the items of this run are run by xdist's workers."""
    has_workers = config.getoption("dist", "no") != "no" and bool(config.getoption("tx", None))
    return has_workers and not config.option.collectonly


def check_distribution(config: pytest.Config) -> None:
    """Raise `UsageProblem` for a way of distributing that would spoil a certification."""
    if not is_controller(config):
        return
    mode = config.getoption("dist")
    if mode not in MODES:
        raise UsageProblem(
            f"--dist {mode}: would run items twice, once per worker or again after a crash, where "
            f"each is to certify once; choices: {', '.join(MODES)}"
        )
    for spec in config.getoption("tx"):
        if spec.rpartition("*")[2] != "popen":
            raise UsageProblem(
                f"--tx {spec}: workers share this machine's cluster and ledgers; use -n N"
            )


def seat_of(config: pytest.Config) -> Seat:
    """Return the seat that the controller has given this worker, or that of a run of one process."""
    workerinput = getattr(config, "workerinput", None)
    if workerinput is None:
        return Seat.new()
    given = workerinput[INPUT]
    return Seat(
        run_id=given["run_id"],
        process=workerinput["workerid"],
        parent_pid=given["pid"],
        folder=Path(given["folder"]),
        kubeconfig=Path(given["kubeconfig"]) if given["kubeconfig"] else None,
    )


class WorkerNews:
    """Passes lines on to the controller: in a worker nothing reaches the terminal."""

    def __init__(self, seat: Seat) -> None:
        self._path = _file(seat, "news")

    def tell(self, line: str, *, subject: str = "") -> None:
        """Append the line for the controller to read."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([line, subject]) + "\n")


def tell_plan(seat: Seat, promised: "Sequence[Promise]", problems: Sequence[UsageProblem]) -> None:
    """Tell the controller which items this worker has collected, or what is wrong with them."""
    plan = {
        "pid": os.getpid(),
        "promised": promised,
        "problem": str(problems[0]) if problems else None,
    }
    _file(seat, "plan").write_text(json.dumps(plan), encoding="utf-8")


def _file(seat: Seat, suffix: str) -> Path:
    """Return a worker's file of this kind in the folder that it shares with the controller."""
    return Path(seat.folder or ".") / f"{seat.process}.{suffix}"


class Controller:
    """The controller's part: seats, plans, news and ends of the workers."""

    def __init__(self, campaign: "Campaign", reports: "Reports", news: "News") -> None:
        self._campaign = campaign
        self._reports = reports
        self._news = news
        self._workers: dict[str, int | None] = {}  # process id by name, once it has collected
        self._read_bytes: dict[Path, int] = {}
        self._ended = threading.Event()
        # xdist's main loop lets nobody in while it waits, so a thread listens.
        self._listener = threading.Thread(target=self._listen, name="cre-news", daemon=True)

    def equip(self, node: Node) -> None:
        """Give a worker its seat."""
        if self._listener.ident is None:
            self._listener.start()
        kubeconfig = self._campaign.target.local_kubeconfig
        node.workerinput[INPUT] = {
            "run_id": self._campaign.run_id,
            "pid": os.getpid(),
            "folder": str(self._campaign.folder),
            "kubeconfig": str(kubeconfig) if kubeconfig else None,
        }
        self._workers[node.gateway.id] = None

    def take_plan(self, node: Node) -> None:
        """Take what a worker has collected; raises `UsageProblem` for what it found wrong.

        xdist itself makes sure that all workers have collected the same.
        """
        name = node.gateway.id
        path = self._campaign.folder / f"{name}.plan"
        plan = json.loads(path.read_text(encoding="utf-8"))
        if plan["problem"] is not None:
            raise UsageProblem(plan["problem"])
        self._workers[name] = plan["pid"]
        if not self._reports.planned:
            self._reports.plan(tuple(each) for each in plan["promised"])
            self._reports.note_progress()

    def take_down(self, node: Node, error: object | None) -> None:
        """Note the end of a worker; after a crash delete what it left, and nothing else."""
        self._workers.pop(node.gateway.id, None)
        if error is not None:
            self._campaign.sweep_after(node.gateway.id)

    def report_crash(self, config: pytest.Config, report: pytest.TestReport) -> None:
        """Make the crash of a worker an error of the item that it ran; xdist logs `report` next."""
        if report.nodeid not in self._reports.planned or report.nodeid in self._reports.items:
            return
        setup, teardown = self._reports.crashed(report.nodeid, str(report.longrepr))
        for each in (setup, teardown):
            each.node = getattr(report, "node", None)  # type: ignore[attr-defined]
        config.hook.pytest_runtest_logreport(report=setup)
        report.__dict__.update(teardown.__dict__)

    def stop_workers(self, config: pytest.Config) -> None:
        """After an interrupt: end the workers' items and take their reports, within a bound."""
        running = {name: pid for name, pid in self._workers.items() if pid is not None}
        for pid in running.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        events = getattr(config.pluginmanager.get_plugin("dsession"), "queue", None)
        deadline_s = time.monotonic() + STOP_PATIENCE_S
        while running and events is not None and time.monotonic() < deadline_s:
            try:
                name, about = events.get(timeout=max(0.0, deadline_s - time.monotonic()))
            except queue.Empty:
                return
            if name == "testreport":
                about["rep"].node = about["node"]  # as xdist does; pytest's JUnit file needs it
                config.hook.pytest_runtest_logreport(report=about["rep"])
            elif name in ("workerfinished", "errordown", "internal_error"):
                running.pop(about["node"].gateway.id, None)

    def finish(self) -> None:
        """Stop listening; what was said last is told."""
        self._ended.set()
        if self._listener.ident is not None:
            self._listener.join()

    def _listen(self) -> None:
        while not self._ended.wait(LISTEN_S):
            self._pass_on()
        self._pass_on()

    def _pass_on(self) -> None:
        for path in sorted(self._campaign.folder.glob("*.news")):
            with path.open("rb") as file:
                file.seek(self._read_bytes.get(path, 0))
                for raw in file:
                    if not raw.endswith(b"\n"):
                        break  # still being written
                    self._read_bytes[path] = self._read_bytes.get(path, 0) + len(raw)
                    line, subject = json.loads(raw)
                    self._news.tell(line, subject=subject)
