"""Entries of domains that no other suite names: whatever they measure, against its limits."""

import pytest

DOMAINS = ["communication/*", "compute/*", "diagnostics/*", "training/*"]


@pytest.mark.certification("*", unless=DOMAINS)
def test_entry(cre_workflow, cre_check):
    cre_check(cre_workflow)
