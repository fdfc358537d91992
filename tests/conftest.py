"""Set-up of all tests."""

import contextlib

# A certification of a clone reads this file too, and needs no hypothesis.
with contextlib.suppress(ImportError):
    from hypothesis import HealthCheck, settings

    # A busy machine draws and runs slowly, which says nothing about a property.
    settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy")
