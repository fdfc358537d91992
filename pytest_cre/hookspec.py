"""Extension points of the plugin. All run in the process that runs the item."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_cre.catalog.entry import CatalogEntry


@pytest.hookspec
def pytest_cre_modify_entries(config: pytest.Config, entries: "list[CatalogEntry]") -> None:
    """Change, add or drop catalog entries in place, once, before collection."""


@pytest.hookspec
def pytest_cre_modify_manifests(
    config: pytest.Config, entry: "CatalogEntry", manifests: list[dict[str, Any]]
) -> None:
    """Change in place the manifests of one group before they are created."""
