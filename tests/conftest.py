"""Set-up of all tests."""

import contextlib
from pathlib import Path

# A certification of a clone reads this file too, and needs no hypothesis.
with contextlib.suppress(ImportError):
    from hypothesis import HealthCheck, settings

    # A busy machine draws and runs slowly, which says nothing about a property.
    settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy")

HERE = Path(__file__).parent
LONGEST = {
    HERE / name
    for name in (
        "campaign/test_campaign.py",
        "integration/test_campaign.py",
        "integration/test_kinds.py",
        "integration/test_least_role.py",
        "integration/test_outages.py",
        "plugin/test_certification.py",
        "plugin/test_xdist.py",
        "workloads/test_pods.py",
    )
}


def pytest_collection_modifyitems(items):
    """Put the files that take longest first: workers, which take whole files, then end together."""
    items.sort(key=lambda item: item.path not in LONGEST)
