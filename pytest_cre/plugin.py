"""Hook implementations: doors that call the rooms behind them."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_cre import items, options
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
from pytest_cre.session import MARKER_HELP, CertificationSession, configure, session_of, unconfigure

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


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_cre import hookspec

    pluginmanager.add_hookspecs(hookspec)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER_HELP)
    session = configure(config)
    if session.is_asked_for:
        config.pluginmanager.register(CertificationHooks(session), "cre-certification")


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
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        self.session.add_properties(item, call.when)
        return self.session.complete_report(item, (yield))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.session.collect(report)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        try:
            return (yield)
        finally:
            self.session.finish(session)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        self.session.write_summary(terminalreporter)
