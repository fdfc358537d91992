"""Hook implementations: doors that call the rooms behind them."""

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_cre import commandline, items, options
from pytest_cre.fixtures import (
    cre_architecture,
    cre_bandwidth,
    cre_check,
    cre_cluster,
    cre_entry,
    cre_goodput,
    cre_inventory,
    cre_limits,
    cre_record,
    cre_settings,
    cre_workflow,
)
from pytest_cre.session import (
    MARKER_HELP,
    CertificationSession,
    configure,
    session_of,
    unconfigure,
    usage_errors,
)

if TYPE_CHECKING:
    from pytest_cre.distribution import Controller, Node

__all__ = [
    "cre_architecture",
    "cre_bandwidth",
    "cre_check",
    "cre_cluster",
    "cre_entry",
    "cre_goodput",
    "cre_inventory",
    "cre_limits",
    "cre_record",
    "cre_settings",
    "cre_workflow",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    commandline.give_up_if_misread(early_config, parser, args)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | pytest.ExitCode | None:
    return commandline.run_again(config)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_cre import hookspec

    pluginmanager.add_hookspecs(hookspec)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER_HELP)
    session = configure(config)
    if session.is_asked_for:
        config.pluginmanager.register(CertificationHooks(session), "cre-certification")
    if session.controller is not None:
        hooks = ControllerHooks(session, session.controller)
        config.pluginmanager.register(hooks, "cre-controller")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    hidden = items.is_suite_file(collection_path) and not session_of(config).is_asked_for
    return True if hidden else None


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    if not items.is_suite_file(module_path):
        return None
    node_id = items.suite_node_id(module_path)
    return pytest.Module.from_parent(parent, path=module_path, nodeid=node_id)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    session_of(metafunc.config).parametrize(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    session_of(config).select(items)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    if hint := session_of(config).empty_hint(exitstatus):
        terminalreporter.write_line(f"cre: {hint}")


def pytest_unconfigure(config: pytest.Config) -> None:
    unconfigure(config)


class CertificationHooks:
    """The hooks of a run that certifies; not registered in any other."""

    def __init__(self, session: CertificationSession) -> None:
        self.session = session

    def pytest_report_header(self) -> list[str]:
        return self.session.header_lines()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.session.plan(session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        self.session.open()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        with self.session.interrupts_named(item):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        return self.session.reports.complete(item, (yield))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.session.reports.collect(report)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        try:
            self.session.foretell(session)
            return (yield)
        finally:
            self.session.finish(session)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        self.session.reports.write_summary(terminalreporter)


class ControllerHooks:
    """The hooks of a run whose items are run by workers; most of them only xdist knows."""

    def __init__(self, session: CertificationSession, controller: "Controller") -> None:
        self.session = session
        self.controller = controller

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        self.session.open()

    def pytest_configure_node(self, node: "Node") -> None:
        self.controller.equip(node)

    def pytest_xdist_node_collection_finished(self, node: "Node") -> None:
        with usage_errors():
            self.controller.take_plan(node)

    def pytest_testnodedown(self, node: "Node", error: object | None) -> None:
        self.controller.take_down(node, error)

    @pytest.hookimpl(trylast=True)
    def pytest_handlecrashitem(self, report: pytest.TestReport) -> None:
        self.controller.report_crash(self.session.config, report)

    def pytest_keyboard_interrupt(self) -> None:
        self.controller.stop_workers(self.session.config)
