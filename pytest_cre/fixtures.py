"""Public fixtures, thin: each asks the session."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pytest

from pytest_cre.session import session_of

if TYPE_CHECKING:
    from pytest_cre.catalog.architecture import Architecture
    from pytest_cre.catalog.entry import CatalogEntry
    from pytest_cre.catalog.limit import Limit
    from pytest_cre.cluster.client import Client
    from pytest_cre.plan.model import Selection
    from pytest_cre.results import BandwidthResult, GoodputResult, WorkflowRun
    from pytest_cre.settings import Settings

    Measured = BandwidthResult | GoodputResult | WorkflowRun


@pytest.fixture(scope="session")
def cre_settings(pytestconfig: pytest.Config) -> "Settings":
    """Return what this run was asked to do."""
    return session_of(pytestconfig).settings


@pytest.fixture(scope="session")
def cre_cluster(pytestconfig: pytest.Config) -> "Client":
    """Return the connected client of the cluster; an unreachable cluster is a test error."""
    return session_of(pytestconfig).campaign.target.client


@pytest.fixture(scope="session")
def cre_inventory(pytestconfig: pytest.Config) -> "Selection":
    """Return the nodes used and the nodes excluded, with reasons."""
    return session_of(pytestconfig).campaign.target.selection


@pytest.fixture(scope="session")
def cre_architecture(
    pytestconfig: pytest.Config, cre_inventory: "Selection"
) -> "Architecture | None":
    """Return the GPU architecture of the nodes used, or None when it is not known."""
    architectures = session_of(pytestconfig).catalog.architectures
    return architectures.get(cre_inventory.architecture or "")


@pytest.fixture
def cre_entry(request: pytest.FixtureRequest) -> "CatalogEntry":
    """Return the catalog entry of this item."""
    return session_of(request.config).case_of(request).entry


@pytest.fixture
def cre_workflow(
    request: pytest.FixtureRequest,
    cre_entry: "CatalogEntry",  # noqa: ARG001 - what is parametrized: one item per entry
) -> "WorkflowRun":
    """Run the entry on the cluster and return evidence and measurements of every group."""
    session = session_of(request.config)
    return session.run(request.node, session.case_of(request))


@pytest.fixture
def cre_bandwidth(cre_workflow: "WorkflowRun") -> "BandwidthResult":
    """Return the bandwidth measured in this item's run."""
    from pytest_cre.results import BandwidthResult

    return BandwidthResult(cre_workflow)


@pytest.fixture
def cre_goodput(cre_workflow: "WorkflowRun") -> "GoodputResult":
    """Return the training figures measured in this item's run."""
    from pytest_cre.results import GoodputResult

    return GoodputResult(cre_workflow)


@pytest.fixture
def cre_limits(cre_workflow: "WorkflowRun") -> "Mapping[str, tuple[Limit, ...]]":
    """Return the limits that apply to this item, by metric."""
    found: dict[str, list[Limit]] = {}
    for limits in cre_workflow.limits.values():
        for limit in limits:
            if limit not in found.setdefault(limit.metric, []):
                found[limit.metric].append(limit)
    return {metric: tuple(limits) for metric, limits in sorted(found.items())}


@pytest.fixture
def cre_check(request: pytest.FixtureRequest) -> "Callable[[Measured], None]":
    """Return a function that judges a measurement and fails the test with the report text."""

    def check(measured: "Measured") -> None:
        __tracebackhide__ = True
        from pytest_cre.results import WorkflowRun

        run = measured if isinstance(measured, WorkflowRun) else measured.run
        session_of(request.config).check(request.node, run)

    return check


@pytest.fixture
def cre_record(request: pytest.FixtureRequest) -> Callable[[str, float, str], None]:
    """Return a function that adds a figure of one's own: `cre_record(name, value, unit)`."""

    def record(name: str, value: float, unit: str) -> None:
        session_of(request.config).record(request.node, name, value, unit)

    return record
