"""Entries of domains that no other suite names: whatever they measure, against its limits."""

import pytest


@pytest.mark.certification("*", unless=["communication/*", "training/*"])
def test_entry(cre_workflow, cre_check):
    cre_check(cre_workflow)
