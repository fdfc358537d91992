"""Collective communication: bus bandwidth of a group of nodes against its limits."""

import pytest


@pytest.mark.certification("communication/*")
def test_bandwidth(cre_bandwidth, cre_check):
    cre_check(cre_bandwidth)
